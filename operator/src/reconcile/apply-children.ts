import { controllerReference } from '../../../constructs/kube/envelope';
import type { Reason } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { RenderedChild } from '../../../constructs/kind/render';
import { typeKey } from '../../../constructs/kube/resource-type';
import { describeObject } from '../../../constructs/kind/validate';
import { claimOf } from './claim';
import type { ReconcileContext } from './context';
import { refOf } from './object-ref';
import { heldByAccount, missingAccounts, splitAccounts } from './service-accounts';
import { failureOf, shortfallOf, sumUp, typeMissing, type Shortfall, type Shortfalls } from './shortfall';
import { lookAt, refuseUnheardEnd } from './unheard-end';
import { writeChild, type ChildOutcome } from './write-child';

/** What came of applying all children of an object. */
export interface Applied extends Shortfalls {
  /** At least one child was written. */
  readonly wrote: boolean;
}

/**
 * Applies the children of an object, one after the other; a child that fails does not hold back the others. The children that make
 * another writer act on a seeded field come last, and only if all went well before: the field is handed over by then. ServiceAccounts come
 * first: what uses one that could not be had waits for it.
 *
 * @param missing ServiceAccounts that the object shares and that are not there
 * @throws ApiError, TransportError when the failure is no fault of the child (the cache was behind, the server is away); NotLeaderError
 */
export async function applyChildren(
  context: ReconcileContext,
  owner: KubeObject,
  children: readonly RenderedChild[],
  missing: readonly string[] = [],
): Promise<Applied> {
  const writers = new Set(context.kind.seeds.map((seed) => typeKey(seed.writer)));
  const isWriter = (child: RenderedChild): boolean => writers.has(typeKey(child.type));
  const shortfalls: Shortfall[] = [];
  let wrote = false;
  const apply = async (child: RenderedChild): Promise<void> => {
    const outcome = await applyChild(context, owner, child);
    if ('verdict' in outcome) shortfalls.push(outcome);
    else wrote ||= outcome.result !== 'unchanged';
  };
  const { accounts, others } = splitAccounts(children);
  for (const account of accounts) await apply(account);
  const lacking = [...missing, ...missingAccounts(context, accounts, (live) => claimOf(live, owner) === 'ours')];
  const ordered = writers.size === 0 ? others : [...others.filter((c) => !isWriter(c)), ...others.filter(isWriter)];
  for (const child of ordered) {
    if (isWriter(child) && shortfalls.length > 0) break;
    const held = heldByAccount(child, lacking);
    if (held === undefined) await apply(child);
    else shortfalls.push(held);
  }
  return { ...sumUp(shortfalls), wrote };
}

async function applyChild(
  context: ReconcileContext,
  owner: KubeObject,
  child: RenderedChild,
): Promise<ChildOutcome | Shortfall> {
  const { type, manifest } = child;
  const ref = refOf(manifest);
  const warn = (reason: Reason): void => context.record(owner, { type: 'Warning', action: 'Apply', ...reason });
  if (context.isMissing(type)) return typeMissing(child, warn);
  let because: string | undefined;
  try {
    const outcome = await writeChild({
      client: context.client,
      cache: context.children(type),
      child,
      envelope: { ownerReferences: [controllerReference(owner)], ownerUid: owner.metadata.uid },
      claim: (live) => claimOf(live, owner),
      beforeOwning: () => refuseIfGoing(context, owner),
      contests: context.contests,
      holder: holderOf(owner),
      shapes: context.shapes,
      onDrift: (path) => (because = path),
    });
    const shortfall = shortfallOf({ kind: context.kind, owners: [owner] }, child, outcome, warn);
    if (shortfall !== undefined) return shortfall;
    if (outcome.result === 'created' || outcome.result === 'applied') {
      context.onWrite({ owner: describeObject(owner), type, ref, action: outcome.result, because });
    }
    return outcome;
  } catch (error) {
    const shortfall = failureOf(child, error);
    const { reason, message } = shortfall.verdict;
    warn({ reason, message });
    return shortfall;
  }
}

/** An object that was created again holds other children than the one before. */
function holderOf({ metadata: { uid = '' } }: KubeObject): string {
  return uid;
}

/**
 * With `--cascade=orphan` the garbage collector takes an owner out of its children, of which their watch may tell before that of the owner
 * tells of its deletion. Entered again, the owner would take them with it.
 */
async function refuseIfGoing(context: ReconcileContext, owner: KubeObject): Promise<void> {
  refuseUnheardEnd(context.kind, owner, await lookAt(context, owner));
}
