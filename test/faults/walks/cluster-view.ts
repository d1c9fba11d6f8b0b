import { isDeepStrictEqual } from 'node:util';
import { childTypes, type AnyKind } from '../../../constructs/kind/kind';
import { MANAGED_BY, MANAGED_BY_LABEL, ANNOTATION_PREFIX } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { groupOf, typeKey, type ResourceType } from '../../../constructs/kube/resource-type';
import type { ApiClient } from '../../../operator/client/api-client';
import { ApiError } from '../../../operator/client/errors';
import type { ExpectedChild } from '../../../testing';
import { hasCondition } from '../../support/assertions';
import { operatorKinds } from '../../support/test-env';
import { findLeftoverField } from '../support/steady-state';
import type { LiveChild } from './drift';

const types = [...new Map(operatorKinds.flatMap(childTypes).map((type) => [typeKey(type), type])).values()];

/** A namespace at one moment: the objects of our kinds, and everything of the types that their children have. */
export class ClusterView {
  private constructor(
    private readonly owners: ReadonlyMap<AnyKind, readonly KubeObject[]>,
    private readonly objects: readonly LiveChild[],
  ) {}

  static async load(client: ApiClient, namespace: string): Promise<ClusterView> {
    const list = async (type: ResourceType): Promise<readonly KubeObject[]> => {
      const { items } = await client.list(type, { namespace });
      // Lists of built-in types leave these two out of their items.
      return items.map((item) => ({ ...item, apiVersion: type.apiVersion, kind: type.kind }));
    };
    const owners = operatorKinds.map(async (kind) => [kind, await list(kind.type)] as const);
    const objects = types.map(async (type) => (await list(type)).map((object): LiveChild => ({ type, object })));
    return new ClusterView(new Map(await Promise.all(owners)), (await Promise.all(objects)).flat());
  }

  ownersOf(kind: AnyKind): readonly KubeObject[] {
    return this.owners.get(kind) ?? [];
  }

  allOwners(): readonly KubeObject[] {
    return [...this.owners.values()].flat();
  }

  find(type: ResourceType, name: string): KubeObject | undefined {
    const key = typeKey(type);
    return this.objects.find((found) => typeKey(found.type) === key && found.object.metadata.name === name)?.object;
  }

  /** Whatever bears a sign of ours: the label, an annotation, or an owner of one of our kinds. */
  ownedObjects(): readonly LiveChild[] {
    return this.objects.filter(({ object: { metadata } }) => {
      const { labels = {}, annotations = {}, ownerReferences = [] } = metadata;
      const annotated = Object.keys(annotations).some((name) => name.startsWith(ANNOTATION_PREFIX));
      const owned = ownerReferences.some((reference) =>
        operatorKinds.some((kind) => kind.kind === reference.kind && kind.group === groupOf(reference)),
      );
      return labels[MANAGED_BY_LABEL] === MANAGED_BY || annotated || owned;
    });
  }

  /** How many owners stand, and how many of them are Ready. */
  summary(): string {
    const owners = this.allOwners();
    const count = owners.filter((owner) => hasCondition(owner, 'Ready', 'True')).length;
    return `${String(count)} of ${String(owners.length)} objects are Ready`;
  }

  /** Every object's version: two views with one text are two looks at the same state. */
  versions(): string {
    const all = [...this.allOwners(), ...this.objects.map(({ object }) => object)];
    return all
      .map(({ metadata: { uid = '', resourceVersion = '' } }) => `${uid}@${resourceVersion}`)
      .sort()
      .join(' ');
  }
}

/** How a child stands that an owner is to have. */
export type ChildVerdict =
  /** As it must. */
  | { readonly verdict: 'stands'; readonly live: KubeObject }
  /** It cannot: its name is somebody else's. */
  | { readonly verdict: 'taken' }
  /** It cannot: the server does not want it so. What stands of it, if anything, is ours. */
  | { readonly verdict: 'refused'; readonly live: KubeObject | undefined }
  /** It waits: the ServiceAccount that it uses is somebody else's. What stands of it, if anything, is ours, and as it was. */
  | { readonly verdict: 'held'; readonly live: KubeObject | undefined }
  /** It could, and does not. */
  | { readonly verdict: 'wrong'; readonly problem: string };

/**
 * Asks the server itself: writing what must stand, as a dry run, would either change nothing, or change something, or be refused. So the verdict
 * knows the server's defaults and normalisations without being taught any, and owes nothing to the operator's own way to compare.
 *
 * @param isOurs whether an object that stands under the name is one that the operator may write
 */
export async function verifyChild(
  client: ApiClient,
  { type, object }: ExpectedChild,
  live: KubeObject | undefined,
  isOurs: (live: KubeObject) => boolean,
): Promise<ChildVerdict> {
  const { name } = object.metadata;
  if (live !== undefined && !isOurs(live)) return { verdict: 'taken' };
  const written = await dryRun(client, type, object, live);
  if (written === 'refused') return { verdict: 'refused', live };
  if (live === undefined) return { verdict: 'wrong', problem: `${type.kind} "${name}" is missing` };
  const path = firstDifference(comparableFields(written), comparableFields(live));
  if (path !== undefined) return { verdict: 'wrong', problem: `${type.kind} "${name}" is not as rendered at ${path}` };
  const left = findLeftoverField(live);
  if (left !== undefined) return { verdict: 'wrong', problem: `${type.kind} "${name}" was left with ${left}` };
  return { verdict: 'stands', live };
}

async function dryRun(
  client: ApiClient,
  type: ResourceType,
  object: KubeObject,
  live: KubeObject | undefined,
): Promise<KubeObject | 'refused'> {
  const options = { fieldManager: 'kindred', dryRun: true };
  try {
    if (live === undefined) return await client.create(type, object, options);
    const { uid } = live.metadata;
    const metadata = { ...object.metadata, ...(uid === undefined ? {} : { uid }) };
    return await client.apply(type, { ...object, metadata }, options);
  } catch (error) {
    if (error instanceof ApiError && (error.code === 422 || error.code === 400)) return 'refused';
    // Deleted or replaced between the look and the question.
    if (error instanceof ApiError && (error.code === 409 || error.code === 404)) return {} as KubeObject;
    throw error;
  }
}

/** What a write of the same would leave as it is, and what nobody but the server or the child's own controller decides, left out. */
function comparableFields(object: KubeObject): object {
  const { labels = {}, annotations = {}, ownerReferences = [], deletionTimestamp } = { ...object.metadata };
  const body = Object.entries(object).filter(
    ([field]) => !['apiVersion', 'kind', 'metadata', 'status'].includes(field),
  );
  const owners = [...ownerReferences].sort((a, b) => (a.uid < b.uid ? -1 : 1));
  return { ...Object.fromEntries(body), metadata: { labels, annotations, ownerReferences: owners, deletionTimestamp } };
}

/** The path of the first difference between two JSON values, with both; undefined when they are the same. */
export function firstDifference(wanted: unknown, live: unknown, path = ''): string | undefined {
  if (isDeepStrictEqual(wanted, live)) return undefined;
  if (!isContainer(wanted) || !isContainer(live)) {
    return `${path}: ${text(wanted)} wanted, ${text(live)} stands`;
  }
  for (const name of new Set([...Object.keys(wanted), ...Object.keys(live)])) {
    const found = firstDifference(wanted[name], live[name], `${path}.${name}`);
    if (found !== undefined) return found;
  }
  // Only what JSON does not tell apart: undefined, and nothing.
  return undefined;
}

function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function text(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value);
}
