import { MicroServiceDeploy } from '../../../constructs/kinds';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { renderDefaulted, sharedKeys, withDefaults } from '../../../constructs/kind/render';
import { childOf, childrenOf, objectOf, observed, titlesOf, wrongPaths } from './support';

const base = { msName: 'shop', fullName: 'shop-v1', version: '1.2', path: 'v1', image: 'img' };
const MADE_BY = { 'my-domain-ops-controller-make': 'true' };

function self(further: object = {}): KubeObject {
  return objectOf(MicroServiceDeploy, 'any.name', { ...base, ...further });
}

function child(kind: string, name: string, further: object = {}): KubeObject {
  return childOf(MicroServiceDeploy, self(further), kind, name);
}

const deployment = (further: object = {}): KubeObject => child('Deployment', 'shop-v1', further);

describe('the children of a MicroServiceDeploy', () => {
  it.each<[string, object, readonly string[]]>([
    [
      'plain',
      {},
      ['ConfigMap shop-v1', 'Deployment shop-v1', 'Service shop-v1', 'ServiceAccount shop', 'Service shop'],
    ],
    [
      'autoscaled',
      { autoscaling: true },
      [
        'ConfigMap shop-v1',
        'Deployment shop-v1',
        'Service shop-v1',
        'HorizontalPodAutoscaler shop-v1',
        'ServiceAccount shop',
        'Service shop',
      ],
    ],
    [
      'idle',
      { autoscaling: true, idle: true },
      ['ConfigMap shop-v1', 'Deployment shop-v1', 'Service shop-v1', 'ServiceAccount shop', 'Service shop'],
    ],
    [
      'config from a Secret',
      { configSecretRef: { name: 's', key: 'k' } },
      ['Deployment shop-v1', 'Service shop-v1', 'ServiceAccount shop', 'Service shop'],
    ],
    [
      'named as its service',
      { fullName: 'shop' },
      ['ConfigMap shop', 'Deployment shop', 'ServiceAccount shop', 'Service shop'],
    ],
  ])('%s', (_, further, expected) => {
    expect(titlesOf(MicroServiceDeploy, self(further))).toEqual(expected);
  });

  it('are all labelled, with app except on the ServiceAccount', () => {
    for (const { manifest } of childrenOf(MicroServiceDeploy, self({ autoscaling: true }))) {
      const app = manifest.kind === 'ServiceAccount' ? {} : { app: 'shop' };
      expect(manifest.metadata.labels).toEqual({ ...MADE_BY, ...app });
    }
  });

  it('share what stands under msName, a function of that alone', () => {
    expect(sharedKeys(MicroServiceDeploy, withDefaults(MicroServiceDeploy, self())).map(({ key }) => key)).toEqual([
      'shop',
    ]);
    const other = self({ fullName: 'other', needAuth: true, path: 'v2', image: 'x' });
    expect(childOf(MicroServiceDeploy, other, 'Service', 'shop')).toEqual(child('Service', 'shop'));
    expect(child('Service', 'shop').spec).toEqual({
      ports: [{ name: 'http', port: 9898, protocol: 'TCP', targetPort: 9898 }],
      selector: { app: 'shop' },
    });
    expect(child('Service', 'shop').metadata).not.toHaveProperty('annotations');
  });
});

describe('the instance Service', () => {
  it('selects one instance, and tells a gateway its path and whether callers authenticate', () => {
    expect(child('Service', 'shop-v1').spec).toEqual({
      ports: [{ name: 'http', port: 9898, protocol: 'TCP', targetPort: 9898 }],
      selector: { app: 'shop', 'custom.ops/instance': 'shop-v1' },
    });
    expect(child('Service', 'shop-v1').metadata.annotations).toEqual({
      'app.ops.my.domain/path': 'v1',
      'app.ops.my.domain/need-auth': 'false',
    });
    expect(child('Service', 'shop-v1', { needAuth: true }).metadata.annotations).toMatchObject({
      'app.ops.my.domain/need-auth': 'true',
    });
  });
});

