import type { KubeObject } from '../../../constructs/kube/kube-object';

/** A change by another client to one of the rich children. */
export interface NamedChange {
  readonly kind: string;
  readonly what: string;
  readonly steps: readonly Step[];
}

/** What is done to the value at a path, whose steps are separated by blanks. */
type Step =
  | readonly ['set' | 'push' | 'unshift', path: string, value: unknown]
  | readonly ['remove' | 'reverse', path: string];

function change(kind: string, what: string, ...steps: readonly Step[]): NamedChange {
  return { kind, what, steps };
}

const POD = 'spec template spec';

/** The changes whose answers are recorded, for a comparison without a server. */
export const namedChanges: readonly NamedChange[] = [
  change('Service', 'adds a key to the selector', ['set', 'spec selector tier', 'none']),
  change('Service', 'sets a default otherwise', ['set', 'spec internalTrafficPolicy', 'Local']),
  change('Service', 'adds a port', ['push', 'spec ports', { name: 'more', port: 22 }]),
  change(
    'Deployment',
    'makes an emptyDir a hostPath',
    ['remove', `${POD} volumes 0 emptyDir`],
    ['set', `${POD} volumes 0 hostPath`, { path: '/etc' }],
  ),
  change('Deployment', 'gives an emptyDir a medium', ['set', `${POD} volumes 0 emptyDir medium`, 'Memory']),
  change('Deployment', 'reorders the initContainers', ['reverse', `${POD} initContainers`]),
  change('Deployment', 'puts a container in front', ['unshift', `${POD} containers`, { name: 'more', image: 'x' }]),
  change('Deployment', 'adds a label', ['set', 'metadata labels more', 'x']),
  change('Deployment', 'removes a label', ['remove', 'metadata labels tier']),
  change('Deployment', 'gives an empty variable a value', ['set', `${POD} containers 0 env 1 value`, 'x']),
  change('Deployment', 'adds a capability', [
    'push',
    `${POD} containers 1 securityContext capabilities add`,
    'SYS_ADMIN',
  ]),
  change('Deployment', 'adds to the command of a hook', [
    'push',
    `${POD} containers 1 lifecycle preStop exec command`,
    'x',
  ]),
  change('Deployment', 'doubles a variable', ['push', `${POD} containers 0 env`, { name: 'PLAIN', value: 'y' }]),
  change('StatefulSet', 'adds a toleration', ['push', `${POD} tolerations`, { key: 'more', operator: 'Exists' }]),
  change('DaemonSet', 'adds to the nodeSelector', ['set', `${POD} nodeSelector more`, 'x']),
  change('Job', 'resumes it', ['set', 'spec suspend', false]),
  change('CronJob', 'adds a variable', ['push', `spec jobTemplate ${POD} containers 0 env`, { name: 'MORE' }]),
  change('Ingress', 'adds a host', ['push', 'spec tls 0 hosts', 'more.example.com']),
  change('NetworkPolicy', 'adds a port', ['push', 'spec ingress 0 ports', { port: 22, protocol: 'TCP' }]),
  change('NetworkPolicy', 'narrows the podSelector', ['set', 'spec podSelector', { matchLabels: { a: 'b' } }]),
  change('HorizontalPodAutoscaler', 'adds a policy', [
    'push',
    'spec behavior scaleDown policies',
    { type: 'Percent', value: 10, periodSeconds: 60 },
  ]),
  change('PodDisruptionBudget', 'adds to the selector', ['set', 'spec selector matchLabels more', 'x']),
  change('Role', 'adds a verb', ['push', 'rules 0 verbs', 'delete']),
  change('RoleBinding', 'adds a subject', ['push', 'subjects', { kind: 'ServiceAccount', name: 'more' }]),
  change('ConfigMap', 'adds a key', ['set', 'data more', 'x']),
  change('ConfigMap', 'removes a key that is empty', ['remove', 'data empty']),
  change('Secret', 'changes a value', ['set', 'data password', 'eQ==']),
  change('ServiceAccount', 'adds a pull secret', ['push', 'imagePullSecrets', { name: 'more' }]),
  change('PersistentVolumeClaim', 'changes a label', ['set', 'metadata labels app', 'other']),
  change('Structured', 'changes the second string of a list', ['set', 'spec env 1', 'B=3']),
  change('Structured', 'adds an item without a name', ['push', 'spec volumes', { path: '/c' }]),
  change('Structured', 'adds an item with keys', ['push', 'spec containers', { host: 'c', port: 3 }]),
  change('Structured', 'removes an empty map', ['remove', 'spec granular two']),
  change('Structured', 'adds to an atomic map', ['set', 'spec selector tier', 'none']),
  change('Structured', 'writes a quantity otherwise', ['set', 'spec limits cpu', '1000m']),
  change('Structured', 'adds to a list that is alone in its map', ['push', 'spec inner only list', 'b']),
  change('Schemaless', 'adds a port', ['push', 'spec ports', { port: 22 }]),
  change('Schemaless', 'adds a field', ['set', 'spec more', 'x']),
];

/** A copy of an object with a change. */
export function withChange(object: KubeObject, { steps }: NamedChange): KubeObject {
  const copy = structuredClone(object);
  for (const [op, path, value] of steps) {
    const names = path.split(' ');
    const last = names.pop() ?? '';
    const holder = names.reduce((at, name) => at[name] as Fields, copy as unknown as Fields);
    if (op === 'set') holder[last] = value;
    else if (op === 'remove') Reflect.deleteProperty(holder, last);
    else if (op === 'reverse') (holder[last] as unknown[]).reverse();
    else (holder[last] as unknown[])[op](value);
  }
  return copy;
}

type Fields = Record<string, unknown>;

/** What a server answered. */
export interface Recording {
  /** By kind: the child after the operator's POST. */
  readonly created: Readonly<Record<string, KubeObject>>;
  readonly answers: readonly RecordedAnswer[];
}

/** What a server answered to one of the changes. */
export interface RecordedAnswer {
  readonly kind: string;
  readonly what: string;
  /** The child after the change. */
  readonly live: KubeObject;
  /** A forced dry run of the apply; null when the server refuses it as invalid. */
  readonly dryRun: KubeObject | null;
}
