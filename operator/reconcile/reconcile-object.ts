import type { AnyKind, KindObject, ObservedChildren } from '../../constructs/kind/kind';
import {
  renderShared,
  renderDefaulted,
  sharedKeys,
  withDefaults,
  type RenderedChild,
  type SharedKey,
} from '../../constructs/kind/render';
import { PAUSED_ANNOTATION } from '../../constructs/kube/envelope';
import { InvalidObjectError, RenderError } from '../../constructs/kube/errors';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { typeKey, type ResourceType } from '../../constructs/kube/resource-type';
import { claimOf, isPaused } from '../apply/ownership';
import { addressOf, refOf, type ObjectRef } from '../client/api-client';
import { childState, type ChildState } from '../status/child-status';
import type { OwnCondition, Verdict } from '../status/conditions';
import { applyChildren, type Applied } from './apply-children';
import type { Next, ReconcileContext } from './context';
import { ensureFinalizer, finalize } from './finalize';
import { ReconcileError, classify, sumUp, withHeldStatus, worstOf, type HeldBack } from './problems';
import { prune, withdrawWriters } from './prune';
import { sharedId } from './shared-keys';
import { ownStatus, writeStatus } from './write-status';

/** What a reconcile found, before it is written into the status. */
interface Found {
  readonly verdict: Verdict;
  readonly observed: Readonly<Record<string, unknown>>;
  /** The kind's own conditions. @default those that stand */
  readonly conditions?: readonly OwnCondition[];
  /** Try again by ourselves. */
  readonly retry: boolean;
  /** Look again after this long, in milliseconds. */
  readonly afterMs?: number | undefined;
}

/**
 * Brings the children of one object to what its spec says, and its status to what stands. Level-triggered: it looks at the present
 * state only and may run at any time.
 *
 * Guarantees: nothing is written when nothing differs; children are pruned only after every apply succeeded, save for the
 * writers of seeded fields that were switched off; an object that is being deleted is only cleaned up.
 *
 * @throws ApiError, TransportError when the cache was behind, the server is away, or the status itself cannot be written; NotLeaderError
 */
export async function reconcileObject(context: ReconcileContext, ref: ObjectRef): Promise<Next> {
  const object = context.objects.get(ref)?.object;
  if (object === undefined) return { next: 'wait' };
  if (object.metadata.deletionTimestamp !== undefined) return finalize(context, object);
  if (isPaused(object)) return report(context, object, pausedFound(context, object));

  let rendered: Rendered;
  try {
    rendered = render(context, object);
  } catch (error) {
    return report(context, object, cannotRender(context, object, error));
  }
  try {
    return await bring(context, object, rendered);
  } catch (error) {
    return failed(context, object, error);
  }
}

function render({ kind }: ReconcileContext, object: KubeObject): Rendered {
  const self = withDefaults(kind, object);
  return renderSelf(kind, self);
}

function renderSelf(kind: AnyKind, self: KindObject<AnyKind>): Rendered {
  return { self, children: renderDefaulted(kind, self), shared: sharedKeys(kind, self) };
}

