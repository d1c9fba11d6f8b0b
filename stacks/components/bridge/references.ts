import { isObject } from '../../../constructs/kube/kube-object';
import { groupKind, type Manifest } from './manifest';

/** What can be referred to by a name that follows from its content. */
export type Referable = 'ConfigMap' | 'Secret';

/** Gives a new value for a reference, or undefined to leave it. */
export type Rename = (kind: Referable, name: string) => string | undefined;

/** A path into a manifest; `*` stands for every item of a list. */
type Pattern = readonly string[];

const pattern = (path: string): Pattern => path.split('.');

/** Where a pod spec stands. Source: API reference of Kubernetes 1.36, kinds with a PodSpec or a PodTemplateSpec. */
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
 * A manifest with the names of ConfigMaps and Secrets replaced where it refers to them: in pod specs, ServiceAccounts and the TLS of
 * Ingresses. Roles' `resourceNames`, arguments and CRs are not looked at.
 */
export function renameReferences(manifest: Manifest, rename: Rename): Manifest {
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
