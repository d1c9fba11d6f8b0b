import { readFileSync } from 'node:fs';
import { Provider, type ProviderArgs } from '@pulumi/kubernetes/provider';
import * as pulumi from '@pulumi/pulumi';
import { ApiObject, type Chart } from 'cdk8s';
import { kubectl, useControlPlane } from '../../../local/testing';
import type { KubeObject } from '../../../constructs/core/kube-object';
import { createApiClient, loadClusterAccess } from '../../../operator/src';
import { ConstructResources, mutableContent, outputs, resourceOptions } from '../../../stacks/components/bridge';
import { groupKind } from '../../../stacks/components/bridge/manifest';
import { builtInScope, clusterKinds } from '../../../stacks/components/bridge/scopes';
import { Engine, Unknown, kubernetesProvider } from '../../support/pulumi-engine';
import { servedTypes } from '../../support/pulumi-engine/providers/kubernetes/identity';

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
function object(chart: Chart, apiVersion: string, kind: string, name: string, rest: object, inside = true): ApiObject {
  const metadata = { name, ...(inside ? { namespace: 'bridge' } : {}) };
  return new ApiObject(chart, kind, { apiVersion, kind, metadata, ...rest });
}

const pod = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'web', image: 'registry.test/web:1', ports: [{ containerPort: 80 }] }] },
};

const gadgetSpec = { type: 'object', properties: { size: { type: 'integer' }, note: { type: 'string' } } };
const openAPIV3Schema = { type: 'object', properties: { spec: gadgetSpec } };
const crd = {
  spec: {
    group: 'bridge.test',
    names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' },
    scope: 'Namespaced',
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
  },
};