async function bring(context: ReconcileContext, found: KubeObject, first: Rendered): Promise<Next> {
  // The objects that share a key are woken when it has been reconciled.
  const states = first.shared.map(({ group, key }) =>
    context.shared.get(sharedId(group.name, found.metadata.namespace, key)),
  );
  if (states.includes(undefined)) return { next: 'wait' };
  const ensured = await ensureFinalizer(context, found);
  if ('held' in ensured) return report(context, found, unprotected(context, found, first, ensured.held));
  const { object } = ensured;
  const effects = await context.effects?.advance(object, first.self, 'apply');
  const rendered = effects === undefined ? first : renderSelf(context.kind, withStatus(first.self, effects.status));
  const { uid = '' } = object.metadata;
  context.contests.wanted(uid, () => rendered.children.map(({ type, manifest }) => addressOf(type, manifest)));
  const withdrawn = await withdrawWriters(context, object, rendered.children);
  const missing = states.flatMap((state) => (state?.state === 'failed' ? (state.missingAccounts ?? []) : []));
  const applied = await applyChildren(context, object, withdrawn.free, missing);
  const shortfalls = [...withdrawn.shortfalls];
  if (applied.verdict === undefined && shortfalls.length === 0)
    shortfalls.push(...(await prune(context, object, rendered.children)).shortfalls);
  const open = sumUp(shortfalls);
  const { worst, observed, afterMs: seenAfterMs } = observe(context, rendered);
  const failures = states.flatMap((state) => (state?.state === 'failed' ? [state.verdict] : []));
  const wrong = worstOf([applied.verdict ?? [], open.verdict ?? [], effects?.verdict ?? [], failures].flat());
  const verdict = wrong ?? worst ?? readyVerdict(context, rendered);
  if (open.verdict === undefined) announceSync(context, rendered, applied);
  const known = effects === undefined ? {} : { ...ownStatus(context.kind, object), ...effects.status };
  const status = { observed: { ...known, ...observed }, ...(effects && { conditions: effects.conditions }) };
  const times = [applied.afterMs, open.afterMs, effects?.afterMs, seenAfterMs].filter((ms) => ms !== undefined);
  const afterMs = times.length === 0 ? undefined : Math.min(...times);
  const next = await report(context, object, { verdict, ...status, retry: applied.retry, afterMs });
  return { ...next, awaited: applied.awaited };
}

/** Nothing is made for an object of which nobody might take it away again. What stands is told of all the same. */
function unprotected(context: ReconcileContext, object: KubeObject, rendered: Rendered, held: HeldBack): Found {
  const observed = { ...ownStatus(context.kind, object), ...observe(context, rendered).observed };
  const verdict: Verdict = { state: 'failing', ...held.reason };
  return { verdict, observed, retry: false, afterMs: held.afterMs };
}

/** Children may be rendered from what effects have found out; it reaches the server's status in the same reconcile. */
function withStatus(self: KindObject<AnyKind>, status: Readonly<Record<string, unknown>>): KindObject<AnyKind> {
  return { ...self, status: { ...(self.status as Readonly<Record<string, unknown>> | undefined), ...status } };
}

function announceSync({ kind, record }: ReconcileContext, { self }: Rendered, applied: Applied): void {
  if (kind.syncedEvent === undefined || applied.verdict !== undefined) return;
  if (self.status?.observedGeneration === self.metadata.generation && !applied.wrote) return;
  record(self, { type: 'Normal', action: 'Sync', ...kind.syncedEvent(self) });
}

function readyVerdict({ kind }: ReconcileContext, { self }: Rendered): Verdict {
  const { reason, message } = kind.readyReason?.(self) ?? {
    reason: 'Ready',
    message: 'All children are applied and current.',
  };
  return { state: 'ready', reason, message };
}

function pausedFound({ kind }: ReconcileContext, object: KubeObject): Found {
  const message = `Reconciling is paused: remove the annotation ${PAUSED_ANNOTATION} to go on.`;
  return { verdict: { state: 'paused', reason: 'Paused', message }, observed: ownStatus(kind, object), retry: false };
}

function cannotRender({ kind, record }: ReconcileContext, object: KubeObject, error: unknown): Found {
  const reason = error instanceof InvalidObjectError ? 'ErrInvalidSpec' : 'ErrRender';
  const message = error instanceof Error ? error.message : String(error);
  record(object, { type: 'Warning', action: 'Render', reason, message });
  return { verdict: { state: 'stalled', reason, message }, observed: ownStatus(kind, object), retry: false };
}

function failed(context: ReconcileContext, object: KubeObject, error: unknown): Promise<Next> | Next {
  // Shared children are rendered once more to be observed.
  if (error instanceof RenderError) return report(context, object, cannotRender(context, object, error));
  const { kind, reason, message } = classify(error);
  if (kind === 'stale') throw error;
  const state = kind === 'terminal' ? 'stalled' : 'failing';
  const observed = ownStatus(context.kind, object);
  const afterMs = error instanceof ReconcileError ? error.afterMs : undefined;
  return report(context, object, { verdict: { state, reason, message }, observed, retry: kind === 'retry', afterMs });
}

