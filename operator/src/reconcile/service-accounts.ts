import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned, typeKey } from '../../../constructs/kube/resource-type';
import type { RenderedChild } from '../../../constructs/kind/render';
import type { ReconcileContext } from './context';
import { refOf } from './object-ref';
import type { Shortfall } from './shortfall';

const { ServiceAccount } = owned;

/** Names the account whose token the Secret is to hold. Source: `kubernetes.io/service-account-token`. */
const TOKEN_OF_ANNOTATION = 'kubernetes.io/service-account.name';

/** The rendered ServiceAccounts, and the other children. */
export function splitAccounts(children: readonly RenderedChild[]): {
  readonly accounts: readonly RenderedChild[];
  readonly others: readonly RenderedChild[];
} {
  const isAccount = ({ type }: RenderedChild): boolean => typeKey(type) === typeKey(ServiceAccount);
  return { accounts: children.filter(isAccount), others: children.filter((child) => !isAccount(child)) };
}

/**
 * The names of those rendered ServiceAccounts that do not exist, are being deleted, or belong to somebody else.
 *
 * @param isOurs judges a live ServiceAccount
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
 * Why a child must not be written yet: it would run under a ServiceAccount that is missing, or somebody else's with that account's rights, or it
 * would give that account rights or a token.
 *
 * @param missing see {@link missingAccounts}
 */
export function heldByAccount({ type, manifest }: RenderedChild, missing: readonly string[]): Shortfall | undefined {
  if (missing.length === 0) return undefined;
  const used = accountsUsedBy(manifest);
  const name = missing.find((account) => used.has(account));
  if (name === undefined) return undefined;
  const message = `${type.kind} "${manifest.metadata.name}": it uses the ServiceAccount "${name}", which is missing or somebody else's; it is applied when that is mended`;
  const { namespace } = manifest.metadata;
  const ref = namespace === undefined ? { name } : { name, namespace };
  const verdict = { state: 'progressing', reason: 'Waiting', message } as const;
  return { verdict, retry: false, awaited: { type: ServiceAccount, ref } };
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

/** `serviceAccount` is the older name of the field. Custom workloads bear it at a path of their own. */
function collect(value: unknown, used: Set<string>): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [field, inner] of Object.entries(value)) {
    if (typeof inner !== 'string') collect(inner, used);
    else if (field === 'serviceAccountName' || field === 'serviceAccount') used.add(inner);
  }
}
