import { policyOf } from '../../constructs/kind/child-policy';
import { renderSharedOnce, type RenderedChild } from '../../constructs/kind/render';
import { RenderError } from '../../constructs/kube/errors';
import { callKindFunction } from '../../constructs/kube/function-error';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { claimOf } from '../apply/ownership';
import { childKey, refOf } from '../client/api-client';
import { childState, type ChildState } from '../status/child-status';
import type { Readiness } from '../status/conditions';
import { isKeptGone } from './completed-children';
import type { ReconcileContext } from './context';
import { mostSevere } from './problems';
import { controlledChildren, type LiveChild } from './prune';
import { observedChildren, type Rendered } from './render-object';
import { definedFields } from './write-status';

/** What was observed of an object's children. */
export interface ChildrenObservation {
  /** Why the object is not ready yet; undefined when every child is current. */
  readonly worst: Readiness | undefined;
  /** The kind's own status fields. */
  readonly observed: Readonly<Record<string, unknown>>;
  /** When to observe again, in milliseconds, if a child's state changes by time alone. */
  readonly requeueAfterMs?: number;
}

/**
 * Reads the children of an object from the cache and lets the kind observe them. Foreign objects under a
 * child's name are left out.
 *
 * @param written - if not all children are written, those that are: all that exist are observed then, too
 */
export function observeChildren(
  context: ReconcileContext,
  rendered: Rendered,
  owner: KubeObject,
  written?: readonly RenderedChild[],
): ChildrenObservation {
  const { self } = rendered;
  const existing = written === undefined ? [] : existingChildren(context, owner);
  const names = new Set(existing.map(({ type, live }) => childKey(type, live)));
  const others = (written ?? rendered.children).filter(({ type, manifest }) => !names.has(childKey(type, manifest)));
  const own = [
    ...existing.map(({ type, live }) => ({ child: { type, manifest: live, seeds: [] }, live: [live] })),
    ...others.map((child) => ({
      child,
      live: liveObjects(context, child).filter((object) => claimOf(object, self) === 'ours'),
    })),
  ];
  const awaited = own.filter(
    ({ child }) => policyOf(child.type).ready === 'current' && !isKeptGone(context, owner, child),
  );
  const unseen = awaited.filter(({ live }) => live.length === 0).map(({ child }) => child);
  const liveShared = sharedObjects(context, rendered);
  const observed = observe(context, rendered, [...own.flatMap((one) => one.live), ...liveShared]);
  const now = Date.parse(context.now());
  const judged = [...awaited.flatMap((one) => one.live), ...liveShared];
  const states = judged.map((object) => ({ object, state: childState(object, now) }));
  const times = states.flatMap(({ state }) => (state.state === 'InProgress' ? (state.againMs ?? []) : []));
  return {
    worst: mostSevere([...states.flatMap(childReadiness), ...unseen.map(uncachedReadiness)]),
    observed,
    ...(times.length > 0 && { requeueAfterMs: Math.min(...times) }),
  };
}

/**
 * What `observe` says of the children that exist, before anything is rendered from it. If it throws, it says nothing: it is
 * called again when the children are written, and that is reported.
 */
export function observeExisting(context: ReconcileContext, owner: KubeObject, rendered: Rendered): KnownStatus {
  const observed = tryObserve(context, owner, rendered);
  const self = { ...rendered.self, status: { ...rendered.self.status, ...observed } };
  return { first: { ...rendered, self }, observed };
}

function tryObserve(
  context: ReconcileContext,
  owner: KubeObject,
  rendered: Rendered,
): Readonly<Record<string, unknown>> {
  if (context.kind.observe === undefined) return {};
  // In the order of the rendering, as they are observed at the end.
  const place = new Map(rendered.children.map((child, i) => [childKey(child.type, child.manifest), i]));
  const placeOf = ({ type, live }: LiveChild): number => place.get(childKey(type, live)) ?? place.size;
  const own = [...existingChildren(context, owner)].sort(
    (a, b) => placeOf(a) - placeOf(b) || (a.live.metadata.name < b.live.metadata.name ? -1 : 1),
  );
  try {
    const live = [...own.map((child) => child.live), ...sharedObjects(context, rendered)];
    return definedFields(observe(context, rendered, live));
  } catch (error) {
    if (error instanceof RenderError && rendered.calls.stopped === undefined) return {};
    throw error;
  }
}

function observe(
  { kind }: ReconcileContext,
  { self, calls }: Rendered,
  live: readonly KubeObject[],
): Readonly<Record<string, unknown>> {
  const call = (): Readonly<Record<string, unknown>> | undefined =>
    callKindFunction(calls.name, `${kind.kind}.observe`, () =>
      kind.observe?.({ self, children: observedChildren(live) }),
    );
  return (kind.observe && calls.run('observe', call)) ?? {};
}

/** The children that an object shares with others, as they are in the cache. */
function sharedObjects(context: ReconcileContext, { self, shared }: Rendered): readonly KubeObject[] {
  const { namespace } = self.metadata;
  const rendered = shared.flatMap((one) => renderSharedOnce(context.kind, { ...one, namespace }));
  return rendered.flatMap((child) => liveObjects(context, child));
}

/** The object in the cache that has the name of a child. */
function liveObjects(context: ReconcileContext, { type, manifest }: RenderedChild): readonly KubeObject[] {
  const cached = context.isMissing(type) ? undefined : context.children(type).get(refOf(manifest));
  return cached === undefined ? [] : [cached.object];
}

/**
 * Our own writes reach the cache through their responses: a child that is not there was lost, or deleted
 * since, and its event follows. A missing shared child is reported under its key only: it is created again
 * there, and nothing would enqueue the object then.
 */
function uncachedReadiness({ type, manifest }: RenderedChild): Readiness {
  const message = `${type.kind} "${manifest.metadata.name}": no event has told of it yet`;
  return { state: 'progressing', reason: 'Progressing', message };
}

function childReadiness({
  object,
  state,
}: {
  readonly object: KubeObject;
  readonly state: ChildState;
}): readonly Readiness[] {
  if (state.state === 'Current') return [];
  const message = `${object.kind} "${object.metadata.name}": ${state.message}`;
  if (state.state === 'Failed') return [{ state: 'stalled', reason: 'ChildFailed', message }];
  return [{ state: 'progressing', reason: 'Progressing', message }];
}

/** The children that an object has, rendered now or not. */
export function existingChildren(context: ReconcileContext, object: KubeObject): readonly LiveChild[] {
  return controlledChildren(context, object, context.kind.owns);
}

/** What is known of an object besides what its effects report. */
export interface KnownStatus {
  /** What was rendered without a status. */
  readonly first: Rendered;
  /** What `observe` says of the children that exist. */
  readonly observed: Readonly<Record<string, unknown>>;
}