async function report(context: ReconcileContext, object: KubeObject, found: Found): Promise<Next> {
  const { retry, afterMs, ...write } = found;
  const { verdict } = found;
  const held = await writeStatus(context, { object, ...write });
  const bad = verdict.state === 'failing' || verdict.state === 'stalled';
  const next: Next = {
    next: retry ? 'retry' : 'wait',
    ...(bad ? { failed: { reason: verdict.reason, message: verdict.message } } : {}),
    ...(afterMs === undefined ? {} : { afterMs }),
  };
  return withHeldStatus(next, held);
}

/** What stands on the server of an object's children. */
interface Observed {
  /** Why the object is not ready yet; undefined when every child is current. */
  readonly worst: Verdict | undefined;
  /** The kind's own status fields. */
  readonly observed: Readonly<Record<string, unknown>>;
  /** A child's state changes by time alone: look again after so many milliseconds. */
  readonly afterMs?: number;
}

/** An object with all that it renders. */
interface Rendered {
  /** The object, its spec's defaults applied. */
  readonly self: KindObject<AnyKind>;
  readonly children: readonly RenderedChild[];
  readonly shared: readonly SharedKey[];
}

/** Reads the children of an object back and has the kind observe them. What is somebody else's under a child's name is not seen. */
function observe(context: ReconcileContext, rendered: Rendered): Observed {
  const { kind } = context;
  const { self } = rendered;
  const { namespace } = self.metadata;
  const shared = rendered.shared.flatMap(({ group, key }) => renderShared(kind, group, key, namespace));
  const standing = ({ type, manifest }: RenderedChild): readonly KubeObject[] => {
    const cached = context.isMissing(type) ? undefined : context.children(type).get(refOf(manifest));
    return cached === undefined ? [] : [cached.object];
  };
  const own = rendered.children.map((child) => ({
    child,
    live: standing(child).filter((object) => claimOf(object, self) === 'ours'),
  }));
  const unseen = own.filter(({ live }) => live.length === 0).map(({ child }) => child);
  const live = [...own.flatMap((one) => one.live), ...shared.flatMap(standing)];
  const observed = kind.observe?.({ self, children: observedChildren(live) }) ?? {};
  const now = Date.parse(context.now());
  const states = live.map((object) => ({ object, state: childState(object, now) }));
  const times = states.flatMap(({ state }) => (state.state === 'InProgress' ? (state.againMs ?? []) : []));
  return {
    worst: worstOf([...states.flatMap(verdictOf), ...unseen.map(unseenVerdict)]),
    observed,
    ...(times.length > 0 && { afterMs: Math.min(...times) }),
  };
}

/**
 * Our own writes are in the cache through their answers: one that is not has been lost, or deleted since, and its event comes. A shared child is its
 * key's to miss: it is made again under the key, and nothing would wake the object then.
 */
function unseenVerdict({ type, manifest }: RenderedChild): Verdict {
  const message = `${type.kind} "${manifest.metadata.name}": no event has told of it yet`;
  return { state: 'progressing', reason: 'Progressing', message };
}

function verdictOf({ object, state }: { readonly object: KubeObject; readonly state: ChildState }): readonly Verdict[] {
  if (state.state === 'Current') return [];
  const message = `${object.kind} "${object.metadata.name}": ${state.message}`;
  if (state.state === 'Failed') return [{ state: 'stalled', reason: 'ChildFailed', message }];
  return [{ state: 'progressing', reason: 'Progressing', message }];
}

function observedChildren(live: readonly KubeObject[]): ObservedChildren {
  const all = <C extends KubeObject>(type: ResourceType<C>): readonly C[] =>
    live.filter((child): child is C => typeKey(child) === typeKey(type));
  return { all, one: (type) => all(type)[0] };
}
