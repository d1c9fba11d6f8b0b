import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import type { ReconcileResult } from '../../../operator/reconcile/context';
import { DriftBackoff } from '../../../operator/apply/drift-backoff';
import { reconcileObject } from '../../../operator/reconcile/reconcile-object';
import { formatRequest } from '../../../testing/api-server/requests';
import { Harness, NAMESPACE, ref, rolledOut } from './harness';

const { Deployment } = owned;
const CORRECTION = 'APPLY Deployment web (kindred)';
const AT_ONCE = 5;

/** A HelloApp of two replicas whose Deployment somebody else wants otherwise, and a clock that only the test moves. */
class Fight {
  readonly harness = new Harness(HelloApp);
  private now = 0;
  private readonly context = { ...this.harness.context, driftBackoff: new DriftBackoff(() => this.now) };

  async begin(): Promise<void> {
    await this.harness.add('web', { image: 'nginx:1', size: 2 });
    await this.reconcile();
    this.rollOut(2);
    await this.reconcile();
  }

  /** The other manager sets its value. */
  async meddle(replicas = 9, manager = 'scaler'): Promise<void> {
    await this.harness.server.patch(
      Deployment,
      ref('web'),
      { spec: { replicas } },
      { type: 'merge', fieldManager: manager },
    );
  }

  /** The other manager puts its whole object in the place of ours: without our annotations, or with a hash of its own. */
  replace(annotations: Record<string, string> = {}): void {
    this.harness.server.edit(Deployment, ref('web'), (live) => ({
      ...live,
      metadata: { ...live.metadata, annotations },
      spec: { ...(live.spec as object), replicas: 9 },
    }));
  }

  /** How often the child is corrected while somebody does something to it again and again. */
  async correctionsOf(meddle: (time: number) => void, times = 20): Promise<number> {
    let corrections = 0;
    for (let time = 0; time < times; time++) {
      meddle(time);
      corrections += (await this.reconcile()).writes.filter((write) => write === CORRECTION).length;
    }
    return corrections;
  }

  async reconcile(): Promise<{ readonly next: ReconcileResult; readonly writes: readonly string[] }> {
    this.harness.server.takeRequests();
    const next = await reconcileObject(this.context, ref('web'));
    return { next, writes: this.harness.server.writes };
  }

  /** The other manager meddles and is corrected, as often as that is free. */
  async untilContested(): Promise<void> {
    for (let i = 0; i < AT_ONCE; i++) {
      await this.meddle();
      await this.reconcile();
    }
    await this.meddle();
  }

  pass(ms: number): void {
    this.now += ms;
  }

  rollOut(replicas: number): void {
    const { generation } = this.harness.live(Deployment, 'web').metadata;
    this.harness.server.setStatus(Deployment, ref('web'), rolledOut(replicas, generation));
  }

  get replicas(): unknown {
    return (this.harness.live(Deployment, 'web') as KubeObject & { spec: { replicas: number } }).spec.replicas;
  }
}

