import { readFileSync } from 'node:fs';
import { Provider } from '@pulumi/kubernetes/provider';
import * as pulumi from '@pulumi/pulumi';
import { ApiObject, type Chart } from 'cdk8s';
import { kubectl, useControlPlane } from '../../../local/testing';
import { ConstructResources, outputs, resourceOptions } from '../../../stacks/components/bridge';
import { Engine, Unknown, kubernetesProvider } from '../../support/pulumi-engine';

const plane = useControlPlane({ components: 'full' });
const canary = 'canary-9f2c71d4';
const minutes = 60_000;

/** What of the tree changes between runs. */
interface Version {
  readonly replicas: number;
  readonly note: string;
  readonly cron: boolean;
}

const first: Version = { replicas: 1, note: 'one', cron: true };

/** One object of a kind; its construct id is the kind's name. */
function object(
  chart: Chart,
  apiVersion: string,
  kind: string,
  name: string,
  rest: object,
  namespaced = true,
): ApiObject {
  const metadata = { name, ...(namespaced ? { namespace: 'bridge' } : {}) };
  return new ApiObject(chart, kind, { apiVersion, kind, metadata, ...rest });
}

const pod = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'web', image: 'registry.test/web:1', ports: [{ containerPort: 80 }] }] },
};

const crd = {
  spec: {
    group: 'bridge.test',
    names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { size: { type: 'integer' }, note: { type: 'string' } } },
            },
          },
        },
      },
    ],
  },
};

function cluster(chart: Chart): void {
  object(chart, 'v1', 'Namespace', 'bridge', {}, false);
  object(chart, 'apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'gadgets.bridge.test', crd, false);
  object(
    chart,
    'storage.k8s.io/v1',
    'StorageClass',
    'bridge',
    { provisioner: 'bridge.test/none', reclaimPolicy: 'Retain' },
    false,
  );
  object(chart, 'scheduling.k8s.io/v1', 'PriorityClass', 'bridge', { value: 7 }, false);
  const rules = [{ apiGroups: ['bridge.test'], resources: ['gadgets'], verbs: ['get'] }];
  object(chart, 'rbac.authorization.k8s.io/v1', 'ClusterRole', 'bridge', { rules }, false);
  const subjects = [{ kind: 'ServiceAccount', name: 'web', namespace: 'bridge' }];
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'bridge' };
  object(chart, 'rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', 'bridge', { subjects, roleRef }, false);
}

function access(chart: Chart): void {
  object(chart, 'v1', 'ServiceAccount', 'web', {});
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }];
  object(chart, 'rbac.authorization.k8s.io/v1', 'Role', 'web', { rules });
  const subjects = [{ kind: 'ServiceAccount', name: 'web', namespace: 'bridge' }];
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'web' };
  object(chart, 'rbac.authorization.k8s.io/v1', 'RoleBinding', 'web', { subjects, roleRef });
  object(chart, 'v1', 'LimitRange', 'web', { spec: { limits: [{ type: 'Container', default: { cpu: '1' } }] } });
  object(chart, 'v1', 'ResourceQuota', 'web', { spec: { hard: { pods: '50' } } });
}

function workload(chart: Chart, { replicas, note, cron }: Version, seedId: pulumi.Output<string>): void {
  const selector = { matchLabels: { app: 'web' } };
  const spec = { replicas: outputs.any(pulumi.output(replicas)), selector, template: pod };
  object(chart, 'apps/v1', 'Deployment', 'web', { spec });
  object(chart, 'v1', 'Service', 'web', { spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 80 }] } });
  const settings = object(chart, 'v1', 'ConfigMap', 'web', {
    data: { note: `the note is ${outputs.text(pulumi.output(note))}`, seed: outputs.text(seedId), plain: 'plain' },
  });
  resourceOptions(settings, { contentHashedName: false });
  object(chart, 'v1', 'Secret', 'web', { stringData: { password: outputs.text(pulumi.secret(canary)) } });
  object(chart, 'bridge.test/v1', 'Gadget', 'web', {
    spec: { size: replicas, note: outputs.text(pulumi.secret(`${canary}-gadget`)) },
  });
  const target = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
  object(chart, 'autoscaling/v2', 'HorizontalPodAutoscaler', 'web', {
    spec: { scaleTargetRef: target, maxReplicas: 3 },
  });
  object(chart, 'policy/v1', 'PodDisruptionBudget', 'web', { spec: { minAvailable: 1, selector } });
  object(chart, 'networking.k8s.io/v1', 'NetworkPolicy', 'web', {
    spec: { podSelector: selector, policyTypes: ['Ingress'] },
  });
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const ingress = object(chart, 'networking.k8s.io/v1', 'Ingress', 'web', { spec: { defaultBackend: backend } });
  // No controller gives it an address here.
  resourceOptions(ingress, { await: { skip: true } });
  if (cron)
    object(chart, 'batch/v1', 'CronJob', 'web', {
      spec: { schedule: '@daily', jobTemplate: { spec: { template: job } } },
    });
}

