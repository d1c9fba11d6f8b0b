import { ApiObject } from 'cdk8s';
import { z } from 'zod';
import { defineKind } from '../../../constructs/core/kind';
import { owned } from '../../../constructs/core/owned';
import type { ResourceType } from '../../../constructs/core/resource-type';
import { crdManifest } from '../../../constructs/crd';
import { useControlPlane } from '../../../local/testing';
import { adminClient } from '../../../operator/testing';
import { Bench } from './support/bench';
import { condition, is, ready } from './support/conditions';
import { startInProcess } from './support/in-process';
import type { InProcessOperator } from './support/in-process';

const CRDS: ResourceType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
};

/** A custom type that is called like a built-in one. Nobody here acts on its objects but the tests. */
const BatchJob: ResourceType = {
  apiVersion: 'batch.example.com/v1',
  kind: 'Job',
  plural: 'jobs',
  scope: 'Namespaced',
};

/** Owns a Job of each of the two groups. */
const Backup = defineKind({
  group: 'e2e.example.com',
  version: 'v1',
  kind: 'Backup',
  plural: 'backups',
  scope: 'Namespaced',
  description: 'A backup.',
  spec: z.object({
    custom: z.boolean().default(false).describe('Make the custom Job instead of the built-in one.'),
    suspend: z.boolean().default(false).describe('Do not start the built-in Job yet.'),
    node: z.string().max(63).optional().describe('Where the built-in Job runs.'),
  }),
  owns: [owned.Job, BatchJob],
  children(scope, { metadata: { name }, spec: { custom, suspend, node } }) {
    if (custom) {
      new ApiObject(scope, 'custom', { apiVersion: BatchJob.apiVersion, kind: 'Job', metadata: { name } });
      return;
    }
    const containers = [{ name: 'backup', image: 'backup:1' }];
    const nodeSelector = node === undefined ? {} : { nodeSelector: { 'kubernetes.io/hostname': node } };
    const template = { spec: { restartPolicy: 'Never', containers, ...nodeSelector } };
    const job = { suspend, backoffLimit: 0, activeDeadlineSeconds: node === undefined ? 600 : 1, template };
    new ApiObject(scope, 'job', { apiVersion: 'batch/v1', kind: 'Job', metadata: { name }, spec: job });
  },
});

function customCrd({ apiVersion, kind, plural, scope }: ResourceType): object {
  const [group = '', version = ''] = apiVersion.split('/');
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const versions = [{ name: version, served: true, storage: true, schema, subresources: { status: {} } }];
  return {
    apiVersion: CRDS.apiVersion,
    kind: CRDS.kind,
    metadata: { name: `${plural}.${group}` },
    spec: { group, scope, names: { kind, plural, listKind: `${kind}List` }, versions },
  };
}

const plane = useControlPlane({ components: 'full' });
const bench = new Bench(plane);
jest.setTimeout(180_000);

beforeAll(async () => {
  bench.client = await adminClient(plane.adminKubeconfig);
}, 60_000);
afterAll(() => bench.close());

async function install(...crds: readonly object[]): Promise<void> {
  for (const crd of crds) {
    const { metadata, spec } = crd as { metadata: { name: string }; spec: object };
    await bench.create(CRDS, metadata, { spec });
    await bench.until(CRDS, metadata, 'established', (object) => condition(object, 'Established')?.status === 'True');
  }
}

describe('children on a real control plane', () => {
  let operator: InProcessOperator;
  let namespace: string;

  beforeAll(async () => {
    await install(crdManifest(Backup), customCrd(BatchJob));
    operator = await startInProcess(plane, [Backup]);
    namespace = await bench.namespace('children');
  }, 120_000);
  afterAll(() => operator.stop());

  test('an owned Job is current when it is complete, not when it has been made', async () => {
    const ref = { namespace, name: 'later' };
    await bench.make(Backup, ref, { suspend: true });
    const waiting = await bench.until(Backup.type, ref, 'suspended', (object) =>
      (condition(object, 'Ready')?.message ?? '').includes('suspended'),
    );
    expect(condition(waiting, 'Ready')).toMatchObject({ status: 'False', reason: 'Progressing' });
    await bench.respec(Backup, ref, { suspend: false });
    await bench.until(Backup.type, ref, 'Ready', ready);
    expect(condition(await bench.get(owned.Job, ref), 'Complete')?.status).toBe('True');
  });

  test('an owned Job that failed makes its owner Stalled, in its own words', async () => {
    const ref = { namespace, name: 'failing' };
    await bench.make(Backup, ref, { node: 'there-is-none' });
    const failed = await bench.until(Backup.type, ref, 'Stalled', (object) => is(object, 'Stalled', 'True'));
    expect(condition(failed, 'Ready')).toMatchObject({ status: 'False', reason: 'ChildFailed' });
    expect(condition(failed, 'Ready')?.message).toContain('Job was active longer than specified deadline');
  });

  test('a custom child is judged by its own conditions, though its kind is called Job', async () => {
    const ref = { namespace, name: 'custom' };
    const report = (conditions: readonly object[]): Promise<unknown> =>
      bench.client.patch(
        BatchJob,
        ref,
        { status: { conditions } },
        {
          ...{ type: 'merge', fieldManager: 'e2e', subresource: 'status' },
        },
      );
    const one = (type: string, status: string) => [{ type, status, reason: 'Because', message: `${type} ${status}` }];
    await bench.make(Backup, ref, { custom: true });
    await bench.until(Backup.type, ref, 'Ready while it says nothing', ready);
    for (const [conditions, reason, message] of [
      [one('Ready', 'False'), 'Progressing', 'Ready False'],
      [one('Reconciling', 'True'), 'Progressing', 'Reconciling True'],
      [one('Stalled', 'True'), 'ChildFailed', 'Stalled True'],
    ] as const) {
      await report(conditions);
      const seen = await bench.until(Backup.type, ref, message, (object) =>
        (condition(object, 'Ready')?.message ?? '').includes(message),
      );
      expect(condition(seen, 'Ready')).toMatchObject({ status: 'False', reason });
    }
    await report(one('Ready', 'True'));
    await bench.until(Backup.type, ref, 'Ready again', ready);
  });
});
