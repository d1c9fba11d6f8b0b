import { owned } from '../../../constructs/kube/resource-type';
import { formatRequest } from '../../../testing/api-server/requests';
import { AT_ONCE, CORRECTION, Fight } from './fight';
import { NAMESPACE, ref } from './harness';

const { Deployment } = owned;

describe('a child that another manager changes back again and again', () => {
  let fight: Fight;

  beforeEach(async () => {
    fight = new Fight();
    await fight.begin();
  });

  it('is corrected at once five times, the first two without a word', async () => {
    for (let i = 0; i < AT_ONCE; i++) {
      await fight.meddle();
      const { writes, next } = await fight.reconcile();
      expect(writes.filter((write) => write.startsWith('APPLY Deployment'))).toEqual([CORRECTION]);
      expect(next.failed?.reason).toBe(i < 2 ? undefined : 'ErrContested');
      expect(fight.replicas).toBe(2);
    }
    expect(fight.harness.events).toHaveLength(AT_ONCE - 2);
  });

  it('is said to be contested with the third correction of one field within a minute, however slow the other is', async () => {
    for (let i = 0; i < 3; i++) {
      expect(fight.harness.conditions('web')).toEqual(['Ready=True Ready']);
      fight.pass(25_000);
      await fight.meddle(9, 'kube-controller-manager');
      await fight.reconcile();
      fight.rollOut(2);
      await fight.reconcile();
    }
    expect(fight.harness.conditions('web')[0]).toBe('Ready=False ErrContested');
    expect(fight.harness.message('web')).toContain('spec.replicas is changed by "kube-controller-manager"');
    expect((await fight.reconcile()).next).toMatchObject({
      requeueAfterMs: 60_000,
      failed: { reason: 'ErrContested' },
    });
    expect(fight.harness.events).toHaveLength(1);
  });

  it('is not contested when its corrections are of several fields, or further apart', async () => {
    const image = { template: { spec: { containers: [{ name: 'helloapp', image: 'other' }] } } };
    for (const [edit, ms] of [
      [{ replicas: 9 }, 1],
      [image, 1],
      [{ replicas: 9 }, 1],
      [image, 60_001],
      [image, 1],
    ] as const) {
      await fight.change(edit);
      expect((await fight.reconcile()).writes).toContain(CORRECTION);
      fight.rollOut(2);
      await fight.reconcile();
      expect(fight.harness.conditions('web')).toEqual(['Ready=True Ready']);
      fight.pass(ms);
    }
  });

  it('is then left alone, and asked for again when the delay is over', async () => {
    await fight.untilContested();
    const { next, writes } = await fight.reconcile();
    expect(writes).toEqual([]);
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
    expect(new Set(fight.harness.events.map((event) => JSON.stringify(event)))).toEqual(
      new Set([
        JSON.stringify({ regarding: 'web', type: 'Warning', action: 'Apply', reason: 'ErrContested', message }),
      ]),
    );
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

  it('is Ready again when the other has stopped for a minute', async () => {
    await fight.untilContested();
    await fight.reconcile();
    fight.pass(1_000);
    const { next } = await fight.reconcile();
    fight.rollOut(2);
    expect(fight.replicas).toBe(2);
    expect(next).toMatchObject({ requeueAfterMs: 60_000, failed: { reason: 'ErrContested' } });
    fight.pass(59_999);
    await fight.reconcile();
    expect(fight.harness.conditions('web')[0]).toBe('Ready=False ErrContested');
    fight.pass(1);
    expect((await fight.reconcile()).next.requeueAfterMs).toBeUndefined();
    expect(fight.harness.conditions('web')).toEqual(['Ready=True Ready']);
    expect((await fight.reconcile()).writes).toEqual([]);
  });

  it('is not contested any more once something else is rendered, until the other changes that too', async () => {
    await fight.untilContested();
    fight.pass(1_000);
    await fight.reconcile();
    fight.harness.respec('web', { size: 3 });
    await fight.reconcile();
    fight.rollOut(3);
    await fight.reconcile();
    expect(fight.harness.conditions('web')).toEqual(['Ready=True Ready']);
    fight.pass(5_000);
    await fight.meddle();
    await fight.reconcile();
    expect(fight.harness.conditions('web')[0]).toBe('Ready=False ErrContested');
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
