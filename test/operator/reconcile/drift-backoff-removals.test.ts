import { DemoMicroService, Foo } from '../../../constructs/kinds';
import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { DriftBackoff } from '../../../operator/apply/drift-backoff';
import type { ReconcileResult } from '../../../operator/reconcile/context';
import { reconcileObject } from '../../../operator/reconcile/reconcile-object';
import { Harness, ref } from './harness';

const { Deployment } = owned;
const AT_ONCE = 5;

/** An object `web`, and a clock that only the test moves. */
class Fight {
  readonly harness: Harness;
  private now = 0;
  private readonly context;

  constructor(readonly kind: AnyKind) {
    this.harness = new Harness(kind);
    this.context = { ...this.harness.context, driftBackoff: new DriftBackoff(() => this.now) };
  }

  async reconcile(): Promise<{ readonly next: ReconcileResult; readonly writes: readonly string[] }> {
    this.harness.server.takeRequests();
    const next = await reconcileObject(this.context, ref('web'));
    return { next, writes: this.harness.server.writes };
  }

  /** How often something is written while somebody does something again and again. */
  async writesOf(wanted: RegExp, act: (time: number) => unknown, times = 20): Promise<number> {
    let writes = 0;
    for (let time = 0; time < times; time++) {
      await act(time);
      writes += (await this.reconcile()).writes.filter((write) => wanted.test(write)).length;
    }
    return writes;
  }

  pass(ms: number): void {
    this.now += ms;
  }
}

describe('a finalizer that somebody else takes off again and again', () => {
  const PUT_ON = /^PATCH DemoMicroService web/;
  let fight: Fight;

  function takeOff(): void {
    const { type } = fight.kind;
    fight.harness.server.edit(type, ref('web'), (object) => ({
      ...object,
      metadata: { ...object.metadata, finalizers: [] },
    }));
  }

  beforeEach(async () => {
    fight = new Fight(DemoMicroService);
    await fight.harness.add('web', { image: 'i' });
    await fight.reconcile();
  });

  it('is put on at once five times, then ever more slowly', async () => {
    expect(await fight.writesOf(PUT_ON, takeOff)).toBe(AT_ONCE);
    fight.pass(1_000);
    expect(await fight.writesOf(PUT_ON, takeOff)).toBe(1);
    expect((await fight.reconcile()).next.requeueAfterMs).toBe(2_000);
  });

  it('is named in Ready and in an event, and nothing is made without it', async () => {
    await fight.writesOf(PUT_ON, takeOff);
    fight.harness.respec('web', { image: 'j' });
    const { next, writes } = await fight.reconcile();
    expect(writes).toEqual(['APPLY DemoMicroService web/status (kindred)']);
    expect(next).toMatchObject({ action: 'wait', requeueAfterMs: 1_000, failed: { reason: 'ErrContested' } });
    expect(fight.harness.conditions('web')).toEqual(['Ready=False ErrContested', 'Reconciling=True ErrContested']);
    expect(fight.harness.message('web')).toContain('is put on again 1 s after the last time');
    expect(fight.harness.events.at(-1)).toMatchObject({ type: 'Warning', action: 'Apply', reason: 'ErrContested' });
  });

  it('is no contest when it is put on an object for the first time, however often that is', async () => {
    const again = async (): Promise<void> => {
      takeOff();
      fight.harness.server.remove(DemoMicroService.type, ref('web'));
      fight.harness.server.collectGarbage();
      await fight.harness.add('web', { image: 'i' });
    };
    expect(await fight.writesOf(PUT_ON, again)).toBe(20);
  });
});

describe('a child that is not wanted, and that somebody else makes again and again', () => {
  const DELETION = /^DELETE Deployment old/;
  let fight: Fight;
  let old: KubeObject;

  async function remake(): Promise<void> {
    if (fight.harness.server.peek(Deployment, ref('old')) !== undefined) return;
    const { name, namespace, labels, annotations, ownerReferences } = old.metadata;
    const metadata = { name, namespace, labels, annotations, ownerReferences };
    await fight.harness.server.create(Deployment, { ...old, metadata }, { fieldManager: 'other' });
  }

  beforeEach(async () => {
    fight = new Fight(Foo);
    await fight.harness.add('web', { deploymentName: 'old', replicas: 1 });
    await fight.reconcile();
    old = fight.harness.live(Deployment, 'old');
    fight.harness.respec('web', { deploymentName: 'new' });
    await fight.reconcile();
  });

  it('is deleted at once five times, then ever more slowly', async () => {
    expect(await fight.writesOf(DELETION, remake)).toBe(AT_ONCE);
    expect((await fight.reconcile()).next).toMatchObject({ requeueAfterMs: 1_000, failed: { reason: 'ErrContested' } });
    fight.pass(1_000);
    expect(await fight.writesOf(DELETION, remake)).toBe(1);
  });

  it('is named in Ready and in an event', async () => {
    await fight.writesOf(DELETION, remake);
    const message =
      'Deployment "old": something else creates it as often as it is deleted; it is deleted again 1 s after the last time; ' +
      'have one of the two leave it alone';
    expect(fight.harness.conditions('web')).toEqual(['Ready=False ErrContested', 'Reconciling=True ErrContested']);
    expect(fight.harness.message('web')).toBe(message);
    expect(fight.harness.events.at(-1)).toMatchObject({ action: 'Delete', reason: 'ErrContested', message });
  });

  it('is no contest when the spec wants it and does not want it in turn', async () => {
    const rename = (time: number): void =>
      fight.harness.respec('web', { deploymentName: time % 2 === 0 ? 'old' : 'new' });
    expect(await fight.writesOf(DELETION, rename)).toBe(10);
    expect(fight.harness.events.filter(({ type }) => type === 'Warning')).toEqual([]);
  });
});

it('a child whose end is not heard of yet is not deleted twice', async () => {
  const fight = new Fight(Foo);
  await fight.harness.add('web', { deploymentName: 'old', replicas: 1 });
  await fight.reconcile();
  fight.harness.respec('web', { deploymentName: 'new' });
  fight.harness.server.eventDelivery = 'held';
  const deletion = 'DELETE Deployment old (Background)';
  expect((await fight.reconcile()).writes).toContain(deletion);
  expect((await fight.reconcile()).writes).not.toContain(deletion);
  expect(fight.harness.written.filter(({ action }) => action === 'deleted')).toHaveLength(1);
});
