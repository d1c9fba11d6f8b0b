import fc from 'fast-check';
import { Candidate } from './candidate';
import { apiError, FakeApi, type Fate } from '../support/fake-api';
import { ManualClock, settle } from '../support/manual-clock';

/** A candidate that can be stopped (SIGSTOP): its requests reach the server, but no answer and no timer reaches it. */
class Process {
  readonly candidate: Candidate;
  fate: Fate = 'pass';
  private stopped: { readonly until: Promise<void>; readonly end: () => void } | undefined;

  /** @param preferred - it asks for the Lease; others end when they are asked */
  constructor(identity: string, shared: FakeApi, time: ManualClock, preferred: boolean) {
    const view = Object.create(shared) as FakeApi;
    view.fate = () => this.fate;
    view.beforeAnswer = async () => this.stopped?.until;
    const clock = new ManualClock();
    clock.monotonicMs = time.monotonicMs;
    clock.wallMs = time.wallMs;
    clock.setTimer = (run, ms) => {
      let cancelled = false;
      const fire = (): void => {
        if (this.stopped === undefined) run();
        else {
          void this.stopped.until.then(() => {
            if (!cancelled) run();
          });
        }
      };
      const cancel = time.setTimer(fire, ms);
      return () => {
        cancelled = true;
        cancel();
      };
    };
    this.candidate = new Candidate(identity, view, clock, {
      ...(preferred && { preferred: 'dev' }),
      onAsked: () => void this.candidate.elector.stop(),
    });
    this.candidate.elector.start();
  }

  pause(): void {
    if (this.stopped !== undefined) return;
    let end!: () => void;
    const until = new Promise<void>((resolve) => (end = resolve));
    this.stopped = { until, end };
  }

  resume(): void {
    this.stopped?.end();
    this.stopped = undefined;
  }
}

it('never has two leaders, whatever fails and whoever is stopped', async () => {
  const fault = fc.record({
    who: fc.nat(2),
    fate: fc.constantFrom('pass' as const, 'lost' as const, 'hang' as const, 'stored-hang' as const, 'error' as const),
    stopped: fc.boolean(),
    forMs: fc.constantFrom(1000, 3000, 9000, 16_000, 31_000),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fault, { maxLength: 8 }),
      fc.constantFrom('', 'b_1', 'c_1'),
      async (faults, preferred) => {
        const shared = new FakeApi();
        const time = new ManualClock();
        const all = ['a_1', 'b_1', 'c_1'].map(
          (identity) => new Process(identity, shared, time, identity === preferred),
        );
        for (const { who, fate, stopped, forMs } of faults) {
          const one = all[who]!;
          one.fate = fate === 'error' ? apiError(500, 'Broken') : fate;
          if (stopped) one.pause();
          else one.resume();
          for (let passed = 0; passed < forMs; passed += 1000) {
            expect(all.filter((other) => other.candidate.elector.isLeaderNow()).length).toBeLessThanOrEqual(1);
            await time.advance(1000);
          }
        }
        for (const one of all) one.fate = 'pass';
        for (const one of all) one.resume();
        await settle();
        expect(all.filter((other) => other.candidate.elector.isLeaderNow()).length).toBeLessThanOrEqual(1);
        await Promise.all(all.map(async (one) => one.candidate.elector.stop()));
      },
    ),
    { numRuns: 25 },
  );
}, 30_000);
