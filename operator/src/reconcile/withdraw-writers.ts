import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { RenderedChild } from '../../../constructs/kind/render';
import { typeKey, type ResourceType } from '../../../constructs/kube/resource-type';
import type { ReconcileContext } from './context';
import { prune, type Pruned } from './prune';
import type { Shortfall } from './shortfall';
import { refOf } from './object-ref';

/** What came of taking seeded fields back. */
export interface Withdrawn {
  /** The children that may be applied. */
  readonly free: readonly RenderedChild[];
  /** Why the others may not yet. */
  readonly shortfalls: readonly Shortfall[];
}

/**
 * Deletes the objects that made another writer act on a seeded field and are not rendered any more. The field is taken back only after they are
 * gone: the writer would write once more. One that a finalizer holds goes on writing, so the children that bear the field wait for its end, of which
 * its event tells. While one of their type is rendered, the field is left to it, so that those which are not rendered any more can wait for the
 * other children.
 *
 * @throws ApiError, TransportError
 */
export async function withdrawWriters(
  context: ReconcileContext,
  object: KubeObject,
  children: readonly RenderedChild[],
): Promise<Withdrawn> {
  const isRendered = (writer: ResourceType): boolean => children.some(({ type }) => typeKey(type) === typeKey(writer));
  const seeds = context.kind.seeds.filter(({ writer }) => !isRendered(writer));
  if (seeds.length === 0) return { free: children, shortfalls: [] };
  const writers = new Map(seeds.map(({ writer }) => [typeKey(writer), writer] as const));
  const { standing, shortfalls } = await prune(context, object, children, [...writers.values()]);
  if (standing.length === 0) return { free: children, shortfalls };
  const writing = new Set(standing.map(({ type }) => typeKey(type)));
  const bearers = new Set(seeds.filter(({ writer }) => writing.has(typeKey(writer))).map(({ of }) => typeKey(of)));
  const waits = ({ type, manifest }: RenderedChild): boolean =>
    bearers.has(typeKey(type)) && context.children(type).get(refOf(manifest)) !== undefined;
  const waiting = children.filter(waits).map(({ type }) => waitingFor(type, standing));
  return { free: children.filter((child) => !waits(child)), shortfalls: [...shortfalls, ...waiting] };
}

function waitingFor(bearer: ResourceType, standing: Pruned['standing']): Shortfall {
  const writers = standing.map(({ type, live }) => `${type.kind} "${live.metadata.name}"`).join(', ');
  const message = `${writers} is being deleted; the ${bearer.kind} that it writes to is applied when it is gone`;
  return { verdict: { state: 'progressing', reason: 'Waiting', message }, retry: false };
}