describe('the ConfigMap', () => {
  it('holds the text of ms.properties, or an empty file', () => {
    expect(child('ConfigMap', 'shop-v1', { config: 'a=b\n' })['data']).toEqual({ 'ms.properties': 'a=b\n' });
    expect(child('ConfigMap', 'shop-v1')['data']).toEqual({ 'ms.properties': '' });
  });

  it('changes alone with the text: no pod restarts', () => {
    expect(deployment({ config: 'a' })).toEqual(deployment({ config: 'b' }));
  });
});

describe('the Deployment', () => {
  it('is exactly this', () => {
    expect(deployment()).toEqual({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'shop-v1', namespace: 'team', labels: { ...MADE_BY, app: 'shop' } },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: 'shop', 'custom.ops/instance': 'shop-v1' } },
        template: {
          metadata: {
            labels: { app: 'shop', 'custom.ops/instance': 'shop-v1' },
            annotations: { 'prometheus.io/scrape': 'true' },
          },
          spec: {
            serviceAccountName: 'shop',
            initContainers: [
              {
                name: 'log-volume-mount-hack',
                image: 'busybox',
                imagePullPolicy: 'Always',
                command: ['sh', '-c', 'chmod -R 777 /home/admin/logs || exit 0'],
                volumeMounts: [{ name: 'log', mountPath: '/home/admin/logs' }],
              },
            ],
            containers: [
              {
                name: 'shop',
                image: 'img',
                imagePullPolicy: 'Always',
                ports: [{ containerPort: 9898, protocol: 'TCP' }],
                env: [
                  { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
                  { name: 'SERVICE_NAME', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
                ],
                volumeMounts: [
                  { name: 'log', mountPath: '/home/admin/logs' },
                  { name: 'config', mountPath: '/home/admin/conf' },
                ],
              },
            ],
            volumes: [
              { name: 'log', hostPath: { path: '/data0/logs/shop/1.2', type: 'DirectoryOrCreate' } },
              { name: 'config', configMap: { name: 'shop-v1', defaultMode: 420 } },
            ],
          },
        },
      },
    });
  });

  it('bears creationTimestamp twice, so that another value restarts the pods', () => {
    const stamped = deployment({ creationTimestamp: '15' });
    expect(stamped.metadata.annotations).toEqual({ 'app.ops.my.domain/last-rollout-at': '15' });
    expect(stamped).toHaveProperty('spec.template.metadata.annotations', {
      'prometheus.io/scrape': 'true',
      'app.ops.my.domain/create-at': '15',
    });
  });

  it('mounts the Secret as the same file, with the same mode', () => {
    expect(deployment({ configSecretRef: { name: 'sec', key: 'props' } })).toHaveProperty(
      'spec.template.spec.volumes[1]',
      {
        name: 'config',
        secret: { secretName: 'sec', defaultMode: 420, items: [{ key: 'props', path: 'ms.properties' }] },
      },
    );
  });

  it('asks for resources only as far as they are given, numbers as quantities', () => {
    const resources = (resourceRequirements: object): unknown =>
      (
        deployment({ resourceRequirements }) as never as {
          spec: { template: { spec: { containers: { resources?: object }[] } } };
        }
      ).spec.template.spec.containers[0]?.resources;
    expect(resources({ requests: { cpu: 1, memory: '1Gi' }, limits: { cpu: '1500m' } })).toEqual({
      requests: { cpu: '1', memory: '1Gi' },
      limits: { cpu: '1500m' },
    });
    expect(resources({ limits: { memory: '1Gi' } })).toEqual({ limits: { memory: '1Gi' } });
  });

  it.each<[object, number]>([
    [{ replicas: 3 }, 3],
    [{ replicas: 0 }, 0],
    [{ replicas: 0, autoscaling: true }, 1],
    [{ replicas: 4, autoscaling: true }, 4],
    [{ replicas: 4, idle: true }, 0],
    [{ replicas: 4, autoscaling: true, idle: true }, 0],
  ])('%j renders %i replicas', (further, replicas) => {
    expect(deployment(further)).toHaveProperty('spec.replicas', replicas);
  });

  it.each<[object, boolean]>([
    [{}, false],
    [{ autoscaling: true }, true],
    [{ autoscaling: true, idle: true }, false],
  ])('%j leaves replicas to the autoscaler: %p', (further, left) => {
    const rendered = renderDefaulted(MicroServiceDeploy, withDefaults(MicroServiceDeploy, self(further)));
    const seeds = rendered.find(({ type }) => type.kind === 'Deployment')?.seeds ?? [];
    expect(seeds.map(({ path }) => path.join('.'))).toEqual(left ? ['spec.replicas'] : []);
    expect(seeds.map(({ keep }) => [keep(0), keep(1), keep(undefined)])).toEqual(left ? [[false, true, false]] : []);
  });
});

