import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ApiClient, ListOptions } from '../../operator/client/api-client';
import { assertConverged, convergenceProblems } from '../../bench/convergence';
import { deploymentOf, doneApp } from './fake-bench-env';

const apps = Array.from({ length: 3 }, (_, i) => doneApp(appOf(`app-${String(i)}`, { image: 'a:1', size: 2 })));
const deployments = apps.map(deploymentOf);

function appOf(name: string, spec: object): KubeObject {
  const metadata = { namespace: 'mine', name, uid: `uid-of-${name}`, generation: 4 };
  return { apiVersion: 'apps.anupam.com/v1', kind: 'HelloApp', metadata, spec };
}

/** What is found when the second of three is another. */
function withSecond(app: KubeObject | undefined, deployment: KubeObject | undefined): readonly string[] {
  const second = <T>(all: readonly T[], one: T | undefined): readonly T[] =>
    all.flatMap((each, i) => (i !== 1 ? [each] : one === undefined ? [] : [one]));
  return convergenceProblems(3, { apps: second(apps, app), deployments: second(deployments, deployment) });
}

function status(changed: object): KubeObject {
  const [, app] = apps as [KubeObject, KubeObject];
  return { ...app, status: { ...(app['status'] as object), ...changed } };
}

function deployment(changed: {
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}): KubeObject {
  const [, one] = deployments as [KubeObject, KubeObject];
  return {
    ...one,
    metadata: { ...one.metadata, ...changed.metadata },
    spec: { ...(one['spec'] as object), ...changed.spec },
    ...(changed.status === undefined ? {} : { status: changed.status }),
  };
}

const [, app] = apps;
const [, child] = deployments;

test('nothing is found where all is done', () => {
  expect(convergenceProblems(3, { apps, deployments })).toEqual([]);
});

test('the defaults of the schema hold where a spec says nothing', () => {
  const plain = doneApp(appOf('app-1', { image: 'a:1' }));
  expect(withSecond(plain, deployment({ spec: { replicas: 1 } }))).toEqual([]);
  expect(withSecond(plain, deployment({}))).toEqual(['app-1: replicas 2 instead of 1']);
});

test.each<[string, KubeObject | undefined, string]>([
  ['missing', undefined, 'no Deployment'],
  [
    'of another image',
    deployment({ spec: { template: { spec: { containers: [{ name: 'helloapp', image: 'a:0' }] } } } }),
    'image a:0 instead of a:1',
  ],
  ['of other replicas', deployment({ spec: { replicas: 3 } }), 'replicas 3 instead of 2'],
  ["nobody's", deployment({ metadata: { ownerReferences: [] } }), 'its Deployment is not its own'],
  [
    'of a former object of the name',
    deployment({ metadata: { ownerReferences: [{ controller: true, uid: 'former' }] } }),
    'its Deployment is not its own',
  ],
])('a Deployment that is %s', (_, one, finding) => {
  expect(withSecond(app, one)).toEqual([`app-1: ${finding}`]);
});

test('a Deployment without a HelloApp', () => {
  expect(withSecond(undefined, child)).toEqual([
    'there are 2 HelloApps instead of 3',
    'Deployment app-1: there is no HelloApp of this name',
  ]);
});

test.each<[string, object, readonly string[]]>([
  ['of a former spec', { observedGeneration: 3 }, ['status.observedGeneration 3 instead of 4']],
  [
    'without conditions',
    { conditions: [] },
    [
      'Ready undefined instead of False',
      'observedGeneration of Ready undefined instead of 4',
      'Reconciling undefined instead of True',
    ],
  ],
  [
    'with conditions of a former spec',
    {
      conditions: [
        { type: 'Ready', status: 'False', observedGeneration: 3 },
        { type: 'Reconciling', status: 'True', observedGeneration: 4 },
      ],
    },
    ['observedGeneration of Ready 3 instead of 4'],
  ],
  ['of more pods than stand', { replicas: 1 }, ['status.replicas 1 instead of 0']],
  ['of more pods than are ready', { readyReplicas: 1 }, ['status.readyReplicas 1 instead of 0']],
  ["of another's pods", { selector: 'app=app-0' }, ['status.selector app=app-0 instead of app=app-1']],
])('a status %s', (_, changed, findings) => {
  expect(withSecond(status(changed), child)).toEqual([`app-1: ${findings.join(', ')}`]);
});

test('no status at all', () => {
  const [, bare] = apps.map(({ metadata: { name } }) => appOf(name, { image: 'a:1', size: 2 }));
  expect(withSecond(bare, child)[0]).toContain('app-1: status.observedGeneration undefined instead of 4');
});

test('who has its pods is Ready, and says so', () => {
  const running = deployment({ status: { replicas: 2, readyReplicas: 2 } });
  const ready = { type: 'Ready', status: 'True', observedGeneration: 4 };
  const counts = { replicas: 2, readyReplicas: 2 };
  expect(withSecond(status({ ...counts, conditions: [ready] }), running)).toEqual([]);
  expect(withSecond(status(counts), running)).toEqual([
    'app-1: Ready False instead of True, Reconciling True instead of undefined',
  ]);
});

test('the error says whose work it is, names the first objects and counts the others; all pages are read', async () => {
  const many = Array.from({ length: 7 }, (_, i) => doneApp(appOf(`app-${String(i)}`, { image: 'a:1', size: 2 })));
  const client = (children: readonly KubeObject[]): Pick<ApiClient, 'list'> => ({
    list: ({ kind }, { continueToken = '0' }: ListOptions = {}) => {
      const from = Number(continueToken);
      const items = kind === 'HelloApp' ? many : children;
      const next = from + 4 < items.length ? { continueToken: String(from + 4) } : {};
      return Promise.resolve({ items: items.slice(from, from + 4), resourceVersion: '1', ...next });
    },
  });
  await expect(assertConverged(client(many.map(deploymentOf)), 'a twin', many)).resolves.toBeUndefined();
  await expect(assertConverged(client(many.slice(0, 1).map(deploymentOf)), 'a twin', many)).rejects.toThrow(
    'a twin: the work on 7 objects in mine is not done: app-1: no Deployment; app-2: no Deployment; app-3: no Deployment; ' +
      'app-4: no Deployment; app-5: no Deployment; and 1 more',
  );
});
