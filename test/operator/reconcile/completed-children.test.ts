import { k8s } from 'cdk8s-plus-27';
import { z } from 'zod';
import { own, type ChildPolicy } from '../../../constructs/kind/child-policy';
import { defineKind, type AnyKind } from '../../../constructs/kind/kind';
import { withDefaults } from '../../../constructs/kind/render';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import { Harness, ref } from './harness';

const { ConfigMap, Deployment, Job } = owned;
const RECORD = 'kindred.dev/completed';

/** A kind with a migration Job for each image, and a Deployment. */
function webApp(policy: ChildPolicy, formerlyOwned: readonly ResourceType[] = []): AnyKind {
  return defineKind({
    group: 'apps.example.com',
    version: 'v1',
    kind: 'WebApp',
    plural: 'webapps',
    scope: 'Namespaced',
    description: 'A web application with a migration.',
    spec: z.object({
      image: z.string().describe('Image.'),
      migrates: z.boolean().default(true).describe('Whether there is a migration.'),
    }),
    owns: [own(Job, policy), ConfigMap],
    formerlyOwned,
    children(scope, { metadata, spec }) {
      if (spec.migrates) {
        new k8s.KubeJob(scope, 'migrate', {
          metadata: { name: 'migrate' },
          spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'm', image: spec.image }] } } },
        });
      }
      new k8s.KubeConfigMap(scope, 'config', { metadata: { name: metadata.name }, data: { image: spec.image } });
    },
  });
}

async function migrating(policy: ChildPolicy = { whenGone: 'keep-gone' }): Promise<Harness> {
  const harness = new Harness(webApp(policy));
  await harness.add('web', { image: 'a' });
  await harness.reconcile('web');
  return harness;
}

/** The Job controller's report. */
function finish(harness: Harness, type: 'Complete' | 'Failed'): void {
  harness.server.edit(Job, ref('migrate'), (job) => ({ ...job, status: { conditions: [{ type, status: 'True' }] } }));
}

function pause(harness: Harness, paused: 'true' | 'false'): void {
  harness.server.edit(harness.kind.type, ref('web'), ({ metadata, ...object }) => {
    const annotations = { ...metadata.annotations, 'kindred.dev/paused': paused };
    return { ...object, metadata: { ...metadata, annotations } };
  });
}

function jobs(harness: Harness): number {
  return harness.server.peek(Job, ref('migrate')) === undefined ? 0 : 1;
}

function record(harness: Harness): unknown {
  const text = harness.object('web').metadata.annotations?.[RECORD];
  return text === undefined ? undefined : (JSON.parse(text) as unknown);
}

