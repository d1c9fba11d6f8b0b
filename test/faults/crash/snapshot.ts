import { HASH_ANNOTATION } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ManagedFieldsEntry } from '../../../operator/apply/managed-fields';

/** How things stand, by `Kind name`; two lives that went alike have equal ones. */
export type Snapshot = Readonly<Record<string, unknown>>;

/** Words that differ from life to life, and what is said instead: UIDs, the namespace. */
export type Aliases = ReadonlyMap<string, string>;

/** Written by controllers of the cluster, at their own pace. */
const CLUSTERS_MANAGER = 'kube-controller-manager';
const CLUSTERS_ANNOTATIONS = ['deployment.kubernetes.io/revision'];
/** A function of what was rendered, the namespace included; that it fits is seen where the children are. */
const HASHES = [HASH_ANNOTATION];
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/**
 * Takes down how objects stand, without what differs between two lives by its nature: UIDs, versions, times, addresses that the server gave,
 * and what controllers of the cluster write. Who owns which field stays: a crash must leave no field to nobody, or to two.
 *
 * @param owners - of these the status is ours, and part of it
 */
export function snapshotOf(owners: readonly KubeObject[], children: readonly KubeObject[], aliases: Aliases): Snapshot {
  const objects = [...owners, ...children.map((child) => without(child, ['status']))];
  const entries = objects.map((object) => [keyOf(object), aliased(plain(object), aliases)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function keyOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata.name}`;
}

function plain(object: KubeObject): object {
  const { metadata, spec } = object as KubeObject & { readonly spec?: object };
  const { annotations, managedFields = [] } = metadata as WireMeta;
  return {
    ...object,
    // The addresses of a Service are the server's choice.
    ...(spec === undefined ? {} : { spec: without(spec, ['clusterIP', 'clusterIPs']) }),
    metadata: {
      ...without(metadata, ['uid', 'resourceVersion', 'creationTimestamp', 'namespace', 'managedFields']),
      annotations: annotationsOf(annotations),
      managers: fieldsOf(managedFields),
    },
  };
}

type WireMeta = KubeObject['metadata'] & { readonly managedFields?: readonly ManagedFieldsEntry[] };

function without<T extends object>(object: T, names: readonly string[]): T {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name))) as T;
}

function annotationsOf(annotations: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const kept = Object.entries(annotations).filter(([name]) => !CLUSTERS_ANNOTATIONS.includes(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, HASHES.includes(name) ? '<hash>' : value]));
}

/** In the order of their names: the server's is that of their times. */
function fieldsOf(entries: readonly ManagedFieldsEntry[]): Readonly<Record<string, unknown>> {
  const ours = entries.filter(({ manager }) => manager !== CLUSTERS_MANAGER);
  const named = ours.map(({ manager = '', operation = '', subresource = '', fieldsV1 }) => {
    return [[manager, operation, subresource].join(' ').trimEnd(), fieldsV1] as const;
  });
  return Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function aliased(object: object, aliases: Aliases): unknown {
  let text = JSON.stringify(object, (_, value: unknown) => {
    return typeof value === 'string' && TIME.test(value) ? '<time>' : value;
  });
  for (const [word, alias] of aliases) text = text.replaceAll(word, alias);
  return JSON.parse(text);
}
