import { ApiObject } from 'cdk8s';
import { z } from 'zod';
import { own } from '../../../constructs/kind/child-policy';
import { defineKind } from '../../../constructs/kind/kind';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import { crdManifest } from '../../../constructs/crd';
import { useControlPlane } from '../../support/use-control-plane';
import { kubeconfigClient } from '../../../testing';
import { TestEnv } from '../../support/test-env';
import { findCondition, hasCondition, isReadyNow } from '../../support/assertions';
import { InProcessOperator } from '../../../testing/in-process-operator';

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

/** Runs a Job once for each command; the Job controller deletes it as soon as it is complete. */
const Migration = defineKind({
  group: 'e2e.example.com',
  version: 'v1',
  kind: 'Migration',
  plural: 'migrations',
  scope: 'Namespaced',
  description: 'A migration.',
  spec: z.object({ command: z.string().describe('What runs.') }),
  owns: [own(owned.Job, { whenGone: 'keep-gone' })],
  children(scope, { metadata: { name }, spec: { command } }) {
    const containers = [{ name: 'migrate', image: 'migrate:1', command: [command] }];
    const spec = { ttlSecondsAfterFinished: 0, template: { spec: { restartPolicy: 'Never', containers } } };
    new ApiObject(scope, 'job', {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: `${name}-${command}` },
      spec,
    });
  },
});

const Widget: ResourceType = {
  apiVersion: 'widgets.example.com/v1',
  kind: 'Widget',
  plural: 'widgets',
  scope: 'Namespaced',
};

/** Owns a ConfigMap, and a Widget where one is asked for. */
const Panel = defineKind({
  group: 'e2e.example.com',
  version: 'v1',
  kind: 'Panel',
  plural: 'panels',
  scope: 'Namespaced',
  description: 'A panel.',
  spec: z.object({ widget: z.boolean().default(true).describe('Make a Widget too.') }),
  owns: [owned.ConfigMap, Widget],
  finalizer: { name: 'panels.e2e.example.com', propagation: 'Background' },
  children(scope, { metadata: { name }, spec: { widget } }) {
    new ApiObject(scope, 'map', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
    if (widget) new ApiObject(scope, 'widget', { ...typeOf(Widget), metadata: { name } });
  },
});

/** A kind whose CRD is installed late, beside one that needs nothing else. */
const Note = defineKind({
  group: 'e2e.example.com',
  version: 'v1',
  kind: 'Note',
  plural: 'notes',
  scope: 'Namespaced',
  description: 'A note.',
  spec: z.object({}),
  owns: [owned.ConfigMap],
  children(scope, { metadata: { name } }) {
    new ApiObject(scope, 'map', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `note-${name}` } });
  },
});

function typeOf({ apiVersion, kind }: ResourceType): { readonly apiVersion: string; readonly kind: string } {
  return { apiVersion, kind };
}

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
const env = new TestEnv(plane);
jest.setTimeout(180_000);

beforeAll(async () => {
  env.client = await kubeconfigClient(plane.adminKubeconfig);
}, 60_000);
afterAll(() => env.close());

async function install(...crds: readonly object[]): Promise<void> {
  for (const crd of crds) {
    const { metadata, spec } = crd as { metadata: { name: string }; spec: object };
    await env.create(CRDS, metadata, { spec });
    await env.waitUntil(
      CRDS,
      metadata,
      'established',
      (object) => findCondition(object, 'Established')?.status === 'True',
    );
  }
}

