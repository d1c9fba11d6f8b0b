import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import { Foo, HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import type { AnyKind } from '../../../constructs/kind/kind';
import type { ReconcileResult } from '../../../operator/reconcile/context';
import { DriftBackoff } from '../../../operator/apply/drift-backoff';
import { reconcileObject } from '../../../operator/reconcile/reconcile-object';
import { apiError } from '../../../testing/api-server/requests';
import { Harness, ref, rolledOut } from './harness';

const { ConfigMap, Deployment, HorizontalPodAutoscaler } = owned;
const CREATION = 'POST Deployment web (kindred)';
const AT_ONCE = 5;

function contestedAfter(seconds: number): string {
  return (
    'Deployment "web": something else deletes it as often as it is created; ' +
    `it is created again ${String(seconds)} s after the last time; have one of the two leave it alone`
  );
}

/** An object `web` whose children somebody else deletes, and a clock that only the test moves. */
class Fight {
  readonly harness: Harness;
  private now = 0;
  private readonly context;

  constructor(kind: AnyKind = HelloApp) {
    this.harness = new Harness(kind);
    this.context = { ...this.harness.context, driftBackoff: new DriftBackoff(() => this.now) };
  }

  async begin(spec: object = { image: 'nginx:1', size: 2 }): Promise<void> {
    await this.harness.add('web', spec);
    await this.reconcile();
  }

  /** Somebody deletes the child if it stands. */
  remove(type: ResourceType = Deployment, name = 'web'): void {
    if (this.harness.server.peek(type, ref(name)) !== undefined) this.harness.server.remove(type, ref(name));
  }

  async reconcile(name = 'web'): Promise<{ readonly next: ReconcileResult; readonly writes: readonly string[] }> {
    this.harness.server.takeRequests();
    const next = await reconcileObject(this.context, ref(name));
    return { next, writes: this.harness.server.writes };
  }

  /** How often something is created while somebody does something again and again. */
  async creationsOf(act: (time: number) => unknown, creation = CREATION, times = 20): Promise<number> {
    let creations = 0;
    for (let time = 0; time < times; time++) {
      await act(time);
      creations += (await this.reconcile()).writes.filter((write) => write === creation).length;
    }
    return creations;
  }

  /** The child is deleted and created again, as often as that is free, and deleted once more. */
  async untilContested(): Promise<void> {
    expect(await this.creationsOf(() => this.remove(), CREATION, AT_ONCE)).toBe(AT_ONCE);
    this.remove();
  }

  pass(ms: number): void {
    this.now += ms;
  }

  rollOut(): void {
    this.harness.server.setStatus(Deployment, ref('web'), rolledOut(2));
  }

  get stands(): boolean {
    return this.harness.server.peek(Deployment, ref('web')) !== undefined;
  }
}

describe('a child that somebody else deletes again and again', () => {
  let fight: Fight;

  beforeEach(async () => {
    fight = new Fight();
    await fight.begin();
  });

  it('is created again at once five times, without a word', async () => {
    for (let i = 0; i < AT_ONCE; i++) {
      fight.remove();
      const { writes, next } = await fight.reconcile();
      expect(writes).toContain(CREATION);
      expect(next.failed).toBeUndefined();
    }
    expect(fight.harness.events).toEqual([]);
  });

  it('is then left alone, and asked for again when the delay is over', async () => {
    await fight.untilContested();
    const { next, writes } = await fight.reconcile();
    expect(writes).toEqual(['APPLY HelloApp web/status (kindred)']);
    expect(next).toMatchObject({ action: 'wait', requeueAfterMs: 1_000, failed: { reason: 'ErrContested' } });
  });

  it('is named in Ready and in an event', async () => {
    await fight.untilContested();
    await fight.reconcile();
    const message = contestedAfter(1);
    expect(fight.harness.conditions('web')).toEqual(['Ready=False ErrContested', 'Reconciling=True ErrContested']);
    expect(fight.harness.message('web')).toBe(message);
    expect(fight.harness.events).toEqual([
      { regarding: 'web', type: 'Warning', action: 'Apply', reason: 'ErrContested', message },
    ]);
  });

  it('costs no request, only the rest of the delay, however often it is looked for meanwhile', async () => {
    await fight.untilContested();
    await fight.reconcile();
    fight.pass(400);
    const { next } = await fight.reconcile();
    expect(fight.harness.server.requests).toEqual([]);
    expect(next.requeueAfterMs).toBe(600);
  });

  it('is created once when the delay is over; the next delay is twice as long', async () => {
    await fight.untilContested();
    await fight.reconcile();
    fight.pass(1_000);
    expect(await fight.creationsOf(() => fight.remove())).toBe(1);
    expect((await fight.reconcile()).next.requeueAfterMs).toBe(2_000);
    expect(fight.harness.message('web')).toBe(contestedAfter(2));
  });

  it('is no storm: a quarter of an hour costs 15 creations more, though it is deleted the moment it stands', async () => {
    let creations = 0;
    for (let ms = 0; ms < 900_000; ms += 100) {
      fight.remove();
      creations += (await fight.reconcile()).writes.filter((write) => write === CREATION).length;
      fight.pass(100);
    }
    // Five at once, then after 1 s, 2 s, ... 256 s, 300 s.
    expect(creations).toBe(AT_ONCE + 10);
  });

  it('is Ready again when the other has stopped', async () => {
    await fight.untilContested();
    await fight.reconcile();
    fight.pass(1_000);
    const { next } = await fight.reconcile();
    fight.rollOut();
    await fight.reconcile();
    expect(next).toEqual({ action: 'wait', awaited: [] });
    expect(fight.harness.conditions('web')).toEqual(['Ready=True Ready']);
    expect((await fight.reconcile()).writes).toEqual([]);
  });

  it("follows the user's own changes at once all the same", async () => {
    await fight.untilContested();
    await fight.reconcile();
    fight.harness.respec('web', { size: 3 });
    const { writes, next } = await fight.reconcile();
    expect(writes).toContain(CREATION);
    expect(next.failed).toBeUndefined();
  });

  it('is no contest when the user changes the spec each time, to and fro', async () => {
    const both = (time: number): void => {
      fight.remove();
      fight.harness.respec('web', { size: 3 + (time % 2) });
    };
    expect(await fight.creationsOf(both)).toBe(20);
    expect(fight.harness.events).toEqual([]);
  });

  it('is created at once again when it was left in peace for more than a minute', async () => {
    await fight.untilContested();
    fight.pass(1_000);
    await fight.reconcile();
    fight.pass(2_000 + 60_001);
    expect(await fight.creationsOf(() => fight.remove())).toBe(AT_ONCE);
  });

  it('counts no creation that the server refused', async () => {
    fight.remove();
    fight.harness.server.before = ({ verb, type }) => {
      if (verb === 'POST' && type.kind === 'Deployment') throw apiError(403, 'Forbidden', 'exceeded quota');
    };
    expect(await fight.creationsOf(() => expect(fight.stands).toBe(false))).toBe(20);
    expect(fight.harness.conditions('web')).toEqual(['Ready=False ErrForbidden', 'Reconciling=True ErrForbidden']);
    fight.harness.server.before = () => undefined;
    expect(await fight.creationsOf(() => fight.remove())).toBe(AT_ONCE);
  });

  it('counts no creation that came too late', async () => {
    fight.remove();
    fight.harness.server.before = ({ verb, type }) => {
      if (verb === 'POST' && type.kind === 'Deployment') throw apiError(409, 'AlreadyExists', 'it exists');
    };
    expect(await fight.creationsOf(() => expect(fight.stands).toBe(false))).toBe(20);
    fight.harness.server.before = () => undefined;
    expect(await fight.creationsOf(() => fight.remove())).toBe(AT_ONCE);
  });

  it('is no contest when its owner goes and comes again', async () => {
    const again = async (): Promise<void> => {
      fight.harness.server.remove(HelloApp.type, ref('web'));
      fight.harness.server.collectGarbage();
      await fight.harness.add('web', { image: 'nginx:1', size: 2 });
    };
    expect(await fight.creationsOf(again)).toBe(20);
    expect(fight.harness.events).toEqual([]);
  });

  it('does not hold back the children of other objects, nor do these make it be forgotten', async () => {
    await fight.untilContested();
    await fight.harness.add('calm', { image: 'nginx:1', size: 1 });
    await fight.reconcile('calm');
    fight.remove(Deployment, 'calm');
    expect((await fight.reconcile('calm')).writes).toContain('POST Deployment calm (kindred)');
    expect((await fight.reconcile()).next.requeueAfterMs).toBe(1_000);
  });
});

describe('children that come and go by the spec', () => {
  const service = { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'i', config: 'a=1' };

  it('are no contest when an autoscaler is switched on and off', async () => {
    const fight = new Fight(MicroServiceDeploy);
    await fight.begin({ ...service, autoscaling: true });
    const flip = (time: number): void => fight.harness.respec('web', { autoscaling: time % 2 === 1 });
    expect(await fight.creationsOf(flip, 'POST HorizontalPodAutoscaler shop-1 (kindred)')).toBe(10);
    expect(fight.harness.server.peek(HorizontalPodAutoscaler, ref('shop-1'))).toBeDefined();
    expect(fight.harness.events).toEqual([]);
  });

  it('are no contest when a child is renamed to and fro', async () => {
    const fight = new Fight(Foo);
    await fight.begin({ deploymentName: 'web', replicas: 1 });
    const rename = (time: number): void =>
      fight.harness.respec('web', { deploymentName: time % 2 === 0 ? 'other' : 'web' });
    expect(await fight.creationsOf(rename)).toBe(10);
    expect(fight.harness.events.filter(({ type }) => type === 'Warning')).toEqual([]);
  });

  it('are held back by the contest of another child of the object only where they make a field be written', async () => {
    const fight = new Fight(MicroServiceDeploy);
    await fight.begin({ ...service, autoscaling: true });
    const remove = (): void => fight.remove(ConfigMap, 'shop-1');
    expect(await fight.creationsOf(remove, 'POST ConfigMap shop-1 (kindred)')).toBe(AT_ONCE);
    fight.remove(Deployment, 'shop-1');
    fight.remove(HorizontalPodAutoscaler, 'shop-1');
    const { writes } = await fight.reconcile();
    expect(writes).toContain('POST Deployment shop-1 (kindred)');
    expect(writes).not.toContain('POST HorizontalPodAutoscaler shop-1 (kindred)');
  });
});
