import { HelloApp } from '../../../constructs/kinds';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import type { ApiStatus } from '../../../operator/client/errors';
import { problemOfError } from '../../../operator/reconcile/problems';
import { apiError } from '../../../testing/api-server/requests';
import { Harness, ref, rolledOut } from './harness';

type Causes = ApiStatus['causes'];

const invalid = (field: string, message: string) => ({ reason: 'FieldValueInvalid', field, message });
const forbidden = (field: string, message: string) => ({
  reason: 'FieldValueForbidden',
  field,
  message: `Forbidden: ${message}`,
});
const SELECTOR = invalid('spec.selector', 'Invalid value: {"matchLabels":{"app":"web"}}: field is immutable');

function typeOf(apiVersion: string, kind: string, plural: string): ResourceType {
  return { apiVersion, kind, plural, scope: 'Namespaced' };
}

/** The message about a child that the server refused for these causes. */
function messageFor(type: ResourceType, causes: Causes, exists = true): string {
  const manifest = { apiVersion: type.apiVersion, kind: type.kind, metadata: { name: 'x', namespace: 'shop' } };
  const error = apiError(422, 'Invalid', `${type.kind} "x" is invalid`, causes);
  const { readiness, retry } = problemOfError({ type, manifest, seeds: [] }, error, exists);
  expect({ ...readiness, retry }).toMatchObject({ state: 'stalled', reason: 'ErrInvalidChild', retry: false });
  return readiness.message;
}

/** The commands in a message, those of the server's words left out. */
function commandsIn(message: string): readonly string[] {
  return [...message.matchAll(/`(kubectl [^`]+)`/g)].map(([, command = '']) => command);
}

describe('the message about a field that cannot be changed', () => {
  // Responses of Kubernetes 1.36; test/e2e/immutable-fields.slow.test.ts has them from a server.
  it.each<[string, ResourceType, Causes, string]>([
    ['a selector', owned.Deployment, [SELECTOR], 'deployments.apps'],
    ['a selector', owned.DaemonSet, [SELECTOR], 'daemonsets.apps'],
    ['a selector', typeOf('apps/v1', 'ReplicaSet', 'replicasets'), [SELECTOR], 'replicasets.apps'],
    [
      'claims or the service name',
      owned.StatefulSet,
      [forbidden('spec', "updates to statefulset spec for fields other than 'replicas' and 'template' are forbidden")],
      'statefulsets.apps',
    ],
    ['a template', owned.Job, [invalid('spec.template', 'Invalid value: {"a": 1}: field is immutable')], 'jobs.batch'],
    [
      'a cluster IP',
      owned.Service,
      [invalid('spec.clusterIPs[0]', 'Invalid value: ["None"]: may not change once set')],
      'services',
    ],
    ['contents', owned.Secret, [forbidden('data', 'field is immutable when `immutable` is set')], 'secrets'],
    [
      'contents and the flag',
      owned.ConfigMap,
      [
        forbidden('immutable', 'field is immutable when `immutable` is set'),
        forbidden('data', 'field is immutable when `immutable` is set'),
      ],
      'configmaps',
    ],
    [
      'a role',
      typeOf('rbac.authorization.k8s.io/v1', 'RoleBinding', 'rolebindings'),
      [invalid('roleRef', 'Invalid value: {"Name":"b"}: cannot change roleRef')],
      'rolebindings.rbac.authorization.k8s.io',
    ],
    [
      'a storage class',
      owned.PersistentVolumeClaim,
      [forbidden('spec', 'spec is immutable after creation except resources.requests for bound claims\n@@ -1 +1 @@')],
      'persistentvolumeclaims',
    ],
    [
      'a smaller size',
      owned.PersistentVolumeClaim,
      [forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity')],
      'persistentvolumeclaims',
    ],
    [
      'a transition rule',
      typeOf('example.com/v1', 'Thing', 'things'),
      [invalid('spec.a', 'Invalid value: "y": failed rule: self == oldSelf')],
      'things.example.com',
    ],
    [
      "a transition rule's own words",
      HelloApp.type,
      [invalid('spec.a', 'Invalid value: "y": cannot be changed once it is set')],
      'helloapps.apps.anupam.com',
    ],
  ])('has the command, for %s', (_, type, causes, resource) => {
    const message = messageFor(type, causes);
    expect(message).toContain(`delete the ${type.kind}, and the operator makes it anew`);
    expect(commandsIn(message)[0]).toBe(`kubectl delete ${resource} x --namespace=shop`);
    expect(message).toMatch(new RegExp(`The API server's words: ${type.kind} "x" is invalid$`));
  });

  it.each([owned.Deployment, owned.StatefulSet, owned.DaemonSet, owned.Job])(
    'has the command that keeps the pods of a $kind',
    (type) => {
      const [, keeping, looking] = commandsIn(messageFor(type, [SELECTOR]));
      expect(keeping).toBe(`${commandsIn(messageFor(type, [SELECTOR]))[0] ?? ''} --cascade=orphan`);
      expect(looking).toBe(`kubectl get ${type === owned.Deployment ? 'replicasets.apps' : 'pods'} --namespace=shop`);
    },
  );

  it.each([owned.Service, owned.Secret, owned.ConfigMap, owned.PersistentVolumeClaim, HelloApp.type])(
    'orphans nothing of a $kind',
    (type) => {
      expect(messageFor(type, [SELECTOR])).not.toContain('--cascade');
    },
  );

  it('says first what is lost with a claim, or with an object that may stand for anything', () => {
    const lost = (type: ResourceType) =>
      /deleting the \w+ deletes (.*)\. Only if that may be lost, /.exec(messageFor(type, [SELECTOR]))?.[1];
    expect(lost(owned.PersistentVolumeClaim)).toBe('its data, unless the reclaim policy of its volume is Retain');
    expect(lost(HelloApp.type)).toBe('what it stands for, such as data or machines');
    expect(lost(owned.Secret)).toBeUndefined();
  });

  it('names an object of the cluster, and quotes for a shell', () => {
    const type: ResourceType = {
      ...typeOf('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', 'clusterrolebindings'),
      scope: 'Cluster',
    };
    const commandFor = (name: string): string | undefined => {
      const manifest = { apiVersion: type.apiVersion, kind: type.kind, metadata: { name } };
      const error = apiError(422, 'Invalid', '', [invalid('roleRef', 'cannot change roleRef')]);
      return commandsIn(problemOfError({ type, manifest, seeds: [] }, error, true).readiness.message)[0];
    };
    const command = 'kubectl delete clusterrolebindings.rbac.authorization.k8s.io';
    expect(commandFor('team:view')).toBe(`${command} team:view`);
    expect(commandFor("x'; rm -rf ~")).toBe(`${command} 'x'\\''; rm -rf ~'`);
  });

  it.each<[string, Causes]>([
    ['an ordinary error', [invalid('spec.template.metadata.labels', '`selector` does not match template `labels`')]],
    [
      'an error that a new object would meet too',
      [SELECTOR, invalid('spec.replicas', 'must be greater than or equal to 0')],
    ],
    ["a policy's words", [{ message: "ValidatingAdmissionPolicy 'p' denied request: it is immutable" }]],
    ['no cause', []],
    ['a rule about an immutable tag', [invalid('spec.image', 'must be immutable: name a digest')]],
  ])('has only the words of the server, for %s', (_, causes) => {
    expect(messageFor(owned.Deployment, causes)).toBe('Deployment "x": Deployment "x" is invalid');
  });

  it('has only the words of the server, for an object that does not exist yet', () => {
    expect(messageFor(owned.Deployment, [SELECTOR], false)).toBe('Deployment "x": Deployment "x" is invalid');
  });
});