describe('the autoscaler', () => {
  it('keeps 1 to 10 pods at 81 % of their CPU', () => {
    expect(child('HorizontalPodAutoscaler', 'shop-v1', { autoscaling: true })).toMatchObject({
      apiVersion: 'autoscaling/v2',
      spec: {
        minReplicas: 1,
        maxReplicas: 10,
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'shop-v1' },
        metrics: [
          { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 81 } } },
        ],
      },
    });
  });
});

describe('the spec of a MicroServiceDeploy', () => {
  it('has defaults only where it says so', () => {
    expect(withDefaults(MicroServiceDeploy, self()).spec).toEqual({
      ...base,
      replicas: 1,
      autoscaling: false,
      needAuth: false,
      idle: false,
    });
  });

  it.each<[string, object, readonly string[]]>([
    [
      'all required',
      { msName: undefined, fullName: undefined, version: undefined, path: undefined, image: undefined },
      ['spec.msName', 'spec.fullName', 'spec.version', 'spec.path', 'spec.image'],
    ],
    ['names', { msName: 'A', fullName: 'a.b', path: '-' }, ['spec.msName', 'spec.fullName', 'spec.path']],
    ['an empty image', { image: '' }, ['spec.image']],
    ['replicas below zero', { replicas: -1 }, ['spec.replicas']],
    ['half a replica', { replicas: 1.5 }, ['spec.replicas']],
    ['a version that climbs', { version: '1..2' }, ['spec.version']],
    ['a version that begins with a dot', { version: '.1' }, ['spec.version']],
    ['a version with a slash', { version: '1/2' }, ['spec.version']],
    ['a version that ends with a dot', { version: '1.' }, []],
    ['a version of all sorts', { version: 'V1.0_rc-2' }, []],
    ['a timestamp that is no number', { creationTimestamp: '1e3' }, ['spec.creationTimestamp']],
    ['both sources of config', { config: '', configSecretRef: { name: 's', key: 'k' } }, ['spec.configSecretRef']],
    [
      'requests above limits',
      { resourceRequirements: { requests: { cpu: '1001m' }, limits: { cpu: '1' } } },
      ['spec.resourceRequirements'],
    ],
    [
      'memory above limits',
      { resourceRequirements: { requests: { memory: '1Gi' }, limits: { memory: '1000Mi' } } },
      ['spec.resourceRequirements'],
    ],
    [
      'requests at the limits, in other units',
      { resourceRequirements: { requests: { cpu: '1000m', memory: '1024Mi' }, limits: { cpu: 1, memory: '1Gi' } } },
      [],
    ],
    ['no quantity', { resourceRequirements: { limits: { cpu: 'two' } } }, ['spec.resourceRequirements.limits.cpu']],
  ])('%s', (_, further, paths) => {
    expect(wrongPaths(MicroServiceDeploy, { ...base, ...further })).toEqual(paths);
  });

  it('cannot change msName, which the selector holds', () => {
    expect(JSON.stringify(MicroServiceDeploy.schema.spec)).toContain('"rule":"self == oldSelf"');
  });
});

test('its status counts pods, and nothing before there is a Deployment', () => {
  expect(observed(MicroServiceDeploy, self(), [])).toEqual({ replicas: 0, readyReplicas: 0 });
  const live = { ...deployment(), status: { replicas: 3, readyReplicas: 2 } };
  expect(observed(MicroServiceDeploy, self(), [live])).toEqual({ replicas: 3, readyReplicas: 2 });
});