const job = { spec: { restartPolicy: 'Never', containers: [{ name: 'job', image: 'registry.test/job:1' }] } };

function program(version: Version): () => object {
  return () => {
    const provider = new Provider('cluster', {
      kubeconfig: pulumi.secret(readFileSync(plane.adminKubeconfig, 'utf8')),
    });
    const seed = new ConstructResources(
      'seed',
      {
        build: (chart) =>
          new ApiObject(chart, 'Namespace', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'bridge-seed' } }),
      },
      { provider },
    );
    // Known once it is there.
    const seedId = seed.resources.get('Namespace')!.id;
    const tree = new ConstructResources(
      'tree',
      {
        build: (chart) => {
          cluster(chart);
          access(chart);
          workload(chart, version, seedId);
        },
      },
      { provider },
    );
    return { seedId, settings: tree.resources.get('ConfigMap')!.metadata.name };
  };
}

function newEngine(state?: string): Engine {
  return new Engine({ providers: [kubernetesProvider()], ...(state === undefined ? {} : { state }) });
}

async function get(args: readonly string[]): Promise<unknown> {
  const { stdout, stderr, code } = await kubectl(plane, ['get', '-o', 'json', ...args]);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as unknown;
}

async function missing(args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await kubectl(plane, ['get', '--ignore-not-found', '-o', 'name', ...args]);
  return stdout + stderr;
}

test(
  'a tree of many groups: planned, created, unchanged, changed, and gone, on the real API server',
  async () => {
    const plan = await newEngine().preview(program(first));
    expect(plan.summary.every((line) => line.startsWith('create '))).toBe(true);
    expect(plan.output('seedId')).toBeInstanceOf(Unknown);
    expect(await missing(['namespace', 'bridge'])).toBe('');

    let engine = newEngine();
    const created = await engine.up(program(first));
    expect(created.summary).toEqual(plan.summary);
    const kinds = engine.state.made.map((resource) => resource.type);
    expect(new Set(kinds).size).toBe(21);
    expect(await get(['configmap', '-n', 'bridge', 'web'])).toMatchObject({
      data: { note: 'the note is one', seed: 'bridge-seed', plain: 'plain' },
    });
    expect(await get(['secret', '-n', 'bridge', 'web'])).toMatchObject({
      data: { password: Buffer.from(canary).toString('base64') },
    });
    expect(await get(['gadgets.bridge.test', '-n', 'bridge', 'web'])).toMatchObject({
      spec: { size: 1, note: `${canary}-gadget` },
    });
    expect(await get(['deployment', '-n', 'bridge', 'web'])).toMatchObject({ status: { availableReplicas: 1 } });

    const plainText = created.plainText();
    expect(plainText).not.toContain(canary);
    expect(plainText).not.toContain(Buffer.from(canary).toString('base64'));

    // From its text alone, as another process would.
    engine = newEngine(engine.export());
    expect((await engine.up(program(first))).summary).toEqual([]);

    const changed = await engine.up(program({ replicas: 2, note: 'two', cron: false }));
    expect(
      changed.operations
        .filter(({ op }) => op !== 'same')
        .map(({ op, type }) => `${op} ${type.split(':').at(-1)!}`)
        .sort(),
    ).toEqual([
      'delete CronJob',
      'delete-replaced ConfigMap',
      'replace ConfigMap',
      'update Deployment',
      'update Gadget',
    ]);
    expect(await get(['deployment', '-n', 'bridge', 'web'])).toMatchObject({ status: { availableReplicas: 2 } });
    expect(await missing(['cronjob', '-n', 'bridge', 'web'])).toBe('');

    await engine.destroy();
    expect(engine.state.resources).toEqual([]);
    expect(await missing(['namespace', 'bridge', 'bridge-seed'])).toBe('');
    expect(await missing(['crd', 'gadgets.bridge.test'])).toBe('');
    expect(await missing(['clusterrole,clusterrolebinding,storageclass,priorityclass', 'bridge'])).toBe('');
  },
  4 * minutes,
);