describe('a Deployment that was taken over with another selector', () => {
  const CONSENT = { 'kindred.dev/adopt': 'true' };
  const words = `Deployment.apps "web" is invalid: spec.selector: ${SELECTOR.message}`;
  let harness: Harness;
  let uid: string | undefined;

  beforeEach(async () => {
    harness = new Harness(HelloApp);
    const labels = { tier: 'x' };
    const body = {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
      metadata: { ...ref('web'), annotations: CONSENT },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [] } } },
    };
    uid = (await harness.server.create(owned.Deployment, body, { fieldManager: 'kubectl' })).metadata.uid;
    harness.server.before = ({ verb, type }) => {
      const live = harness.server.peek(owned.Deployment, ref('web'));
      if (type === owned.Deployment && verb !== 'POST' && live?.metadata.uid === uid)
        throw apiError(422, 'Invalid', words, [SELECTOR]);
    };
    await harness.add('web', { image: 'i' });
    await harness.reconcile('web');
  });

  it('has the remedy in Ready and in an event that begins with it', () => {
    expect(harness.conditions('web')).toEqual(['Ready=False ErrInvalidChild', 'Stalled=True ErrInvalidChild']);
    const message = harness.message('web');
    expect(commandsIn(message)).toEqual([
      'kubectl delete deployments.apps web --namespace=default',
      'kubectl delete deployments.apps web --namespace=default --cascade=orphan',
      'kubectl get replicasets.apps --namespace=default',
    ]);
    expect(message.endsWith(`The API server's words: ${words}`)).toBe(true);
    // An event is cut after 1024 bytes.
    expect(message.indexOf(words)).toBeLessThan(1000);
    expect(harness.events).toEqual([
      { regarding: 'web', type: 'Warning', action: 'Apply', reason: 'ErrInvalidChild', message },
    ]);
  });

  it('says the same again without a write of its own', async () => {
    expect((await harness.reconcile('web')).writes.filter((write) => !/ Deployment /.test(write))).toEqual([]);
  });

  it.each(['Background', 'Orphan'] as const)('is made anew after a deletion (%s)', async (propagation) => {
    harness.server.remove(owned.Deployment, ref('web'), propagation);
    if (propagation === 'Orphan') {
      await harness.reconcile('web');
      expect(harness.message('web')).toBe('Deployment "web": it is being deleted');
      harness.server.collectGarbage();
    }
    expect((await harness.reconcile('web')).writes[0]).toBe('POST Deployment web (kindred)');
    expect(harness.live(owned.Deployment, 'web')).toMatchObject({
      spec: { selector: { matchLabels: { app: 'web' } } },
    });
    harness.server.setStatus(owned.Deployment, ref('web'), rolledOut(1));
    await harness.reconcile('web');
    expect(harness.conditions('web')).toEqual(['Ready=True Ready']);
  });
});
