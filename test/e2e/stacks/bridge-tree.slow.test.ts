import * as pulumi from '@pulumi/pulumi';
import type { Chart } from 'cdk8s';
import { useControlPlane } from '../../support/use-control-plane';
import { createApiClient, loadClusterAccess } from '../../../operator';
import { ConstructResources, outputs, resourceOptions } from '../../../stacks/bridge';
import { groupKind } from '../../../stacks/bridge/manifest';
import { builtInScope, clusterScopedKinds } from '../../../stacks/bridge/built-in-kinds';
import { Unknown } from '../../support/pulumi-engine';
import { servedTypes } from '../../support/pulumi-engine/providers/kubernetes-objects';
import { get, minutes, missing, newEngine, object, pod, providerOf } from './bridge-plane';

// The gate keeps objects that have other writers: bridge.test.ts.
const canary = 'canary-9f2c71d4';

/** What of the tree changes between runs. */
interface Version {
  readonly replicas: number;
  readonly note: string;
  readonly cron: boolean;
}

const first: Version = { replicas: 1, note: 'one', cron: true };

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

describe('the scopes that the bridge knows', () => {
  const gates = '--feature-gates=ClusterTrustBundle=true,StorageVersionMigrator=true';
  const every = useControlPlane({ components: 'api', extraApiServerArgs: ['--runtime-config=api/all=true', gates] });

  test('are those of the server, kind by kind, and it knows of no others but those that are gone', async () => {
    const client = createApiClient(loadClusterAccess({ path: every.adminKubeconfig }));
    const types = await servedTypes(client);
    await client.close();
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
  return Object.entries(clusterScopedKinds).flatMap(([group, kinds]) => kinds.map((kind) => `${group}/${kind}`));
}
