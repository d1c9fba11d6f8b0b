import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { MicroServiceDeploy } from '../../../constructs/kinds';
import { Harness, ref } from './harness';

const { Deployment, HorizontalPodAutoscaler } = owned;
const spec = { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'i', replicas: 3 };
const STATUS = 'APPLY MicroServiceDeploy m/status (kindred)';

interface WithManagers {
  readonly managedFields?: readonly {
    manager: string;
    operation: string;
    fieldsV1: { 'f:spec'?: { 'f:replicas'?: object } };
  }[];
}

describe('replicas between the operator and an autoscaler', () => {
  let harness: Harness;
  let seen: number[];

  function replicas(): number {
    return (harness.live(Deployment, 'shop-1').spec as { replicas: number }).replicas;
  }

  /** Who owns spec.replicas. */
  function managers(): string[] {
    const { managedFields = [] } = harness.live(Deployment, 'shop-1').metadata as WithManagers;
    return managedFields
      .filter(({ fieldsV1 }) => fieldsV1['f:spec']?.['f:replicas'] !== undefined)
      .map(({ manager, operation }) => `${manager} ${operation}`);
  }

  async function start(further: object = {}): Promise<void> {
    await harness.add('m', { ...spec, ...further });
    await harness.reconcile('m');
    seen = [];
    harness.server.after = () => {
      const live = harness.server.peek(Deployment, ref('shop-1')) as
        | (KubeObject & { spec: { replicas: number } })
        | undefined;
      if (live !== undefined) seen.push(live.spec.replicas);
    };
  }

  beforeEach(() => {
    harness = new Harness(MicroServiceDeploy);
  });

  it('creates with the seed, and the HPA last', async () => {
    await harness.add('m', { ...spec, autoscaling: true });
    const { writes } = await harness.reconcile('m');
    expect(writes).toEqual([
      'POST ConfigMap shop-1 (kindred)',
      'POST Deployment shop-1 (kindred)',
      'POST Service shop-1 (kindred)',
      'POST HorizontalPodAutoscaler shop-1 (kindred)',
      STATUS,
    ]);
    expect(replicas()).toBe(3);
    expect((await harness.reconcile('m')).writes).toEqual([]);
  });

  it.each([
    [0, 1],
    [1, 1],
    [5, 5],
  ])('creates %i autoscaled replicas as %i, because an HPA never scales from 0', async (wanted, seeded) => {
    await start({ autoscaling: true, replicas: wanted });
    expect(replicas()).toBe(seeded);
  });

  it('never fights the scaler', async () => {
    await start({ autoscaling: true });
    harness.server.scale(Deployment, ref('shop-1'), 8);
    expect((await harness.reconcile('m')).writes.filter((write) => write !== STATUS)).toEqual([]);
    harness.respec('m', { image: 'j' });
    const { writes } = await harness.reconcile('m');
    expect(writes).toEqual(['PATCH Deployment shop-1 (kindred)', 'APPLY Deployment shop-1 (kindred)', STATUS]);
    expect(replicas()).toBe(8);
    expect(managers()).toEqual(['kube-controller-manager Update']);
  });

  it('holds the seed through a change before the scaler has written at all', async () => {
    await start({ autoscaling: true });
    harness.respec('m', { image: 'j' });
    const { writes } = await harness.reconcile('m');
    expect(writes.slice(0, 3)).toEqual([
      'PATCH Deployment shop-1 (kindred)',
      'APPLY Deployment shop-1 (kindred-seed)',
      'APPLY Deployment shop-1 (kindred)',
    ]);
    expect(new Set(seen)).toEqual(new Set([3]));
    expect(managers()).toEqual(['kindred-seed Apply']);
  });

  it('switches on: the second manager takes the live value, ours lets go, the HPA comes last', async () => {
    await start();
    harness.server.scale(Deployment, ref('shop-1'), 3);
    harness.respec('m', { autoscaling: true });
    const { writes } = await harness.reconcile('m');
    expect(writes).toEqual([
      'PATCH Deployment shop-1 (kindred)',
      'APPLY Deployment shop-1 (kindred-seed)',
      'APPLY Deployment shop-1 (kindred)',
      'POST HorizontalPodAutoscaler shop-1 (kindred)',
      STATUS,
    ]);
    const [seed, ours] = harness.server.requests.filter(
      ({ verb, type }) => verb === 'APPLY' && type.kind === 'Deployment',
    );
    const { uid } = harness.live(Deployment, 'shop-1').metadata;
    expect(seed?.body).toEqual({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      // The version is the precondition: an autoscaler may write between our read and this.
      metadata: { name: 'shop-1', namespace: 'default', uid, resourceVersion: expect.any(String) as string },
      spec: { replicas: 3 },
    });
    expect(ours?.body).not.toHaveProperty('spec.replicas');
    expect(ours?.body).toMatchObject({ metadata: { uid } });
    expect(new Set(seen)).toEqual(new Set([3]));
    expect((await harness.reconcile('m')).writes).toEqual([]);
  });

  it('switches on from 0 as it creates, even if somebody else has set the 0', async () => {
    await start();
    harness.annotate('m', { 'kindred.dev/paused': 'true' });
    harness.server.scale(Deployment, ref('shop-1'), 0);
    await harness.reconcile('m');
    harness.annotate('m', {});
    harness.respec('m', { autoscaling: true });
    await harness.reconcile('m');
    expect(replicas()).toBe(3);
    expect(managers()).toContain('kindred-seed Apply');
    expect((await harness.reconcile('m')).writes).toEqual([]);
  });

  it('switches on at the live number, not at the one in the spec', async () => {
    await start();
    harness.server.edit(
      Deployment,
      ref('shop-1'),
      (live) => ({ ...live, spec: { ...(live.spec as object), replicas: 6 } }),
      'kindred',
    );
    harness.respec('m', { autoscaling: true });
    await harness.reconcile('m');
    expect(new Set(seen)).toEqual(new Set([6]));
  });

  it('switches off: the HPA goes first, then ours takes the field back', async () => {
    await start({ autoscaling: true });
    harness.server.scale(Deployment, ref('shop-1'), 8);
    harness.respec('m', { autoscaling: false, replicas: 8 });
    const { writes } = await harness.reconcile('m');
    expect(writes).toEqual([
      'DELETE HorizontalPodAutoscaler shop-1 (Background)',
      'PATCH Deployment shop-1 (kindred)',
      'APPLY Deployment shop-1 (kindred)',
      STATUS,
    ]);
    expect(new Set(seen)).toEqual(new Set([8]));
    expect(managers()).toContain('kindred Apply');
    harness.respec('m', { replicas: 2 });
    await harness.reconcile('m');
    expect([replicas(), managers()]).toEqual([2, ['kindred Apply']]);
  });

  it('does not take the field back while the HPA cannot be deleted', async () => {
    await start({ autoscaling: true });
    harness.server.scale(Deployment, ref('shop-1'), 8);
    harness.server.before = ({ verb }) => {
      if (verb === 'DELETE') throw new Error('no');
    };
    harness.respec('m', { autoscaling: false });
    expect((await harness.reconcile('m')).next).toMatchObject({ action: 'retry', failed: { reason: 'ErrReconcile' } });
    expect(replicas()).toBe(8);
  });

  describe('while the HPA that is going is held by a finalizer', () => {
    const finalizers = ['x.y/z'];

    function hold(held: readonly string[]): void {
      harness.server.edit(HorizontalPodAutoscaler, ref('shop-1'), (hpa) => ({
        ...hpa,
        metadata: { ...hpa.metadata, finalizers: held },
      }));
    }

    beforeEach(async () => {
      await start({ autoscaling: true });
      hold(finalizers);
      harness.server.scale(Deployment, ref('shop-1'), 8);
      harness.respec('m', { autoscaling: false, config: 'a=1' });
    });

    it('leaves the field to it, applies the other children, and says what it waits for', async () => {
      const { writes, next } = await harness.reconcile('m');
      expect(writes).toEqual([
        'DELETE HorizontalPodAutoscaler shop-1 (Background)',
        'PATCH ConfigMap shop-1 (kindred)',
        'APPLY ConfigMap shop-1 (kindred)',
        STATUS,
      ]);
      expect([replicas(), managers()]).toEqual([8, ['kube-controller-manager Update']]);
      expect(next.failed).toBeUndefined();
      expect(harness.conditions('m')).toEqual(['Ready=False Waiting', 'Reconciling=True Waiting']);
      expect(harness.message('m')).toBe(
        'HorizontalPodAutoscaler "shop-1" is being deleted; the Deployment that it writes to is applied when it is gone',
      );
      expect((await harness.reconcile('m')).writes).toEqual([]);
    });

    it('leaves it to it before its events have told of that, too', async () => {
      harness.server.takeRequests();
      harness.server.eventDelivery = 'held';
      await harness.reconcile('m');
      await harness.reconcile('m');
      expect(replicas()).toBe(8);
    });

    it('takes the field back when it is gone', async () => {
      await harness.reconcile('m');
      hold([]);
      const { writes } = await harness.reconcile('m');
      expect(writes).toEqual(['PATCH Deployment shop-1 (kindred)', 'APPLY Deployment shop-1 (kindred)', STATUS]);
      expect(replicas()).toBe(3);
    });
  });

  it('goes idle at 0 and wakes at max(1, replicas)', async () => {
    await start({ autoscaling: true, replicas: 0 });
    harness.server.scale(Deployment, ref('shop-1'), 4);
    harness.respec('m', { idle: true });
    expect((await harness.reconcile('m')).writes).toEqual([
      'DELETE HorizontalPodAutoscaler shop-1 (Background)',
      'PATCH Deployment shop-1 (kindred)',
      'APPLY Deployment shop-1 (kindred)',
      STATUS,
    ]);
    expect(replicas()).toBe(0);
    seen = [];
    harness.respec('m', { idle: false });
    expect((await harness.reconcile('m')).writes).toEqual([
      'APPLY Deployment shop-1 (kindred-seed)',
      'APPLY Deployment shop-1 (kindred)',
      'POST HorizontalPodAutoscaler shop-1 (kindred)',
      STATUS,
    ]);
    expect(replicas()).toBe(1);
    expect(seen.filter((number) => number > 1)).toEqual([]);
  });

  describe('under a new name for the Deployment', () => {
    async function stranger(name: string): Promise<void> {
      const { apiVersion, kind } = Deployment;
      const template = { metadata: { labels: { x: 'y' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
      const body = { apiVersion, kind, metadata: ref(name), spec: { template } };
      await harness.server.create(Deployment, body, { fieldManager: 'kubectl' });
    }

    it('deletes the old HPA only when the new children stand', async () => {
      await start({ autoscaling: true });
      harness.server.scale(Deployment, ref('shop-1'), 8);
      harness.respec('m', { fullName: 'shop-2' });
      const { writes } = await harness.reconcile('m');
      const created = writes.indexOf('POST HorizontalPodAutoscaler shop-2 (kindred)');
      expect(created).toBeGreaterThan(writes.indexOf('POST Deployment shop-2 (kindred)'));
      expect(writes.indexOf('DELETE HorizontalPodAutoscaler shop-1 (Background)')).toBeGreaterThan(created);
      expect(harness.server.peek(Deployment, ref('shop-1'))).toBeUndefined();
      expect(new Set(seen)).toEqual(new Set([8]));
    });

    it('keeps the old HPA with its Deployment while the new name is taken', async () => {
      await start({ autoscaling: true });
      await stranger('taken');
      harness.respec('m', { fullName: 'taken' });
      const { writes } = await harness.reconcile('m');
      expect(writes.filter((write) => write.startsWith('DELETE'))).toEqual([]);
      expect(harness.conditions('m')[0]).toBe('Ready=False ErrResourceExists');
      expect(harness.live(HorizontalPodAutoscaler, 'shop-1')).toBeDefined();
      expect(harness.live(Deployment, 'shop-1')).toBeDefined();
    });
  });

  it('creates no HPA while the hand-over has failed', async () => {
    await start();
    harness.server.before = ({ options }) => {
      if (options?.['fieldManager'] === 'kindred-seed') throw new Error('no');
    };
    harness.respec('m', { autoscaling: true });
    await harness.reconcile('m');
    expect(harness.server.writes).not.toContain('POST HorizontalPodAutoscaler shop-1 (kindred)');
    expect(harness.server.peek(HorizontalPodAutoscaler, ref('shop-1'))).toBeUndefined();
    harness.server.before = () => undefined;
    await harness.reconcile('m');
    expect(harness.live(HorizontalPodAutoscaler, 'shop-1')).toBeDefined();
  });
});
