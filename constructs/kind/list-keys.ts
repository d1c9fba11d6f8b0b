import { formatProblems, propertyPath, RenderError, type PathStep, type Problem } from '../kube/errors';
import { isObject, type KubeObject } from '../kube/kube-object';
import { typeKey, type ResourceType } from '../kube/resource-type';

/** Where lists with keys and sets are, by field: in an object, in each value of a map, in each item of a list. */
type Fields = Readonly<Record<string, Place>>;

type Place =
  | { readonly is: 'object' | 'map'; readonly fields: Fields }
  | { readonly is: 'list'; readonly keys: ListKeys; readonly fields: Fields };

/**
 * `atomic`: items have no keys. `set`: each scalar once. Otherwise the fields that tell items apart, each with
 * the default that the server gives it, or undefined for none that its validation accepts.
 */
type ListKeys = 'atomic' | 'set' | Readonly<Record<string, string | undefined>>;

const inObject = (fields: Fields): Place => ({ is: 'object', fields });
const inValues = (fields: Fields): Place => ({ is: 'map', fields });
const inItems = (fields: Fields): Place => ({ is: 'list', keys: 'atomic', fields });
const keyed = (keys: ListKeys, fields: Fields = {}): Place => ({ is: 'list', keys, fields });
const SET = keyed('set');

const NAME = { name: undefined };
const BY_NAME = keyed(NAME);
const BY_TYPE = keyed({ type: undefined });
const STATUS = inObject({ conditions: BY_TYPE });
const METADATA = inObject({ finalizers: SET, ownerReferences: keyed({ uid: undefined }) });

const RESOURCES = inObject({ claims: BY_NAME });

const CONTAINERS = keyed(NAME, {
  env: BY_NAME,
  ports: keyed({ containerPort: undefined, protocol: 'TCP' }),
  resources: RESOURCES,
  restartPolicyRules: inItems({ exitCodes: inObject({ values: SET }) }),
  volumeDevices: keyed({ devicePath: undefined }),
  volumeMounts: keyed({ mountPath: undefined }),
});

const POD_SPEC = inObject({
  containers: CONTAINERS,
  ephemeralContainers: CONTAINERS,
  hostAliases: keyed({ ip: undefined }),
  // The server accepts a reference without a name.
  imagePullSecrets: keyed({ name: '' }),
  initContainers: CONTAINERS,
  resourceClaims: BY_NAME,
  resources: RESOURCES,
  schedulingGates: BY_NAME,
  topologySpreadConstraints: keyed({ topologyKey: undefined, whenUnsatisfiable: undefined }),
  volumes: keyed(NAME, { ephemeral: inObject({ volumeClaimTemplate: inObject({ metadata: METADATA }) }) }),
});

const TEMPLATE = inObject({ metadata: METADATA, spec: POD_SPEC });
const WORKLOAD: Fields = { spec: inObject({ template: TEMPLATE }), status: STATUS };
const JOB_SPEC = inObject({
  podFailurePolicy: inObject({ rules: inItems({ onExitCodes: inObject({ values: SET }) }) }),
  template: TEMPLATE,
});
const WEBHOOKS = keyed(NAME, { matchConditions: BY_NAME });

/** A JSON schema has schemas within it, at any depth. */
const SCHEMA_FIELDS: Record<string, Place> = { 'x-kubernetes-validations': keyed({ rule: undefined }) };
for (const field of ['definitions', 'patternProperties', 'properties']) SCHEMA_FIELDS[field] = inValues(SCHEMA_FIELDS);
for (const field of ['allOf', 'anyOf', 'oneOf']) SCHEMA_FIELDS[field] = inItems(SCHEMA_FIELDS);
SCHEMA_FIELDS['not'] = inObject(SCHEMA_FIELDS);

/**
 * The lists of the built-in types, besides those in `metadata`, whose items the server tells apart. Types
 * that are not here have none. Of a status, which nobody renders, only the conditions are here.
 *
 * Source: `x-kubernetes-list-type` and `x-kubernetes-list-map-keys` in the OpenAPI v3 documents of Kubernetes
 * 1.36, with which `rendered-children.slow.test.ts` compares this table.
 */
