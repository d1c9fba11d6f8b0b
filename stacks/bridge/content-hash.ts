import { createHash } from 'node:crypto';
import * as pulumi from '@pulumi/pulumi';
import type { Problem } from '../../constructs/kube/errors';
import { isObject } from '../../constructs/kube/kube-object';
import { groupKind, withMetadata, type Manifest, type RenderedObject } from './manifest';
import { effectiveOptions } from './options';
import { resolveTokens } from './resolve-tokens';
import { currentTokens, textToken, tokenFor } from './tokens';

/** Objects named by their content, and the references to them. */
interface ContentHashResult {
  readonly objects: readonly RenderedObject[];
  /** References by a name with a content hash, as pairs of indices. */
  readonly references: readonly (readonly [from: number, to: number])[];
  readonly problems: readonly Problem[];
}

const HASH_LENGTH = 10;
const MAX_NAME = 253;

/**
 * Adds a content hash to the names of ConfigMaps and Secrets with `contentHashedName`, and updates the
 * references to them in the same namespace. A name with the hash of a secret is secret, and one with the hash
 * of an unknown value is unknown.
 *
 * @param tree name of the tree
 */
export function applyContentHashNames(tree: string, objects: readonly RenderedObject[]): ContentHashResult {
  const problems: Problem[] = [];
  const renamed = new Map<string, { readonly name: string; readonly index: number }>();
  const named = objects.map((object, index) => {
    const { construct, path, manifest } = object;
    const options = effectiveOptions(construct);
    const kind = referable(manifest);
    if (kind === undefined) return object;
    const settled = options.immutable === undefined ? manifest : { ...manifest, immutable: options.immutable };
    if (options.contentHashedName !== true) return { ...object, manifest: settled };
    const name = hashedName(tree, path, settled);
    if (String(settled.metadata.name).length + HASH_LENGTH + 1 > MAX_NAME) {
      problems.push({ path, message: `its name is too long to add a hash: at most ${MAX_NAME} characters in all` });
    }
    renamed.set(keyOf(kind, manifest.metadata.namespace, String(manifest.metadata.name)), { name, index });
    return { ...object, manifest: withMetadata(settled, { name }) };
  });
  const references: (readonly [number, number])[] = [];
  const following = named.map((object, from) => {
    const { namespace } = object.manifest.metadata;
    const manifest = renameReferences(object.manifest, (kind, name) => {
      const found = renamed.get(keyOf(kind, namespace, name));
      if (found !== undefined) references.push([from, found.index]);
      return found?.name;
    });
    return { ...object, manifest };
  });
  return { objects: renamed.size === 0 ? named : following, references, problems };
}

/** The kinds that can have a content hash in their name. */
type Referable = 'ConfigMap' | 'Secret';

function referable(manifest: Manifest): Referable | undefined {
  const id = groupKind(manifest);
  return id === '/ConfigMap' ? 'ConfigMap' : id === '/Secret' ? 'Secret' : undefined;
}

function keyOf(kind: Referable, namespace: unknown, name: string): string {
  return JSON.stringify([kind, namespace, name]);
}

/** The name, or a token for it if the content contains Outputs. */
function hashedName(tree: string, path: string, { kind, metadata, ...fields }: Manifest): string {
  const content = ['binaryData', 'data', 'stringData', 'type'].map((field) => fields[field] ?? null);
  // The name may contain Outputs too.
  const { value, used } = resolveTokens(currentTokens(), `${tree}/${path}`, [metadata.name, [kind, content]]);
  if (used.size === 0) return nameOf(value);
  return textToken(tokenFor(pulumi.output<object>(value as object).apply(nameOf), `${tree}/${path}#metadata.name`).id);
}

function nameOf(resolved: unknown): string {
  const [name, content] = resolved as readonly [unknown, unknown];
  return `${String(name)}-${hashOf(content)}`;
}

function hashOf(value: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(sortKeys(value)))
    .digest('hex')
    .slice(0, HASH_LENGTH);
}

/** A JSON value with its keys sorted, so that equal values have equal texts. */
export function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortKeys(value[key])]),
  );
}

/** Returns the new name for a reference, or undefined to leave it. */
type Rename = (kind: Referable, name: string) => string | undefined;

