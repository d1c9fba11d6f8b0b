import type { KubeObject } from '../../../constructs/kube/kube-object';

type Fields = Record<string, unknown>;

/** A number from 0 up to a bound; the same sequence for the same seed (mulberry32, which is in the public domain). */
export function randomBelow(seed: number): (bound: number) => number {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
}

/** A place in an object: a field of a map or an item of a list. */
interface Place {
  readonly holder: Fields | unknown[];
  readonly step: string;
  readonly path: string;
}

/** What another client did to an object, and the object after it. */
export interface ForeignChange {
  readonly what: string;
  readonly object: KubeObject;
}

/**
 * Changes one place of an object as another client would: it adds, doubles, removes, replaces or reorders. The server may
 * refuse the result.
 */
export function changeAtRandom(live: KubeObject, below: (bound: number) => number): ForeignChange {
  const object = structuredClone(live);
  const places = placesOf(object);
  const pick = <T>(values: readonly T[]): T => values[below(values.length)] as T;
  const place = pick(places);
  const value = valueAt(place);
  const kinds = Array.isArray(value)
    ? ['add', 'double', 'reorder', 'remove', 'replace']
    : isFields(value)
      ? ['add', 'add', 'remove', 'replace']
      : ['replace', 'replace', 'remove', 'add'];
  const kind = pick(kinds);
  if (kind === 'remove') remove(place);
  else if (kind === 'reorder') (value as unknown[]).reverse();
  else if (kind === 'double') double(value as unknown[], below);
  else if (kind === 'add') add(place, below);
  else set(place, replaced(value, below));
  return { what: `${kind} ${place.path}`, object };
}

/** A second item of one key, which the API accepts in some lists. */
function double(list: unknown[], below: (bound: number) => number): void {
  const item = list[below(list.length || 1)];
  const last = isFields(item) ? Object.keys(item).at(-1) : undefined;
  const other = isFields(item) && last !== undefined ? { ...item, [last]: changedScalar(item[last]) } : item;
  list.splice(below(list.length + 1), 0, structuredClone(below(2) === 0 ? item : other));
}

function add(place: Place, below: (bound: number) => number): void {
  const value = valueAt(place);
  const field = lastField(place.path);
  const additions = ADDITIONS[field];
  if (Array.isArray(value)) {
    const copy = additions?.[below(additions.length)] ?? variantOf(value[below(value.length || 1)]);
    value.splice(below(value.length + 1), 0, structuredClone(copy));
  } else if (isFields(value)) {
    if (additions !== undefined) Object.assign(value, structuredClone(additions[below(additions.length)]));
    else value[`added${String(below(3))}`] = structuredClone(Object.values(value)[0] ?? 'added');
  } else {
    set(place, replaced(value, below));
  }
}

/** Fields that the API knows where no sibling shows how an addition may look. */
const ADDITIONS: Readonly<Record<string, readonly unknown[]>> = {
  emptyDir: [{ medium: 'Memory' }, { sizeLimit: '1Gi' }],
  containers: [{ name: 'injected', image: 'example.com/injected:1' }],
  initContainers: [{ name: 'injected', image: 'example.com/injected:1' }],
  spec: [
    { hostNetwork: true },
    { dnsPolicy: 'Default' },
    { nodeName: 'n' },
    { minReadySeconds: 3 },
    { revisionHistoryLimit: 3 },
    { priorityClassName: 'high' },
    { externalTrafficPolicy: 'Local', type: 'NodePort' },
    { sessionAffinity: 'None' },
    { egress: [] },
    { startingDeadlineSeconds: 9 },
  ],
  securityContext: [{ runAsUser: 5 }, { fsGroup: 7 }, { privileged: true }],
  resources: [{ limits: { cpu: '2' } }, { requests: { cpu: '2' } }],
  requests: [{ cpu: '2' }, { 'ephemeral-storage': '1Gi' }],
  capabilities: [{ add: ['SYS_TIME'] }],
  podSelector: [{ matchLabels: { a: 'b' } }],
  namespaceSelector: [{ matchLabels: { a: 'b' } }],
  tolerations: [{ key: 'more', operator: 'Exists' }],
  volumes: [{ name: 'more', emptyDir: {} }],
  env: [{ name: 'MORE', value: '1' }, 'MORE=1'],
  ports: [{ name: 'more', containerPort: 22 }, { name: 'more', port: 22 }, { port: 22 }],
  volumeMounts: [{ name: 'tmp', mountPath: '/more' }],
  verbs: ['delete', '*'],
  rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['*'] }],
  subjects: [{ kind: 'ServiceAccount', name: 'more' }],
  ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'more', uid: 'more' }],
  finalizers: ['example.com/more'],
  to: [{ ipBlock: { cidr: '0.0.0.0/0' } }],
  from: [{ ipBlock: { cidr: '0.0.0.0/0' } }],
  data: [{ more: 'bW9yZQ==' }, { a: 'Mg==' }],
  behavior: [{ scaleUp: { stabilizationWindowSeconds: 9 } }],
  strategy: [{ type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } }],
  two: [{ more: 1 }],
  granular: [{ late: 'soon' }, { text: 'x' }, { list: ['x'] }, { off: true }],
  one: [{ b: 8 }, { a: 3 }],
};