describe('a child that another manager changes back again and again', () => {
  let fight: Fight;

  beforeEach(async () => {
    fight = new Fight();
    await fight.begin();
  });

  it('is corrected at once five times, without a word', async () => {
    for (let i = 0; i < AT_ONCE; i++) {
      await fight.meddle();
      const { writes, next } = await fight.reconcile();
      expect(writes.filter((write) => write.startsWith('APPLY Deployment'))).toEqual([CORRECTION]);
      expect(next.failed).toBeUndefined();
      expect(fight.replicas).toBe(2);
    }
    expect(fight.harness.events).toEqual([]);
  });

  it('is then left alone, and asked for again when the delay is over', async () => {
    await fight.untilContested();
    const { next, writes } = await fight.reconcile();
    expect(writes).toEqual(['APPLY HelloApp web/status (kindred)']);
    expect(fight.replicas).toBe(9);
    expect(next).toMatchObject({ action: 'wait', requeueAfterMs: 1_000, failed: { reason: 'ErrContested' } });
  });

  it('is named in Ready and in an event, with the path and the other manager', async () => {
    await fight.untilContested();
    await fight.reconcile();
    const message =
      'Deployment "web": spec.replicas is changed by "scaler" as often as it is corrected; have one of the two leave it alone';
    expect(fight.harness.conditions('web')).toEqual(['Ready=False ErrContested', 'Reconciling=True ErrContested']);
    expect(fight.harness.message('web')).toBe(message);
    expect(fight.harness.events).toEqual([
      { regarding: 'web', type: 'Warning', action: 'Apply', reason: 'ErrContested', message },
    ]);
  });

  it('names the manager that wrote last, and no writer of its status', async () => {
    await fight.untilContested();
    await fight.meddle(7, 'other-operator');
    await fight.harness.server.patch(
      Deployment,
      ref('web'),
      { status: { readyReplicas: 1 } },
      { type: 'merge', subresource: 'status', fieldManager: 'kube-controller-manager' },
    );
    await fight.reconcile();
    expect(fight.harness.message('web')).toContain('spec.replicas is changed by "other-operator"');
  });

  it('costs no write, only the rest of the delay, however often it is changed meanwhile', async () => {
    await fight.untilContested();
    await fight.reconcile();
    fight.pass(400);
    await fight.meddle(8);
    const { next, writes } = await fight.reconcile();
    expect(writes).toEqual([]);
    expect(next.requeueAfterMs).toBe(600);
  });

  it('costs one dry run for each change, not for each reconcile', async () => {
    await fight.untilContested();
    const asked = async (): Promise<readonly string[]> => {
      await fight.reconcile();
      return fight.harness.server.takeRequests().map(formatRequest);
    };
    await asked();
    expect(await asked()).toEqual(['GET Deployment web']);
    await fight.meddle(8);
    expect(await asked()).toEqual(['APPLY Deployment web (dry run, kindred)', 'GET Deployment web']);
    expect(await asked()).toEqual(['GET Deployment web']);
  });

  it('is corrected once when the delay is over; the next delay is twice as long', async () => {
    await fight.untilContested();
    await fight.reconcile();
    fight.pass(1_000);
    expect((await fight.reconcile()).writes).toContain(CORRECTION);
    await fight.meddle();
    expect((await fight.reconcile()).next.requeueAfterMs).toBe(2_000);
  });

  it('is Ready again when the other has stopped', async () => {
    await fight.untilContested();
    await fight.reconcile();
    fight.pass(1_000);
    const { next } = await fight.reconcile();
    fight.rollOut(2);
    await fight.reconcile();
    expect(fight.replicas).toBe(2);
    expect(next.failed).toBeUndefined();
    expect(next.requeueAfterMs).toBeUndefined();
    expect(fight.harness.conditions('web')).toEqual(['Ready=True Ready']);
    expect((await fight.reconcile()).writes).toEqual([]);
  });

  it('is Ready at once when the other gives in before the delay is over', async () => {
    await fight.untilContested();
    await fight.reconcile();
    await fight.meddle(2);
    fight.rollOut(2);
    await fight.reconcile();
    expect(fight.harness.conditions('web')).toEqual(['Ready=True Ready']);
  });

  it("follows the user's own changes at once all the same", async () => {
    await fight.untilContested();
    await fight.reconcile();
    fight.harness.respec('web', { size: 3 });
    expect((await fight.reconcile()).writes).toContain(CORRECTION);
    expect(fight.replicas).toBe(3);
  });

  it('is corrected at once again when it was left in peace for more than a minute', async () => {
    await fight.untilContested();
    fight.pass(1_000);
    await fight.reconcile();
    fight.pass(2_000 + 60_001);
    await fight.meddle();
    expect((await fight.reconcile()).next.failed).toBeUndefined();
    expect(fight.replicas).toBe(2);
  });

  it.each([
    ['takes our annotations away', {}],
    ['puts its own hash in the place of ours', { 'kindred.dev/hash': 'other' }],
  ])('is noticed though the other %s as well', async (_what, annotations) => {
    // Nobody has applied it yet, so that the first time tells nothing.
    expect(await fight.correctionsOf(() => fight.replace(annotations))).toBe(1 + AT_ONCE);
    expect(fight.harness.conditions('web')).toEqual(['Ready=False ErrContested', 'Reconciling=True ErrContested']);
    fight.pass(1_000);
    expect(await fight.correctionsOf(() => fight.replace(annotations))).toBe(1);
    expect((await fight.reconcile()).next.requeueAfterMs).toBe(2_000);
  });

  it('is no contest when the user changes the spec to and fro, even while the other takes our annotations away', async () => {
    const respec = (time: number): void => fight.harness.respec('web', { size: 3 + (time % 2) });
    expect(await fight.correctionsOf(respec)).toBe(20);
    const both = (time: number): void => {
      respec(time);
      fight.replace();
    };
    expect(await fight.correctionsOf(both)).toBe(20);
    expect(fight.harness.events).toEqual([]);
  });

  it('does not hold back the children of other objects', async () => {
    await fight.untilContested();
    await fight.reconcile();
    await fight.harness.add('calm', { image: 'nginx:1', size: 1 });
    await fight.harness.reconcile('calm');
    await fight.harness.server.patch(
      Deployment,
      ref('calm'),
      { spec: { replicas: 4 } },
      { type: 'merge', fieldManager: 'scaler' },
    );
    expect((await fight.harness.reconcile('calm')).writes).toContain('APPLY Deployment calm (kindred)');
    expect(fight.harness.live(Deployment, 'calm').metadata.namespace).toBe(NAMESPACE);
  });
});
