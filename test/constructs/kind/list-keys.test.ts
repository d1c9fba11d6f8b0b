import { ApiObject } from 'cdk8s';
import * as kplus from 'cdk8s-plus-27';
import { z } from 'zod';
import { defineKind } from '../../../constructs/kind/kind';
import { renderChildren, renderShared } from '../../../constructs/kind/render';
import { RenderError } from '../../../constructs/kube/errors';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';

const self = { apiVersion: 'test.example.com/v1', kind: 'Thing', metadata: { name: 'x', namespace: 'team' }, spec: {} };

function type(apiVersion: string, kind: string): ResourceType {
  return { apiVersion, kind, plural: `${kind.toLowerCase()}s`, scope: 'Namespaced' };
}

/** What rendering a child of a type says; undefined when it renders. */
function problem(of: ResourceType, fields: object, metadata: object = {}): string | undefined {
  const { apiVersion, kind } = of;
  const Thing = defineKind({
    ...{ group: 'test.example.com', version: 'v1', kind: 'Thing', plural: 'things', scope: 'Namespaced' },
    ...{ description: 'A thing.', spec: z.object({}), owns: [of] },
    children: (scope) =>
      void new ApiObject(scope, 'c', { apiVersion, kind, metadata: { name: 'c', ...metadata }, ...fields }),
  });
  try {
    renderChildren(Thing, self);
    return undefined;
  } catch (error) {
    if (error instanceof RenderError) return error.message;
    throw error;
  }
}

/** The problems alone, without the sentence above them. */
function problems(of: ResourceType, fields: object, metadata: object = {}): readonly string[] {
  return (problem(of, fields, metadata) ?? '')
    .split('\n')
    .slice(1)
    .map((line) => line.trim());
}

function inPod(podSpec: object): object {
  return { spec: { template: { spec: podSpec } } };
}

function inContainer(container: object): object {
  return inPod({ containers: [{ name: 'app', image: 'i', ...container }] });
}

const container = { name: 'app', image: 'i' };