const LISTS: Readonly<Record<string, Fields>> = {
  'admissionregistration.k8s.io/v1/MutatingAdmissionPolicy': { spec: inObject({ matchConditions: BY_NAME }) },
  'admissionregistration.k8s.io/v1/MutatingWebhookConfiguration': { webhooks: WEBHOOKS },
  'admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy': {
    spec: inObject({ matchConditions: BY_NAME, variables: BY_NAME }),
    status: STATUS,
  },
  'admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding': { spec: inObject({ validationActions: SET }) },
  'admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration': { webhooks: WEBHOOKS },
  'apiextensions.k8s.io/v1/CustomResourceDefinition': {
    spec: inObject({ versions: inItems({ schema: inObject({ openAPIV3Schema: inObject(SCHEMA_FIELDS) }) }) }),
    status: STATUS,
  },
  'apiregistration.k8s.io/v1/APIService': { status: STATUS },
  'apps/v1/DaemonSet': WORKLOAD,
  'apps/v1/Deployment': WORKLOAD,
  'apps/v1/ReplicaSet': WORKLOAD,
  'apps/v1/StatefulSet': {
    spec: inObject({ template: TEMPLATE, volumeClaimTemplates: inItems({ metadata: METADATA, status: STATUS }) }),
    status: STATUS,
  },
  'autoscaling/v2/HorizontalPodAutoscaler': { status: STATUS },
  'batch/v1/CronJob': { spec: inObject({ jobTemplate: inObject({ metadata: METADATA, spec: JOB_SPEC }) }) },
  'batch/v1/Job': { spec: JOB_SPEC },
  'certificates.k8s.io/v1/CertificateSigningRequest': { status: STATUS },
  'discovery.k8s.io/v1/EndpointSlice': { endpoints: inItems({ addresses: SET }) },
  'flowcontrol.apiserver.k8s.io/v1/FlowSchema': {
    spec: inObject({
      rules: inItems({
        nonResourceRules: inItems({ nonResourceURLs: SET, verbs: SET }),
        resourceRules: inItems({ apiGroups: SET, namespaces: SET, resources: SET, verbs: SET }),
      }),
    }),
    status: STATUS,
  },
  'flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration': { status: STATUS },
  'networking.k8s.io/v1/ServiceCIDR': { status: STATUS },
  'policy/v1/PodDisruptionBudget': { status: STATUS },
  'resource.k8s.io/v1/ResourceClaimTemplate': { spec: inObject({ metadata: METADATA }) },
  'storage.k8s.io/v1/CSIDriver': { spec: inObject({ volumeLifecycleModes: SET }) },
  'storage.k8s.io/v1/CSINode': { spec: inObject({ drivers: BY_NAME }) },
  'v1/ComponentStatus': { conditions: BY_TYPE },
  'v1/Namespace': { status: STATUS },
  'v1/Node': { spec: inObject({ podCIDRs: SET }), status: STATUS },
  'v1/PersistentVolumeClaim': { status: STATUS },
  'v1/Pod': { spec: POD_SPEC, status: STATUS },
  'v1/PodTemplate': { template: TEMPLATE },
  'v1/ReplicationController': WORKLOAD,
  'v1/Service': { spec: inObject({ ports: keyed({ port: undefined, protocol: 'TCP' }) }), status: STATUS },
  'v1/ServiceAccount': { secrets: BY_NAME },
};

/**
 * Where lists with keys are in an object of a type. Of a type that is not built in only those in `metadata`
 * are known; the server checks the others.
 *
 * @testonly
 */
export function keyedLists(type: Pick<ResourceType, 'apiVersion' | 'kind'>): Fields {
  const key = typeKey(type);
  return (fieldsByType[key] ??= { metadata: METADATA, ...(Object.hasOwn(LISTS, key) ? LISTS[key] : {}) });
}

const fieldsByType: Record<string, Fields> = Object.create(null) as Record<string, Fields>;

/** The most problems that one message lists: conditions and events bear only so much text. */
const MAX_PROBLEMS = 10;

/**
 * Rejects a rendered child that could not be kept up to date: a list has two items with one key, or a set has a
 * member twice. The server accepts most of these at creation (`env` with a name twice, for example), and
 * refuses every later apply with "duplicate entries for key".
 *
 * The message quotes both items as far as they differ. Nothing of a Secret's content is in a list. A value of
 * `env` is no secret from whoever reads the message: rendering knows only the object, whose spec or whose
 * kind's code has the value, and of a Pulumi Output it knows only a placeholder.
 *
 * @param subject the child's owner
 * @throws RenderError
 */