function variantOf(item: unknown): unknown {
  if (isFields(item)) {
    const [first] = Object.keys(item);
    return first === undefined ? { added: '1' } : { ...item, [first]: changedScalar(item[first]) };
  }
  return changedScalar(item);
}

function replaced(value: unknown, below: (bound: number) => number): unknown {
  if (Array.isArray(value)) return below(2) === 0 ? [] : value.slice(1);
  if (isFields(value)) return {};
  return below(6) === 0 ? EMPTY_OF[typeof value] : changedScalar(value);
}

const EMPTY_OF: Readonly<Record<string, unknown>> = { string: '', number: 0, boolean: false };

function changedScalar(value: unknown): unknown {
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  const known: Readonly<Record<string, string>> = {
    TCP: 'UDP',
    UDP: 'TCP',
    '1000m': '1',
    '1': '1000m',
    '1024Mi': '1Gi',
    Recreate: 'RollingUpdate',
    ClientIP: 'None',
    Exists: 'Equal',
    Prefix: 'Exact',
    Always: 'IfNotPresent',
    eA: 'eQ',
    '@hourly': '@daily',
    'Etc/UTC': 'Europe/Berlin',
    ClusterFirst: 'Default',
    OnDelete: 'RollingUpdate',
    '512Mi': '1Gi',
    'eA==': 'eQ==',
    AAEC: 'AAED',
    'metadata.name': 'metadata.namespace',
    '64Mi': '65536Ki',
  };
  return known[String(value)] ?? `${String(value)}x`;
}

/** Every place whose value another client may change. */
function placesOf(object: KubeObject): readonly Place[] {
  const places: Place[] = [];
  const walk = (holder: Fields | unknown[], path: string, skip: ReadonlySet<string>): void => {
    for (const [step, value] of Object.entries(holder)) {
      if (skip.has(step)) continue;
      const at = Array.isArray(holder) ? `${path}[${step}]` : `${path}.${step}`;
      places.push({ holder, step, path: at });
      if (typeof value === 'object' && value !== null) walk(value as Fields | unknown[], at, NONE);
    }
  };
  const { metadata, ...body } = object as unknown as { metadata: Fields } & Fields;
  walk(metadata, 'metadata', SERVER_FIELDS);
  walk(body, '', NOT_CHANGED);
  return places.map((place) => (place.holder === body ? { ...place, holder: object } : place));
}

const NONE: ReadonlySet<string> = new Set();
const NOT_CHANGED: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'status']);
const SERVER_FIELDS: ReadonlySet<string> = new Set([
  ...['name', 'namespace', 'uid', 'resourceVersion', 'generation', 'creationTimestamp', 'managedFields'],
  ...['deletionTimestamp', 'deletionGracePeriodSeconds'],
]);

function lastField(path: string): string {
  return (
    path
      .replaceAll(/\[\d+\]/g, '')
      .split('.')
      .at(-1) ?? ''
  );
}

function valueAt({ holder, step }: Place): unknown {
  return (holder as Fields)[step];
}

function set({ holder, step }: Place, value: unknown): void {
  (holder as Fields)[step] = value;
}

function remove({ holder, step }: Place): void {
  if (Array.isArray(holder)) holder.splice(Number(step), 1);
  else Reflect.deleteProperty(holder, step);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