describe('a Job with whenGone: keep-gone', () => {
  it('is not created again once it was complete, and its owner is Ready', async () => {
    const harness = await migrating();
    expect(harness.conditions('web')[0]).toBe('Ready=False Progressing');
    finish(harness, 'Complete');
    await harness.reconcile('web');
    const hash = harness.live(Job, 'migrate').metadata.annotations?.['kindred.dev/hash'];
    expect(record(harness)).toEqual({ 'jobs.batch/migrate': hash });
    harness.server.remove(Job, ref('migrate'));
    expect((await harness.reconcile('web')).writes).toEqual([]);
    expect(jobs(harness)).toBe(0);
    expect(harness.conditions('web')).toEqual(['Ready=True Ready']);
  });

  it('is not created again if its last event is the first that shows it complete', async () => {
    const harness = await migrating();
    finish(harness, 'Complete');
    harness.server.remove(Job, ref('migrate'));
    await harness.reconcile('web');
    expect(jobs(harness)).toBe(0);
    expect(harness.conditions('web')).toEqual(['Ready=True Ready']);
  });

  it('is not created again while it is being deleted, nor does its owner wait for that', async () => {
    const harness = await migrating();
    finish(harness, 'Complete');
    harness.server.edit(Job, ref('migrate'), (job) => ({
      ...job,
      metadata: { ...job.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['foregroundDeletion'] },
    }));
    await harness.reconcile('web');
    expect(harness.conditions('web')).toEqual(['Ready=True Ready']);
  });

  it('is not created again when the status of its owner is lost, nor by a restarted operator', async () => {
    const harness = await migrating();
    finish(harness, 'Complete');
    await harness.reconcile('web');
    harness.server.remove(Job, ref('migrate'));
    harness.server.edit(harness.kind.type, ref('web'), (object) => ({ ...object, status: undefined }));
    const restarted = new Harness(harness.kind, harness.server);
    restarted.fillCaches();
    await restarted.reconcile('web');
    expect(jobs(restarted)).toBe(0);
    expect(restarted.conditions('web')).toEqual(['Ready=True Ready']);
  });

  it('is not created again after a pause in which it was deleted, even by a restarted operator', async () => {
    const harness = await migrating();
    pause(harness, 'true');
    finish(harness, 'Complete');
    await harness.reconcile('web');
    harness.server.remove(Job, ref('migrate'));
    const restarted = new Harness(harness.kind, harness.server);
    restarted.fillCaches();
    pause(restarted, 'false');
    await restarted.reconcile('web');
    expect(jobs(restarted)).toBe(0);
  });

  it.each(['Failed', undefined] as const)(
    'is created again if it was deleted before it was complete: %s',
    async (end) => {
      const harness = await migrating();
      if (end !== undefined) finish(harness, end);
      await harness.reconcile('web');
      expect(record(harness)).toBeUndefined();
      harness.server.remove(Job, ref('migrate'));
      await harness.reconcile('web');
      expect(jobs(harness)).toBe(1);
    },
  );

  it('is created for another rendering, and once more for a rendering that comes back', async () => {
    const harness = await migrating();
    for (const image of ['b', 'a']) {
      finish(harness, 'Complete');
      await harness.reconcile('web');
      harness.server.remove(Job, ref('migrate'));
      expect((await harness.reconcile('web')).writes).toEqual([]);
      harness.respec('web', { image });
      await harness.reconcile('web');
      expect(jobs(harness)).toBe(1);
    }
  });

  it('is created for a rendering that comes back after one that did not complete', async () => {
    const harness = await migrating();
    finish(harness, 'Complete');
    await harness.reconcile('web');
    harness.server.remove(Job, ref('migrate'));
    harness.respec('web', { image: 'b' });
    await harness.reconcile('web');
    finish(harness, 'Failed');
    await harness.reconcile('web');
    harness.server.remove(Job, ref('migrate'));
    harness.respec('web', { image: 'a' });
    await harness.reconcile('web');
    expect(jobs(harness)).toBe(1);
  });

  it('is remembered if it completes while another one is being recorded', async () => {
    const harness = await migrating();
    const { completions } = harness.context;
    const job = harness.live(Job, 'migrate');
    const complete = { ...job, status: { conditions: [{ type: 'Complete', status: 'True' }] } };
    const uid = harness.object('web').metadata.uid ?? '';
    const seen = completions.of(uid);
    completions.recordDeletion(harness.kind, complete);
    completions.forget(uid, seen);
    expect(Object.keys(completions.of(uid))).toEqual(['jobs.batch/migrate']);
    completions.forget(uid, completions.of(uid));
    expect(completions.of(uid)).toEqual({});
  });

  it('does not let its record change what is rendered', async () => {
    const harness = await migrating();
    const { metadata, ...object } = harness.object('web');
    const recorded = { ...object, metadata: { ...metadata, annotations: { a: 'b', [RECORD]: '{}' } } };
    expect(withDefaults(harness.kind, recorded as never).metadata.annotations).toEqual({ a: 'b' });
  });

  it('is dropped from the record when it is not rendered any more, and then created when it is', async () => {
    const harness = await migrating();
    finish(harness, 'Complete');
    await harness.reconcile('web');
    harness.respec('web', { migrates: false });
    await harness.reconcile('web');
    expect(jobs(harness)).toBe(0);
    expect(record(harness)).toBeUndefined();
    harness.respec('web', { migrates: true });
    await harness.reconcile('web');
    expect(jobs(harness)).toBe(1);
  });

  it('is created again when a user removes the record', async () => {
    const harness = await migrating();
    finish(harness, 'Complete');
    await harness.reconcile('web');
    harness.server.remove(Job, ref('migrate'));
    await harness.reconcile('web');
    harness.server.edit(harness.kind.type, ref('web'), (object) => ({
      ...object,
      metadata: { ...object.metadata, annotations: {} },
    }));
    await harness.reconcile('web');
    expect(jobs(harness)).toBe(1);
  });

  it('leaves an object of another owner under its name alone', async () => {
    const harness = await migrating();
    finish(harness, 'Complete');
    await harness.reconcile('web');
    harness.server.remove(Job, ref('migrate'));
    const theirs = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'migrate', namespace: 'default' } };
    await harness.server.create(Job, theirs, { fieldManager: 'kubectl' });
    expect((await harness.reconcile('web')).writes).toEqual([]);
    expect(harness.conditions('web')).toEqual(['Ready=True Ready']);
  });

  it('is recorded again if the write was refused', async () => {
    const harness = await migrating();
    finish(harness, 'Complete');
    harness.server.edit(harness.kind.type, ref('web'), (object) => {
      const labels = { a: 'b' };
      return { ...object, metadata: { ...object.metadata, labels } };
    });
    harness.server.remove(Job, ref('migrate'));
    await harness.reconcile('web');
    expect(record(harness)).toBeDefined();
    expect(jobs(harness)).toBe(0);
  });
});

describe('without whenGone: keep-gone', () => {
  it('a Job is created again, and nothing is recorded', async () => {
    const harness = await migrating({});
    finish(harness, 'Complete');
    await harness.reconcile('web');
    expect(record(harness)).toBeUndefined();
    harness.server.remove(Job, ref('migrate'));
    await harness.reconcile('web');
    expect(jobs(harness)).toBe(1);
  });
});

describe('a Job with ready: ignore', () => {
  it.each(['Complete', 'Failed', undefined] as const)('does not matter to Ready: %s', async (end) => {
    const harness = await migrating({ ready: 'ignore' });
    if (end !== undefined) finish(harness, end);
    await harness.reconcile('web');
    expect(harness.conditions('web')).toEqual(['Ready=True Ready']);
  });

  it('matters if it cannot be written', async () => {
    const harness = await migrating({ ready: 'ignore' });
    harness.server.remove(Job, ref('migrate'));
    const theirs = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'migrate', namespace: 'default' } };
    await harness.server.create(Job, theirs, { fieldManager: 'kubectl' });
    await harness.reconcile('web');
    expect(harness.conditions('web')[0]).toBe('Ready=False ErrResourceExists');
  });
});

test('a policy is refused for types that a kind shares, or owned formerly', () => {
  const define = (): unknown => webApp({}, [own(Deployment, { ready: 'ignore' })]);
  expect(define).toThrow(/formerlyOwned: a policy by own\(\) is for a kind's own children/);
});
