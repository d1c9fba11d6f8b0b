import { HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import type { AnyKind } from '../../../constructs/kind/kind';
import { owned } from '../../../constructs/kube/resource-type';
import { DriftBackoff } from '../../../operator/apply/drift-backoff';
import type { ReconcileResult } from '../../../operator/reconcile/context';
import { reconcileObject } from '../../../operator/reconcile/reconcile-object';
import { RunningController } from '../controller/running-controller';
import { holdTimeouts } from '../support/held-timeouts';
import { Harness, ref, rolledOut } from './harness';

const { Deployment } = owned;
const WRITE = 'APPLY HelloApp web/status (kindred)';
const AT_ONCE = 5;
const MESSAGE =
  'the status is changed by somebody else as often as it is written; it is written again 1 s after the last time; ' +
  'have one of the two leave it alone';

/** An object `web` whose status somebody else writes too, and a clock that only the test moves. */
class Fight {
  readonly harness: Harness;
  private now = 0;
  private readonly context;

  constructor(readonly kind: AnyKind = HelloApp) {
    this.harness = new Harness(kind);
    this.context = { ...this.harness.context, driftBackoff: new DriftBackoff(() => this.now) };
  }

  async begin(spec: object = { image: 'nginx:1', size: 2 }): Promise<void> {
    await this.harness.add('web', spec);
    await this.reconcile();
  }

  /** Somebody writes the whole status as it was, but for one field. */
  meddle(change: object = { observedGeneration: 99 }): void {
    const { status } = this.harness.object('web');
    this.harness.server.setStatus(this.kind.type, ref('web'), { ...status, ...change });
  }

  async reconcile(): Promise<{ readonly next: ReconcileResult; readonly writes: readonly string[] }> {
    this.harness.server.takeRequests();
    const next = await reconcileObject(this.context, ref('web'));
    return { next, writes: this.harness.server.writes };
  }

  /** How often the status is written while something happens again and again. */
  async writesOf(act: (time: number) => void, times = 20): Promise<number> {
    let writes = 0;
    for (let time = 0; time < times; time++) {
      act(time);
      writes += (await this.reconcile()).writes.filter((write) => write === WRITE).length;
    }
    return writes;
  }

  pass(ms: number): void {
    this.now += ms;
  }
}

describe('a status that somebody else changes back again and again', () => {
  let fight: Fight;

  beforeEach(async () => {
    fight = new Fight();
    await fight.begin();
  });

  it.each([
    ['its generation', { observedGeneration: 99 }],
    ['a field of the kind', { readyReplicas: 7 }],
    ['its conditions', { conditions: [] }],
  ])('is corrected at once five times: %s', async (_what, change) => {
    expect(await fight.writesOf(() => fight.meddle(change))).toBe(AT_ONCE);
  });

  it('is then left as it is; the log and an event say so, since it cannot itself', async () => {
    await fight.writesOf(() => fight.meddle(), AT_ONCE);
    expect(fight.harness.events).toEqual([]);
    fight.meddle();
    const { next, writes } = await fight.reconcile();
    expect(writes).toEqual([]);
    const failed = { reason: 'ErrContested', message: MESSAGE };
    expect(next).toEqual({ action: 'wait', requeueAfterMs: 1_000, awaited: [], failed });
    expect(fight.harness.events).toEqual([{ regarding: 'web', type: 'Warning', action: 'Report', ...failed }]);
  });

  it('costs no request while the delay lasts; then it is written once, and the next delay is twice as long', async () => {
    await fight.writesOf(() => fight.meddle());
    fight.pass(400);
    expect((await fight.reconcile()).next.requeueAfterMs).toBe(600);
    expect(fight.harness.server.requests).toEqual([]);
    fight.pass(600);
    expect(await fight.writesOf(() => fight.meddle())).toBe(1);
    expect((await fight.reconcile()).next.requeueAfterMs).toBe(2_000);
  });

  it('is written at once when it says something new', async () => {
    await fight.writesOf(() => fight.meddle());
    fight.harness.server.setStatus(Deployment, ref('web'), rolledOut(2));
    expect((await fight.reconcile()).writes).toEqual([WRITE]);
    expect(fight.harness.conditions('web')).toEqual(['Ready=True Ready']);
    fight.meddle();
    expect((await fight.reconcile()).next).toMatchObject({ requeueAfterMs: 1_000, failed: { reason: 'ErrContested' } });
  });

  it('is forgotten after a minute of quiet', async () => {
    await fight.writesOf(() => fight.meddle());
    fight.pass(1_000 + 60_001);
    expect(await fight.writesOf(() => fight.meddle())).toBe(AT_ONCE);
  });

  it('keeps what else is wrong as the reason', async () => {
    fight.harness.server.before = ({ verb }) => {
      if (verb === 'APPLY') throw new Error('no');
    };
    fight.harness.respec('web', { image: 'nginx:2' });
    await expect(fight.reconcile()).rejects.toThrow('no');
    fight.harness.server.before = ({ verb, type }) => {
      if (verb === 'APPLY' && type.kind === 'Deployment') throw new Error('no');
    };
    await fight.reconcile();
    await fight.writesOf(() => fight.meddle());
    const { next } = await fight.reconcile();
    expect(next).toMatchObject({ action: 'retry', failed: { reason: 'ErrReconcile' } });
    expect(next.failed?.message).toBe(`Deployment "web": no; ${MESSAGE}`);
  });
});

describe('what somebody else has put into a status under our names', () => {
  const TAKE = 'PATCH HelloApp web/status (kindred)';
  const time = '2025-01-01T00:00:00Z';
  const condition = (type: string): object => ({
    ...{ type, status: 'True', reason: 'Backup', message: 'as it was', lastTransitionTime: time },
  });
  let fight: Fight;

  beforeEach(async () => {
    fight = new Fight();
    await fight.begin();
    fight.harness.server.setStatus(Deployment, ref('web'), rolledOut(2));
    await fight.reconcile();
    expect(fight.harness.conditions('web')).toEqual(['Ready=True Ready']);
  });

  const restore = (...types: readonly string[]): void => {
    const { conditions } = fight.harness.object('web').status;
    fight.meddle({ conditions: [...conditions, ...types.map(condition)] });
  };

  it('is taken away, and what is theirs stays', async () => {
    restore('Stalled', 'Restored');
    expect((await fight.reconcile()).writes).toEqual([WRITE, TAKE]);
    expect(fight.harness.conditions('web')).toEqual(['Ready=True Ready', 'Restored=True Backup']);
    expect((await fight.reconcile()).writes).toEqual([]);
  });

  it('is taken away ever more slowly where it comes back again and again', async () => {
    expect(await fight.writesOf(() => restore('Reconciling'))).toBe(AT_ONCE);
    expect((await fight.reconcile()).next).toMatchObject({ requeueAfterMs: 1_000, failed: { reason: 'ErrContested' } });
  });

  it('is left to whoever writes at the same time; the next reconcile takes it away', async () => {
    restore('Stalled');
    fight.harness.server.before = ({ verb }) => {
      if (verb === 'PATCH') restore('Restored');
    };
    await expect(fight.reconcile()).rejects.toMatchObject({ reason: 'Conflict' });
    fight.harness.server.before = () => undefined;
    await fight.reconcile();
    expect(fight.harness.conditions('web')).toEqual(['Ready=True Ready', 'Restored=True Backup']);
  });
});

describe('a status that changes often by itself', () => {
  it('is written each time: pods that come and go, one by one', async () => {
    const fight = new Fight();
    await fight.begin({ image: 'nginx:1', size: 9 });
    const roll = (time: number): void =>
      fight.harness.server.setStatus(Deployment, ref('web'), { ...rolledOut(9), readyReplicas: time % 9 });
    expect(await fight.writesOf(roll)).toBe(20);
    expect(fight.harness.events).toEqual([]);
  });

  it('is written each time: edits of the spec, to and fro', async () => {
    const fight = new Fight();
    await fight.begin();
    expect(await fight.writesOf((time) => fight.harness.respec('web', { size: time % 2 }))).toBe(20);
    expect(fight.harness.events).toEqual([]);
  });

  it('is no contest where the server keeps something else than it is sent', async () => {
    const fight = new Fight();
    fight.harness.server.admit = (object) => {
      const { status } = object as { status?: { readyReplicas?: number } };
      if (object.kind === 'HelloApp') delete status?.readyReplicas;
    };
    await fight.begin();
    expect(await fight.writesOf(() => undefined)).toBe(20);
    expect(fight.harness.events).toEqual([]);
  });
});

afterEach(() => void jest.useRealTimers());

it('a fight over the status is no hot loop', async () => {
  // The controller measures its delays by `performance.now()`: a second of a busy machine's time would end the first of them.
  holdTimeouts();
  const running = new RunningController(MicroServiceDeploy);
  running.start();
  await running.add('m', { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'i' });
  await running.settle();
  const meddle = (): void => {
    const { status } = running.object('m');
    running.server.setStatus(MicroServiceDeploy.type, ref('m'), { ...status, observedGeneration: 99 });
  };
  let writes = 0;
  running.server.after = ({ verb, type }) => {
    if (verb === 'APPLY' && type.kind === 'MicroServiceDeploy' && ++writes < 100) setImmediate(meddle);
  };
  meddle();
  await running.settle();
  expect(writes).toBe(AT_ONCE);
  expect(running.complaints()).toContain('not as the spec says');
  expect(running.results).not.toContain('terminal');
  await running.stop();
});