function cluster(chart: Chart): void {
  object(chart, 'v1', 'Namespace', 'bridge', {}, false);
  object(chart, 'apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'gadgets.bridge.test', crd, false);
  const storage = { provisioner: 'bridge.test/none', reclaimPolicy: 'Retain' };
  object(chart, 'storage.k8s.io/v1', 'StorageClass', 'bridge', storage, false);
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
  const gadget = { size: replicas, note: outputs.text(pulumi.secret(`${canary}-gadget`)) };
  object(chart, 'bridge.test/v1', 'Gadget', 'web', { spec: gadget });
  const scaling = { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, maxReplicas: 3 };
  object(chart, 'autoscaling/v2', 'HorizontalPodAutoscaler', 'web', { spec: scaling });
  object(chart, 'policy/v1', 'PodDisruptionBudget', 'web', { spec: { minAvailable: 1, selector } });
  const policy = { podSelector: selector, policyTypes: ['Ingress'] };
  object(chart, 'networking.k8s.io/v1', 'NetworkPolicy', 'web', { spec: policy });
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const ingress = object(chart, 'networking.k8s.io/v1', 'Ingress', 'web', { spec: { defaultBackend: backend } });
  // No controller gives it an address here.
  resourceOptions(ingress, { await: { skip: true } });
  const daily = { schedule: '@daily', jobTemplate: { spec: { template: job } } };
  if (cron) object(chart, 'batch/v1', 'CronJob', 'web', { spec: daily });
}

const job = { spec: { restartPolicy: 'Never', containers: [{ name: 'job', image: 'registry.test/job:1' }] } };

function providerOf(args: ProviderArgs = {}): Provider {
  const kubeconfig = pulumi.secret(readFileSync(plane.adminKubeconfig, 'utf8'));
  return new Provider('cluster', { kubeconfig, ...args });
}

function program(version: Version): () => object {
  return () => {
    const provider = providerOf();
    const seed = new ConstructResources(
      'seed',
      { build: (chart) => object(chart, 'v1', 'Namespace', 'bridge-seed', {}, false) },
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

async function run(args: readonly string[]): Promise<string> {
  const { stdout, stderr, code } = await kubectl(plane, args);
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

async function get(args: readonly string[]): Promise<unknown> {
  return JSON.parse(await run(['get', '-o', 'json', ...args])) as unknown;
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
    expect(changed.changes.map(({ op, type }) => `${op} ${type.split(':').at(-1)!}`).sort()).toEqual([
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

/** Objects in a namespace that has other writers, too. */
function shared(args: ProviderArgs, build: (chart: Chart) => void): () => void {
  return () => {
    const provider = providerOf({ ...mutableContent, ...args });
    new ConstructResources('shared', { namespace: 'shared', build }, { provider });
  };
}

test(
  'what exists already, and what another writer holds, is taken over only where the provider says so',
  async () => {
    await run(['create', 'namespace', 'shared']);
    await run(['create', 'configmap', '-n', 'shared', 'web', '--from-literal=note=theirs']);
    const live = ['configmap', '-n', 'shared', 'web'];
    const before = await get(live);
    const settings = (data: object) => (chart: Chart) => object(chart, 'v1', 'ConfigMap', 'web', { data }, false);
    const both = settings({ note: 'ours', more: 'ours' });
    const upsert = { upsertExistingObjects: true };
    const conflict = /conflict with "kubectl-create".*\.data\.note/s;
    const engine = newEngine();

    await expect(engine.up(shared({}, settings({ more: 'ours' })))).rejects.toThrow(/already exists/);
    await expect(engine.up(shared(upsert, both))).rejects.toThrow(conflict);
    expect(await get(live)).toEqual(before);
    expect(engine.state.made).toEqual([]);

    await engine.up(shared(upsert, settings({ more: 'ours' })));
    const { uid } = (before as KubeObject).metadata;
    expect(await get(live)).toMatchObject({ metadata: { uid }, data: { note: 'theirs', more: 'ours' } });
    // A later change meets the same other writer.
    await expect(engine.up(shared(upsert, both))).rejects.toThrow(conflict);
    expect(await get(live)).toMatchObject({ data: { note: 'theirs', more: 'ours' } });

    const forced = shared({ ...upsert, enablePatchForce: true }, both);
    await engine.up(forced);
    expect(await get(live)).toMatchObject({ metadata: { uid }, data: { note: 'ours', more: 'ours' } });
    expect((await engine.up(forced)).summary).toEqual([]);
    await engine.destroy();
    expect(await missing(live)).toBe('');
  },
  2 * minutes,
);

test(
  'a field with ignoreChanges is left to the writer who changed it; without, the two conflict',
  async () => {
    await run(['create', 'namespace', 'scaled']);
    const live = ['deployment', '-n', 'scaled', 'web'];
    const scaled = (replicas: number, tier: string, ignoreChanges: readonly string[]) =>
      shared({}, (chart) => {
        const labels = { tier };
        const spec = { replicas, selector: { matchLabels: { app: 'web' } }, template: pod };
        const metadata = { name: 'web', namespace: 'scaled', labels };
        const web = new ApiObject(chart, 'Deployment', { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec });
        resourceOptions(web, { ignoreChanges });
      });
    const engine = newEngine();
    await engine.up(scaled(1, 'one', ['spec.replicas']));
    await run(['scale', ...live, '--replicas=2']);
    expect((await engine.up(scaled(3, 'one', ['spec.replicas']))).summary).toEqual([]);
    expect((await engine.up(scaled(3, 'two', ['spec.replicas']))).summary).toEqual(['update shared/Deployment']);
    expect(await get(live)).toMatchObject({ metadata: { labels: { tier: 'two' } }, spec: { replicas: 2 } });
    await expect(engine.up(scaled(3, 'two', []))).rejects.toThrow(/conflict with "kubectl".*\.spec\.replicas/s);
    expect(await get(live)).toMatchObject({ spec: { replicas: 2 } });
    await engine.destroy();
    expect(await missing(live)).toBe('');
  },
  2 * minutes,
);

describe('the scopes that the bridge knows', () => {
  const gates = '--feature-gates=ClusterTrustBundle=true,StorageVersionMigrator=true';
  const every = useControlPlane({ components: 'api', extraApiServerArgs: ['--runtime-config=api/all=true', gates] });

  test('are those of the server, kind by kind, and it knows of no others but those that are gone', async () => {
    const client = createApiClient(loadClusterAccess({ path: every.adminKubeconfig }));
    const types = await servedTypes(client).finally(() => client.close());
    const wrong = types.filter((type) => builtInScope({ ...type, metadata: {} }) !== type.scope);
    expect(wrong.map(groupKind)).toEqual([]);

    const served = new Set(types.filter(({ scope }) => scope === 'Cluster').map(groupKind));
    expect(tableOfClusterKinds().filter((kind) => !served.has(kind))).toEqual([
      'auditregistration.k8s.io/AuditSink',
      'extensions/PodSecurityPolicy',
      'policy/PodSecurityPolicy',
      'resource.k8s.io/ResourceClass',
    ]);
  });
});

function tableOfClusterKinds(): string[] {
  return Object.entries(clusterKinds).flatMap(([group, kinds]) => kinds.map((kind) => `${group}/${kind}`));
}
