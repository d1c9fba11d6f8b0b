import type { Reason } from '../../constructs/kind/kind';
import type { RenderedChild } from '../../constructs/kind/render';
import { describeObject } from '../../constructs/kind/validate';
import { controllerReference } from '../../constructs/kube/envelope';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { owned, typeKey } from '../../constructs/kube/resource-type';
import { claimOf, getLiveMetadata, verifyOwner } from '../apply/ownership';
import { writeChild } from '../apply/write-child';
import { refOf } from '../client/api-client';
import type { ReconcileContext } from './context';
import {
  problemOfError,
  problemOfOutcome,
  combineProblems,
  problemOfMissingType,
  type ChildProblem,
  type ChildProblems,
} from './problems';

/** The result of applying all children of an object. */
export interface ApplyResult extends ChildProblems {
  /** At least one child was written. */
  readonly wrote: boolean;
  /** Children that are as rendered, but that another writer changes again and again. */
  readonly contests: ChildProblems;
}

/** Options of {@link applyChildren}. */
interface ApplyOptions {
  /** ServiceAccounts that the object shares and that do not exist. */
  readonly missing: readonly string[];
  /** A digest of what the children are rendered from. */
  readonly input: string;
  /** The children that are applied. The others are only looked at for the ServiceAccounts that are missing. @default all */
  readonly written?: ReadonlySet<RenderedChild>;
  /** Children that are left as they are if they exist. @default none */
  readonly onlyCreated?: ReadonlySet<RenderedChild>;
}

/**
 * Applies the children of an object, one after the other; a child that fails does not stop the others.
 * ServiceAccounts come first: a child that uses a missing one waits for it. Children that make another writer
 * act on a seeded field come last, and only if all went well before: the field has been handed over by then.
 *
 * @throws ApiError, TransportError when the failure is no fault of the child (the cache was behind, the
 * server is unreachable); NotLeaderError
 */
export async function applyChildren(
  context: ReconcileContext,
  owner: KubeObject,
  children: readonly RenderedChild[],
  { missing, input, written = new Set(children), onlyCreated = new Set() }: ApplyOptions,
): Promise<ApplyResult> {
  const writers = new Set(context.kind.seeds.map((seed) => typeKey(seed.writer)));
  const isWriter = (child: RenderedChild): boolean => writers.has(typeKey(child.type));
  const problems: ChildProblem[] = [];
  const contests: ChildProblem[] = [];
  let wrote = false;
  const apply = async (child: RenderedChild): Promise<void> => {
    const onlyCreate = onlyCreated.has(child);
    const { problem, wrote: wroteChild } = await applyChild(context, owner, { child, input, onlyCreate });
    if (problem !== undefined) (problem.isCorrected ? contests : problems).push(problem);
    wrote ||= wroteChild;
  };
  const { accounts, others } = splitAccounts(children);
  for (const account of accounts) if (written.has(account)) await apply(account);
  const lacking = [...missing, ...missingAccounts(context, accounts, (live) => claimOf(live, owner) === 'ours')];
  const applied = others.filter((child) => written.has(child));
  const ordered = writers.size === 0 ? applied : [...applied.filter((c) => !isWriter(c)), ...applied.filter(isWriter)];
  for (const child of ordered) {
    if (isWriter(child) && problems.length > 0) break;
    const held = serviceAccountProblem(child, lacking);
    if (held === undefined) await apply(child);
    else problems.push(held);
  }
  return { ...combineProblems(problems), wrote, contests: combineProblems(contests) };
}

interface ChildToApply extends Pick<ApplyOptions, 'input'> {
  readonly child: RenderedChild;
  readonly onlyCreate: boolean;
}

async function applyChild(
  context: ReconcileContext,
  owner: KubeObject,
  { child, input, onlyCreate }: ChildToApply,
): Promise<{ readonly problem: ChildProblem | undefined; readonly wrote: boolean }> {
  const { type, manifest } = child;
  const ref = refOf(manifest);
  const warn = (reason: Reason): void => context.record(owner, { type: 'Warning', action: 'Apply', ...reason });
  if (context.isMissing(type)) return { problem: problemOfMissingType(child, warn), wrote: false };
  let because: string | undefined;
  try {
    const outcome = await writeChild({
      client: context.client,
      cache: context.children(type),
      child,
      envelope: { ownerReferences: [controllerReference(owner)], ownerUid: owner.metadata.uid },
      claim: (live) => claimOf(live, owner),
      beforeAddingOwner: () => verifyOwnerIsLive(context, owner),
      driftBackoff: context.driftBackoff,
      ownerKey: ownerKeyOf(owner),
      projection: context.projection,
      input,
      onlyCreate,
      onDrift: (path) => (because = path),
    });
    const problem = problemOfOutcome({ kind: context.kind, owners: [owner] }, child, outcome, warn);
    const wrote = outcome.result === 'created' || outcome.result === 'applied';
    if (wrote) context.onWrite({ owner: describeObject(owner), type, ref, action: outcome.result, because });
    return { problem, wrote };
  } catch (error) {
    const problem = problemOfError(child, error, context.children(type).get(ref) !== undefined);
    const { reason, message } = problem.readiness;
    warn({ reason, message });
    return { problem, wrote: false };
  }
}

