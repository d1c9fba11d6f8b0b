import { owned, type ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient } from '../../operator/client/api-client';
import { problemOfError } from '../../operator/reconcile/problems';
import { kubeconfigClient } from '../../testing';
import { useControlPlane } from '../support/use-control-plane';
import { kubectl } from '../../testing/kubectl';
import { waitFor } from '../../testing/wait-for';

// The operator tells a field that cannot be changed by the API server's words: here they come from a server.
const plane = useControlPlane({ components: 'api' });
const manager = { fieldManager: 'e2e' };
let client: ApiClient;
let objects = 0;

function typeOf(apiVersion: string, kind: string, plural: string, scope: ResourceType['scope']): ResourceType {
  return { apiVersion, kind, plural, scope };
}

const CRD = typeOf('apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'customresourcedefinitions', 'Cluster');
const THING = typeOf('immutable.example.com/v1', 'Thing', 'things', 'Namespaced');
const ROLE_BINDING = typeOf('rbac.authorization.k8s.io/v1', 'RoleBinding', 'rolebindings', 'Namespaced');
const PRIORITY_CLASS = typeOf('scheduling.k8s.io/v1', 'PriorityClass', 'priorityclasses', 'Cluster');

beforeAll(async () => {
  client = await kubeconfigClient(plane.adminKubeconfig);
  const rule = (more: object) => ({
    type: 'string',
    'x-kubernetes-validations': [{ rule: 'self == oldSelf', ...more }],
  });
  const properties = {
    silent: rule({}),
    worded: rule({ message: 'Value is immutable' }),
    plain: { type: 'string', pattern: '^[a-z]+$' },
  };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } };
  const { kind, plural } = THING;
  const body = {
    ...{ apiVersion: CRD.apiVersion, kind: CRD.kind, metadata: { name: `${plural}.immutable.example.com` } },
    spec: {
      ...{ group: 'immutable.example.com', scope: 'Namespaced', names: { kind, plural } },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  };
  await client.create(CRD, body, manager);
  await waitFor(() => client.list(THING, { namespace: 'default' }), { describe: 'the type to be served' });
}, 60_000);

afterAll(() => client.close());

const pod = (app: string) => ({ metadata: { labels: { app } }, spec: { containers: [{ name: 'c', image: 'i' }] } });
const workload = (app: string, more: object = {}) => ({
  spec: { selector: { matchLabels: { app } }, template: pod(app), ...more },
});
const job = (image: string) => ({
  spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image }] } } },
});
const claim = (storageClassName: string, storage: string) => ({
  spec: { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
});
const service = (more: object) => ({ spec: { ports: [{ port: 80 }], ...more } });
const role = (name: string) => ({ roleRef: { kind: 'Role', name, apiGroup: 'rbac.authorization.k8s.io' } });
const withClaim = (storage: string) => ({
  volumeClaimTemplates: [{ metadata: { name: 'd' }, spec: claim('a', storage).spec }],
});

/** The message for an object that was created in one way and is applied in another. */
async function messageFor(type: ResourceType, before: object, after: object): Promise<string> {
  const name = `x${String(++objects)}`;
  const metadata = { name, ...(type.scope === 'Namespaced' ? { namespace: 'default' } : {}) };
  const of = (body: object) => ({ apiVersion: type.apiVersion, kind: type.kind, metadata, ...body });
  await client.create(type, of(before), manager);
  const error: unknown = await client.apply(type, of(after), manager).catch((refusal: unknown) => refusal);
  const { readiness } = problemOfError({ type, manifest: of(after), seeds: [] }, error, true);
  expect(readiness).toMatchObject({ state: 'stalled', reason: 'ErrInvalidChild' });
  const [, command] = /`kubectl ([^`]+)`/.exec(readiness.message) ?? [];
  // The command is right: it deletes the object.
  if (command !== undefined) expect(await kubectl(plane, command.split(' '))).toMatchObject({ code: 0 });
  expect(await client.get(type, metadata)).toEqual(command === undefined ? expect.anything() : undefined);
  return readiness.message;
}

const changes: readonly (readonly [field: string, type: ResourceType, before: object, after: object])[] = [
  ['selector', owned.Deployment, workload('a'), workload('b')],
  ['selector', owned.DaemonSet, workload('a'), workload('b')],
  ['selector', typeOf('apps/v1', 'ReplicaSet', 'replicasets', 'Namespaced'), workload('a'), workload('b')],
  ['serviceName', owned.StatefulSet, workload('a', { serviceName: 'a' }), workload('a', { serviceName: 'b' })],
  ['volumeClaimTemplates', owned.StatefulSet, workload('a', withClaim('1Gi')), workload('a', withClaim('2Gi'))],
  ['template', owned.Job, job('i'), job('j')],
  ['clusterIP', owned.Service, service({}), service({ clusterIP: 'None' })],
  [
    'loadBalancerClass',
    owned.Service,
    service({ type: 'LoadBalancer', loadBalancerClass: 'a/b' }),
    service({ type: 'LoadBalancer', loadBalancerClass: 'a/c' }),
  ],
  ['data', owned.Secret, { immutable: true, stringData: { a: 'x' } }, { immutable: false, stringData: { a: 'y' } }],
  ['type', owned.Secret, { type: 'Opaque' }, { type: 'example.com/other' }],
  ['data', owned.ConfigMap, { immutable: true, data: { a: 'x' } }, { immutable: true, data: { a: 'y' } }],
  ['roleRef', ROLE_BINDING, role('a'), role('b')],
  ['value', PRIORITY_CLASS, { value: 1 }, { value: 2, preemptionPolicy: 'Never' }],
  ['field with a rule', THING, { spec: { silent: 'a', worded: 'a' } }, { spec: { silent: 'b', worded: 'b' } }],
];

test.each(changes.map(([field, type, before, after]) => ({ field, kind: type.kind, type, before, after })))(
  'the $field of a $kind is known as immutable',
  async ({ type, before, after }) => {
    const remedy = `delete the ${type.kind}, and the operator makes it anew`;
    expect(await messageFor(type, before, after)).toContain(remedy);
  },
);

test.each([
  ['a claim', claim('b', '1Gi')],
  ['a smaller claim', claim('a', '500Mi')],
])('%s is known as immutable', async (_, after) => {
  const { PersistentVolumeClaim: type } = owned;
  // A finalizer keeps the claim, which no controller takes off here.
  const metadata = { name: 'claim', namespace: 'default' };
  const of = (body: object) => ({ apiVersion: type.apiVersion, kind: type.kind, metadata, ...body });
  await client.apply(type, of(claim('a', '1Gi')), manager);
  const error: unknown = await client.apply(type, of(after), manager).catch((refusal: unknown) => refusal);
  const { readiness } = problemOfError({ type, manifest: of(after), seeds: [] }, error, true);
  expect(readiness.message).toContain('deletes its data, unless the reclaim policy of its volume is Retain');
});

test.each<[string, ResourceType, object, object]>([
  [
    'labels that the selector does not match',
    owned.Deployment,
    workload('a'),
    { spec: { ...workload('a').spec, template: pod('b') } },
  ],
  ['another problem beside the selector', owned.Deployment, workload('a'), workload('b', { replicas: -1 })],
  ['a value that no object may have', THING, { spec: { plain: 'a' } }, { spec: { plain: 'B' } }],
])('%s: the words of the server only', async (_, type, before, after) => {
  expect(await messageFor(type, before, after)).not.toContain('kubectl');
});