export function checkListKeys(subject: string, type: ResourceType, manifest: KubeObject): void {
  const problems: Problem[] = [];
  checkFields(manifest, keyedLists(type), [], problems);
  if (problems.length === 0) return;
  const heading =
    `${type.kind} "${manifest.metadata.name}" has list items with the same key. The API server may accept them at creation, ` +
    'but refuses every later apply:';
  const more = problems.length - MAX_PROBLEMS;
  const rest = more > 0 ? `\n  and ${String(more)} more` : '';
  throw new RenderError(subject, `${formatProblems(heading, problems.slice(0, MAX_PROBLEMS))}${rest}`);
}

/** @param path where the object is; changed and restored, so that only a problem costs a text */
function checkFields(object: unknown, fields: Fields, path: PathStep[], problems: Problem[]): void {
  if (!isObject(object)) return;
  for (const field in fields) {
    const place = fields[field];
    const value = object[field];
    if (place === undefined || value === undefined) continue;
    path.push(field);
    if (place.is === 'list') checkList(value, place, path, problems);
    else if (place.is === 'object') checkFields(value, place.fields, path, problems);
    else checkValues(value, place.fields, path, problems);
    path.pop();
  }
}

function checkValues(map: unknown, fields: Fields, path: PathStep[], problems: Problem[]): void {
  if (!isObject(map)) return;
  for (const key in map) {
    path.push(key);
    checkFields(map[key], fields, path, problems);
    path.pop();
  }
}

function checkList(
  list: unknown,
  { keys, fields }: Extract<Place, { is: 'list' }>,
  path: PathStep[],
  problems: Problem[],
): void {
  if (!Array.isArray(list)) return;
  const items: readonly unknown[] = list;
  const first = new Map<string, number>();
  for (const [i, item] of items.entries()) {
    path.push(i);
    const key = keys === 'atomic' || items.length < 2 ? undefined : keyOf(item, keys);
    const before = key === undefined ? undefined : first.get(key);
    if (key !== undefined && before === undefined) first.set(key, i);
    else if (before !== undefined) problems.push(duplicate(path, keys, before, items[before], item));
    checkFields(item, fields, path, problems);
    path.pop();
  }
}

/** An item's key as the server writes it; undefined when the item lacks a part, which the server reports. */
function keyOf(item: unknown, keys: Exclude<ListKeys, 'atomic'>): string | undefined {
  if (keys === 'set') return JSON.stringify(item);
  if (!isObject(item)) return undefined;
  let key = '';
  for (const field in keys) {
    // The server sets the default of an empty text too.
    const value = item[field] === '' ? (keys[field] ?? '') : (item[field] ?? keys[field]);
    if (value === undefined) return undefined;
    key += `${key === '' ? '' : ','}${field}=${JSON.stringify(value)}`;
  }
  return key;
}

function duplicate(steps: readonly PathStep[], keys: ListKeys, before: number, there: unknown, here: unknown): Problem {
  const path = propertyPath(steps);
  if (keys === 'atomic' || keys === 'set' || !isObject(there) || !isObject(here)) {
    return { path, message: `${brief(here)} is at [${String(before)}] already; leave it out` };
  }
  const key = cut(keyOf(here, keys) ?? '');
  const fields = [...new Set([...Object.keys(there), ...Object.keys(here)])].filter(
    (field) => !Object.hasOwn(keys, field) && JSON.stringify(there[field]) !== JSON.stringify(here[field]),
  );
  const values =
    fields.length === 0 ? 'with the same content' : `with ${pick(there, fields)} there and ${pick(here, fields)} here`;
  return { path, message: `the key ${key} is at [${String(before)}] already, ${values}; leave one of them out` };
}

function pick(item: Readonly<Record<string, unknown>>, fields: readonly string[]): string {
  return brief(Object.fromEntries(fields.filter((field) => field in item).map((field) => [field, item[field]])));
}

function brief(value: unknown): string {
  return cut(JSON.stringify(value));
}

/** The most characters of a key or a value in a message. */
const MAX_TEXT = 100;

function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}...`;
}