/** A path into a manifest; `*` stands for every item of a list. */
type Pattern = readonly string[];

const pattern = (path: string): Pattern => path.split('.');

/**
 * Where a kind has its pod spec. Source: API reference of Kubernetes 1.36, kinds with a PodSpec or a
 * PodTemplateSpec.
 */
const podSpecs: Readonly<Record<string, Pattern>> = {
  '/Pod': pattern('spec'),
  '/PodTemplate': pattern('template.spec'),
  '/ReplicationController': pattern('spec.template.spec'),
  'apps/DaemonSet': pattern('spec.template.spec'),
  'apps/Deployment': pattern('spec.template.spec'),
  'apps/ReplicaSet': pattern('spec.template.spec'),
  'apps/StatefulSet': pattern('spec.template.spec'),
  'batch/CronJob': pattern('spec.jobTemplate.spec.template.spec'),
  'batch/Job': pattern('spec.template.spec'),
};

const containers = ['containers', 'initContainers', 'ephemeralContainers'];
const volumeSecrets = ['cephfs', 'cinder', 'flexVolume', 'iscsi', 'rbd', 'scaleIO', 'storageos'];

/** Fields of a pod spec that name a ConfigMap or Secret of the pod's namespace. Source: API reference of Kubernetes 1.36, PodSpec. */
const podReferences: readonly (readonly [Referable, Pattern])[] = [
  ['ConfigMap', pattern('volumes.*.configMap.name')],
  ['ConfigMap', pattern('volumes.*.projected.sources.*.configMap.name')],
  ['Secret', pattern('volumes.*.secret.secretName')],
  ['Secret', pattern('volumes.*.projected.sources.*.secret.name')],
  ['Secret', pattern('volumes.*.azureFile.secretName')],
  ['Secret', pattern('volumes.*.csi.nodePublishSecretRef.name')],
  ...volumeSecrets.map((volume) => ['Secret', pattern(`volumes.*.${volume}.secretRef.name`)] as const),
  ['Secret', pattern('imagePullSecrets.*.name')],
  ...containers.flatMap((list): (readonly [Referable, Pattern])[] => [
    ['ConfigMap', pattern(`${list}.*.env.*.valueFrom.configMapKeyRef.name`)],
    ['ConfigMap', pattern(`${list}.*.envFrom.*.configMapRef.name`)],
    ['Secret', pattern(`${list}.*.env.*.valueFrom.secretKeyRef.name`)],
    ['Secret', pattern(`${list}.*.envFrom.*.secretRef.name`)],
  ]),
];

/** The same for other kinds. Source: API reference of Kubernetes 1.36. */
const otherReferences: Readonly<Record<string, readonly (readonly [Referable, Pattern])[]>> = {
  '/ServiceAccount': [
    ['Secret', pattern('imagePullSecrets.*.name')],
    ['Secret', pattern('secrets.*.name')],
  ],
  'networking.k8s.io/Ingress': [['Secret', pattern('spec.tls.*.secretName')]],
};

/**
 * A manifest with its references to ConfigMaps and Secrets renamed: in pod specs, in ServiceAccounts and in
 * the TLS of Ingresses. References in Roles' `resourceNames`, in arguments and in custom resources are not.
 */
function renameReferences(manifest: Manifest, rename: Rename): Manifest {
  const id = groupKind(manifest);
  const podSpec = podSpecs[id];
  const references = [
    ...(podSpec === undefined ? [] : podReferences.map(([kind, path]) => [kind, [...podSpec, ...path]] as const)),
    ...(otherReferences[id] ?? []),
  ];
  return references.reduce<Manifest>(
    (result, [kind, path]) => replaceAt(result, path, (name) => rename(kind, name)) as Manifest,
    manifest,
  );
}

function replaceAt(value: unknown, path: Pattern, replace: (text: string) => string | undefined): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return typeof value === 'string' ? (replace(value) ?? value) : value;
  if (step === '*') {
    return Array.isArray(value) ? value.map((item: unknown) => replaceAt(item, rest, replace)) : value;
  }
  if (!isObject(value) || !Object.hasOwn(value, step)) return value;
  return { ...value, [step]: replaceAt(value[step], rest, replace) };
}