describe('children on a real control plane', () => {
  let operator: InProcessOperator;
  let namespace: string;

  beforeAll(async () => {
    await install(crdManifest(Backup), crdManifest(Migration), customCrd(BatchJob));
    operator = await InProcessOperator.start({ kinds: [Backup, Migration], kubeconfig: plane.adminKubeconfig });
    namespace = await env.namespace('children');
  }, 120_000);
  afterAll(() => operator.stop());

  test('an owned Job is current when it is complete, not when it has been made', async () => {
    const ref = { namespace, name: 'later' };
    await env.createOfKind(Backup, ref, { suspend: true });
    const waiting = await env.waitUntil(Backup.type, ref, 'suspended', (object) =>
      (findCondition(object, 'Ready')?.message ?? '').includes('suspended'),
    );
    expect(findCondition(waiting, 'Ready')).toMatchObject({ status: 'False', reason: 'Progressing' });
    await env.patchSpec(Backup, ref, { suspend: false });
    await env.waitUntil(Backup.type, ref, 'Ready', isReadyNow);
    expect(findCondition(await env.get(owned.Job, ref), 'Complete')?.status).toBe('True');
  });

  test('a Job that was complete and that its ttlSecondsAfterFinished has deleted does not run again', async () => {
    const ref = { namespace, name: 'once' };
    const job = { namespace, name: 'once-up' };
    await env.createOfKind(Migration, ref, { command: 'up' });
    await env.waitUntil(Migration.type, ref, 'Ready', isReadyNow);
    await env.waitUntilGone(owned.Job, job);
    const before = await env.get(Migration.type, ref);
    expect(before.metadata.annotations?.['kindred.dev/completed']).toContain('"jobs.batch/once-up"');
    await env.patchSpec(Migration, ref, { command: 'down' });
    await env.waitUntil(Migration.type, ref, 'the next one is complete', (object) =>
      (object.metadata.annotations?.['kindred.dev/completed'] ?? '').includes('"jobs.batch/once-down"'),
    );
    await expect(env.client.get(owned.Job, job)).resolves.toBeUndefined();
  });

  test('an owned Job that failed makes its owner Stalled, in its own words', async () => {
    const ref = { namespace, name: 'failing' };
    await env.createOfKind(Backup, ref, { node: 'there-is-none' });
    const failed = await env.waitUntil(Backup.type, ref, 'Stalled', (object) =>
      hasCondition(object, 'Stalled', 'True'),
    );
    expect(findCondition(failed, 'Ready')).toMatchObject({ status: 'False', reason: 'ChildFailed' });
    expect(findCondition(failed, 'Ready')?.message).toContain('Job was active longer than specified deadline');
  });

  test('a custom child is judged by its own conditions, though its kind is called Job', async () => {
    const ref = { namespace, name: 'custom' };
    const report = (conditions: readonly object[]): Promise<unknown> =>
      env.client.patch(
        BatchJob,
        ref,
        { status: { conditions } },
        {
          ...{ type: 'merge', fieldManager: 'e2e', subresource: 'status' },
        },
      );
    const one = (type: string, status: string) => [{ type, status, reason: 'Because', message: `${type} ${status}` }];
    await env.createOfKind(Backup, ref, { custom: true });
    await env.waitUntil(Backup.type, ref, 'Ready while it says nothing', isReadyNow);
    for (const [conditions, reason, message] of [
      [one('Ready', 'False'), 'Progressing', 'Ready False'],
      [one('Reconciling', 'True'), 'Progressing', 'Reconciling True'],
      [one('Stalled', 'True'), 'ChildFailed', 'Stalled True'],
    ] as const) {
      await report(conditions);
      const seen = await env.waitUntil(Backup.type, ref, message, (object) =>
        (findCondition(object, 'Ready')?.message ?? '').includes(message),
      );
      expect(findCondition(seen, 'Ready')).toMatchObject({ status: 'False', reason });
    }
    await report(one('Ready', 'True'));
    await env.waitUntil(Backup.type, ref, 'Ready again', isReadyNow);
  });
});

describe('a type that is not installed', () => {
  let operator: InProcessOperator;
  let namespace: string;

  beforeAll(async () => {
    await install(crdManifest(Panel));
    namespace = await env.namespace('missing');
    operator = await InProcessOperator.start({ kinds: [Panel, Note, Backup], kubeconfig: plane.adminKubeconfig });
  }, 120_000);
  afterAll(() => operator.stop());

  const panel = (name: string) => ({ namespace, name });
  const lacking = (name: string) =>
    env.waitUntil(Panel.type, panel(name), 'missing its type', (object) => {
      const found = findCondition(object, 'Ready');
      return found?.reason === 'ErrTypeMissing' && found.message.includes('widgets.example.com/v1/Widget');
    });
  /** Another kind of the same operator goes on. */
  async function othersGoOn(name: string): Promise<void> {
    const ref = { namespace, name };
    await env.createOfKind(Backup, ref, { suspend: true });
    await env.waitUntil(Backup.type, ref, 'reconciled', (object) => hasCondition(object, 'Ready', 'False'));
    expect(await operator.readyz()).toMatchObject({ status: 200 });
  }

  test('stops only what needs it, and nothing else of that', async () => {
    await env.createOfKind(Panel, panel('whole'));
    await env.createOfKind(Panel, panel('plain'), { widget: false });
    expect(hasCondition(await lacking('whole'), 'Reconciling', 'True')).toBe(true);
    expect(await env.get(owned.ConfigMap, panel('whole'))).toBeDefined();
    await env.waitUntil(Panel.type, panel('plain'), 'Ready', isReadyNow);
    await othersGoOn('before');
  });

  test('lets an object with a finalizer go', async () => {
    await env.createOfKind(Panel, panel('leaving'));
    await lacking('leaving');
    await env.deleteAndWait(Panel.type, panel('leaving'));
    await env.waitUntilGone(owned.ConfigMap, panel('leaving'));
  });

  test('is taken up without a restart when it is installed: a child type, and a kind of the operator', async () => {
    await install(customCrd(Widget), crdManifest(Note));
    await env.waitUntil(Panel.type, panel('whole'), 'Ready', isReadyNow);
    expect((await env.get(Widget, panel('whole'))).metadata.ownerReferences).toMatchObject([{ kind: 'Panel' }]);
    await env.createOfKind(Note, panel('late'));
    await env.waitUntil(Note.type, panel('late'), 'Ready', isReadyNow);
    expect(await operator.readyz()).toMatchObject({ status: 200 });
  });

  test('does not stop the others when it is removed later, and is taken up again', async () => {
    await env.deleteAndWait(CRDS, { name: 'widgets.widgets.example.com' });
    await lacking('whole');
    await othersGoOn('after');
    await env.deleteAndWait(CRDS, { name: Note.crdName });
    await env.createOfKind(Panel, panel('more'), { widget: false });
    await env.waitUntil(Panel.type, panel('more'), 'Ready', isReadyNow);
    expect(await operator.readyz()).toMatchObject({ status: 200 });

    await install(customCrd(Widget), crdManifest(Note));
    await env.waitUntil(Panel.type, panel('whole'), 'Ready', isReadyNow);
    await env.createOfKind(Note, panel('again'));
    await env.waitUntil(Note.type, panel('again'), 'Ready', isReadyNow);
    expect(operator.log.errors()).toEqual([]);
  });
});
