import type { AnyKind, KindObject, ObservedChildren } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { renderShared, type RenderedChild, type SharedKey } from '../../../constructs/kind/render';
import { typeKey, type ResourceType } from '../../../constructs/kube/resource-type';
import { worstOf } from './shortfall';
import { childState, type ChildState } from './child-status';
import { claimOf } from './claim';
import type { Verdict } from './conditions';
import type { ReconcileContext } from './context';
import { refOf } from './object-ref';

/** What stands on the server of an object's children. */
export interface Observed {
  /** Why the object is not ready yet; undefined when every child is current. */
  readonly worst: Verdict | undefined;
  /** The kind's own status fields. */
  readonly observed: Readonly<Record<string, unknown>>;
  /** A child's state changes by time alone: look again after so many milliseconds. */
  readonly afterMs?: number;
}

/** An object with all that it renders. */
export interface Rendered {
  /** The object, its spec's defaults applied. */
  readonly self: KindObject<AnyKind>;
  readonly children: readonly RenderedChild[];
  readonly shared: readonly SharedKey[];
}

/** Reads the children of an object back and has the kind observe them. What is somebody else's under a child's name is not seen. */
export function observe(context: ReconcileContext, rendered: Rendered): Observed {
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