describe('a list that holds a key twice', () => {
  it('is refused with the child, the path, the key and both values', () => {
    const env = [
      { name: 'A', value: '1' },
      { name: 'B', value: 'b' },
      { name: 'A', value: '2' },
    ];
    expect(problem(owned.Deployment, inContainer({ env }))).toBe(
      'Thing team/x: Deployment "c" has list items with the same key. The API server may accept them at creation, but refuses every ' +
        'later apply:\n' +
        '  spec.template.spec.containers[0].env[2]: the key name="A" is at [0] already, with {"value":"1"} there and {"value":"2"} here; ' +
        'leave one of them out',
    );
  });

  const named = [{ name: 'n' }, { name: 'n' }];

  // Each of these lists was sent to a Kubernetes 1.36 API server, which refuses it at an apply.
  it.each<[string, readonly object[], string]>([
    ['env', named, 'name="n"'],
    ['ports', [{ containerPort: 80 }, { containerPort: 80, protocol: 'TCP' }], 'containerPort=80,protocol="TCP"'],
    ['volumeDevices', [{ devicePath: '/a' }, { devicePath: '/a' }], 'devicePath="/a"'],
    ['volumeMounts', [{ mountPath: '/a' }, { mountPath: '/a' }], 'mountPath="/a"'],
  ])('is refused in a container: %s', (list, items, key) => {
    for (const containers of ['containers', 'initContainers', 'ephemeralContainers']) {
      const [line, ...others] = problems(owned.Deployment, inPod({ [containers]: [{ name: 'app', [list]: items }] }));
      expect(line).toContain(`spec.template.spec.${containers}[0].${list}[1]: the key ${key} is at [0] already`);
      expect(others).toEqual([]);
    }
  });

  it('is refused deeper in a container: claims by name, and exit codes, which are a set', () => {
    const container = { resources: { claims: named }, restartPolicyRules: [{ exitCodes: { values: [1, 2, 1] } }] };
    expect(problems(owned.Deployment, inContainer(container))).toEqual([
      expect.stringContaining('spec.template.spec.containers[0].resources.claims[1]: the key name="n"'),
      'spec.template.spec.containers[0].restartPolicyRules[0].exitCodes.values[2]: 1 is at [0] already; leave it out',
    ]);
  });

  const spread = { topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' };
  it.each<[string, readonly object[], string]>([
    ['containers', [container, container], 'name="app" is at [0] already, with the same content; leave'],
    ['initContainers', named, 'name="n"'],
    ['ephemeralContainers', named, 'name="n"'],
    [
      'volumes',
      [{ name: 'v', emptyDir: {} }, { name: 'v' }],
      'name="v" is at [0] already, with {"emptyDir":{}} there and {} here',
    ],
    ['imagePullSecrets', named, 'name="n"'],
    ['imagePullSecrets', [{}, { name: '' }], 'name=""'],
    ['hostAliases', [{ ip: '::1' }, { ip: '::1' }], 'ip="::1"'],
    ['topologySpreadConstraints', [spread, spread], 'topologyKey="zone",whenUnsatisfiable="DoNotSchedule"'],
    ['resourceClaims', named, 'name="n"'],
    ['schedulingGates', named, 'name="n"'],
  ])('is refused in a pod: %s', (list, items, key) => {
    const [line, ...others] = problems(owned.StatefulSet, inPod({ [list]: items }));
    expect(line).toContain(`spec.template.spec.${list}[1]: the key ${key}`);
    expect(others).toEqual([]);
  });

  const twice = { containers: [{ name: 'app', env: named }] };
  const webhooks = [{ name: 'w', matchConditions: named }];
  const rules = { 'x-kubernetes-validations': [{ rule: 'r' }, { rule: 'r' }] };
  const schema = { openAPIV3Schema: { properties: { 'a.b': { items: {}, not: rules } } } };
  it.each<[string, ResourceType, object, string]>([
    ['a Pod', type('v1', 'Pod'), { spec: twice }, 'spec.containers[0].env[1]: '],
    ['a DaemonSet', owned.DaemonSet, inPod(twice), 'spec.template.spec.containers[0].env[1]: '],
    ['a ReplicaSet', type('apps/v1', 'ReplicaSet'), inPod(twice), 'spec.template.spec.containers[0].env[1]: '],
    ['a Job', owned.Job, inPod(twice), 'spec.template.spec.containers[0].env[1]: '],
    [
      'a CronJob',
      owned.CronJob,
      { spec: { jobTemplate: inPod(twice) } },
      'spec.jobTemplate.spec.template.spec.containers[0].env[1]: ',
    ],
    [
      'a Service',
      owned.Service,
      { spec: { ports: [{ port: 80 }, { port: 80, protocol: 'TCP' }] } },
      'spec.ports[1]: the key port=80,protocol="TCP"',
    ],
    ['a ServiceAccount', owned.ServiceAccount, { secrets: named }, 'secrets[1]: the key name="n"'],
    [
      'a status',
      owned.Deployment,
      { status: { conditions: [{ type: 'A' }, { type: 'A' }] } },
      'status.conditions[1]: the key type="A"',
    ],
    [
      'a template of a claim',
      owned.StatefulSet,
      { spec: { volumeClaimTemplates: [{ metadata: { finalizers: ['a', 'a'] } }] } },
      'spec.volumeClaimTemplates[0].metadata.finalizers[1]: "a" is',
    ],
    [
      'a webhook',
      type('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration'),
      { webhooks },
      'webhooks[0].matchConditions[1]: the key name="n"',
    ],
    [
      'a schema of a CRD',
      type('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
      { spec: { versions: [{ schema }] } },
      'spec.versions[0].schema.openAPIV3Schema.properties["a.b"].not.x-kubernetes-validations[1]: the key rule="r"',
    ],
  ])('is refused in %s', (_, of, fields, message) => {
    const [line, ...others] = problems(of, fields);
    expect(line).toContain(message);
    expect(others).toEqual([]);
  });

  it('is refused in the metadata of any type', () => {
    const owner = { apiVersion: 'v1', kind: 'A', uid: 'u' };
    const metadata = {
      finalizers: ['a/b', 'c/d', 'a/b'],
      ownerReferences: [
        { ...owner, name: 'a' },
        { ...owner, name: 'b' },
      ],
    };
    for (const child of [owned.Secret, type('example.com/v1', 'Gadget')]) {
      expect(problems(child, {}, metadata)).toEqual([
        'metadata.finalizers[2]: "a/b" is at [0] already; leave it out',
        'metadata.ownerReferences[1]: the key uid="u" is at [0] already, with {"name":"a"} there and {"name":"b"} here; leave one of them out',
      ]);
    }
  });

  it('is refused among shared children too, and where a construct of cdk8s-plus makes it', () => {
    const children = (scope: ApiObject['node']['root']): void =>
      void new kplus.Service(scope, 's', {
        metadata: { name: 's' },
        ports: [
          { port: 80, name: 'a' },
          { port: 80, name: 'b' },
        ],
      });
    const group = { name: 'one', owns: [owned.Service], key: () => 'k', children };
    const Thing = defineKind({
      ...{ group: 'test.example.com', version: 'v1', kind: 'Thing', plural: 'things', scope: 'Namespaced' },
      ...{ description: 'A thing.', spec: z.object({}), owns: [], shared: [group], children: () => undefined },
    });
    expect(() => renderShared(Thing, group, 'k', 'team')).toThrow('spec.ports[1]: the key port=80,protocol="TCP"');
  });

  it('is told for every key, with long values cut and not more lines than a condition bears', () => {
    const env = Array.from({ length: 13 }, () => ({ name: 'A', value: 'x'.repeat(500) }));
    env[1] = { name: 'A', value: 'y' };
    const lines = problems(owned.Deployment, inContainer({ env }));
    expect(lines).toHaveLength(11);
    expect(lines[0]).toContain(`with {"value":"${'x'.repeat(90)}... there and {"value":"y"} here`);
    expect(lines[10]).toBe('and 2 more');
  });
});

describe('what the server takes', () => {
  it.each<[string, ResourceType, object]>([
    [
      'a port of each protocol',
      owned.Deployment,
      inContainer({ ports: [{ containerPort: 53 }, { containerPort: 53, protocol: 'UDP' }] }),
    ],
    [
      'a name in two containers',
      owned.Deployment,
      inPod({
        containers: [
          { name: 'a', env: [{ name: 'A' }] },
          { name: 'b', env: [{ name: 'A' }] },
        ],
      }),
    ],
    [
      'a container and an init container of one name, which it refuses itself',
      owned.Deployment,
      inPod({ containers: [container], initContainers: [container] }),
    ],
    [
      'equal items of a list without keys',
      owned.Deployment,
      inPod({
        tolerations: [{ key: 'a' }, { key: 'a' }],
        readinessGates: [{ conditionType: 'a' }, { conditionType: 'a' }],
      }),
    ],
    ['peers of a NetworkPolicy', owned.NetworkPolicy, { spec: { egress: [{ ports: [{ port: 53 }, { port: 53 }] }] } }],
    [
      'pull secrets of a ServiceAccount, a list without keys',
      owned.ServiceAccount,
      { imagePullSecrets: [{ name: 'a' }, { name: 'a' }] },
    ],
    [
      'a list of a custom type, whose schema is not known',
      type('apps.example.com/v1', 'Deployment'),
      inContainer({ env: [{ name: 'A' }, { name: 'A' }] }),
    ],
    [
      'items that lack their key, which it reports itself',
      owned.Deployment,
      inContainer({ env: [{ value: '1' }, { value: '2' }] }),
    ],
    ['what is no list', owned.Deployment, inContainer({ env: { name: 'A' } })],
  ])('is rendered: %s', (_, of, fields) => {
    expect(problem(of, fields)).toBeUndefined();
  });
});