/** The UID, because an object that was deleted and created again has other children. */
function ownerKeyOf({ metadata: { uid = '' } }: KubeObject): string {
  return uid;
}

/**
 * With `--cascade=orphan` the garbage collector removes an owner from its children, and their watch may
 * report that before the owner's watch reports its deletion. If the owner were added again, the children
 * would be deleted with it.
 */
async function verifyOwnerIsLive(context: ReconcileContext, owner: KubeObject): Promise<void> {
  verifyOwner(context.kind, owner, await getLiveMetadata(context, owner));
}

const { ServiceAccount } = owned;

/** On a Secret: the ServiceAccount whose token it has. Source: `kubernetes.io/service-account-token`. */
const TOKEN_OF_ANNOTATION = 'kubernetes.io/service-account.name';

/** Separates the rendered ServiceAccounts from the other children. */
export function splitAccounts(children: readonly RenderedChild[]): {
  readonly accounts: readonly RenderedChild[];
  readonly others: readonly RenderedChild[];
} {
  const isAccount = ({ type }: RenderedChild): boolean => typeKey(type) === typeKey(ServiceAccount);
  return { accounts: children.filter(isAccount), others: children.filter((child) => !isAccount(child)) };
}

/**
 * The names of the rendered ServiceAccounts that do not exist, are being deleted, or belong to somebody else.
 *
 * @param isOurs whether a live ServiceAccount is ours
 */
export function missingAccounts(
  context: ReconcileContext,
  accounts: readonly RenderedChild[],
  isOurs: (live: KubeObject) => boolean,
): readonly string[] {
  return accounts
    .map(({ type, manifest }) => ({
      name: manifest.metadata.name,
      live: context.children(type).get(refOf(manifest))?.object,
    }))
    .filter(({ live }) => live === undefined || live.metadata.deletionTimestamp !== undefined || !isOurs(live))
    .map(({ name }) => name);
}

/**
 * Why a child must not be written yet: it would run under a ServiceAccount that is missing, or under somebody
 * else's with the rights of that one, or it would give that account rights or a token.
 *
 * @param missing see {@link missingAccounts}
 */
export function serviceAccountProblem(
  { type, manifest }: RenderedChild,
  missing: readonly string[],
): ChildProblem | undefined {
  if (missing.length === 0) return undefined;
  const used = accountsUsedBy(manifest);
  const name = missing.find((account) => used.has(account));
  if (name === undefined) return undefined;
  const message = `${type.kind} "${manifest.metadata.name}": it uses the ServiceAccount "${name}", which is missing or somebody else's; it is applied when that is mended`;
  const { namespace } = manifest.metadata;
  const ref = namespace === undefined ? { name } : { name, namespace };
  const readiness = { state: 'progressing', reason: 'Waiting', message } as const;
  return { readiness, retry: false, awaited: { type: ServiceAccount, ref } };
}

/** The ServiceAccounts that a child names: for its pods at any depth of its spec, as the subject of a binding, or for a token. */
function accountsUsedBy(manifest: KubeObject): ReadonlySet<string> {
  const used = new Set<string>();
  const { spec, subjects } = manifest as { readonly spec?: unknown; readonly subjects?: unknown };
  collect(spec, used);
  for (const subject of Array.isArray(subjects) ? (subjects as readonly Subject[]) : []) {
    if (subject.kind === ServiceAccount.kind && subject.name !== undefined) used.add(subject.name);
  }
  const tokenOf = manifest.metadata.annotations?.[TOKEN_OF_ANNOTATION];
  if (tokenOf !== undefined) used.add(tokenOf);
  return used;
}

interface Subject {
  readonly kind?: string;
  readonly name?: string;
}

/**
 * Collects ServiceAccount names at any depth, since custom workloads have the field in other places.
 * `serviceAccount` is its older name.
 */
function collect(value: unknown, used: Set<string>): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [field, inner] of Object.entries(value)) {
    if (typeof inner !== 'string') collect(inner, used);
    else if (field === 'serviceAccountName' || field === 'serviceAccount') used.add(inner);
  }
}
