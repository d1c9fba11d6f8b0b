import fc from 'fast-check';
import { WorkQueue, type Priority } from '../../../operator/workqueue/work-queue';
import { ManualClock } from '../support/manual-clock';

const keys = ['a', 'b', 'c', 'd', 'e'];
const key = fc.constantFrom(...keys);
const priority = fc.constantFrom<Priority>('user', 'resync');

type Step =
  | { do: 'add'; key: string; priority: Priority }
  | { do: 'addAfter'; key: string; ms: number; priority: Priority }
  | { do: 'take' }
  | { do: 'done'; which: number }
  | { do: 'wait'; ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('add' as const), key, priority }),
  fc.record({ do: fc.constant('addAfter' as const), key, ms: fc.integer({ min: 0, max: 30 }), priority }),
  fc.record({ do: fc.constant('take' as const) }),
  fc.record({ do: fc.constant('done' as const), which: fc.nat(10) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 20 }) }),
);

interface Waiting {
  priority: Priority;
  readyAt: number;
  /** Since when it stands in its list; undefined while delayed or parked. */
  joined: number | undefined;
}

/** The queue, said as plainly as possible: one waiting entry a key, searched linearly. */
class Model {
  now = 0;
  private tick = 0;
  readonly waiting = new Map<string, Waiting>();
  readonly running = new Set<string>();

  add(added: string, ms: number, wanted: Priority): void {
    const readyAt = this.now + ms;
    const old = this.waiting.get(added);
    if (old === undefined) {
      this.waiting.set(added, { priority: wanted, readyAt, joined: undefined });
    } else {
      if (wanted === 'user' && old.priority === 'resync') {
        old.priority = 'user';
        old.joined = undefined;
      }
      if (old.readyAt > this.now) old.readyAt = Math.min(old.readyAt, readyAt);
    }
    this.join();
  }

  wait(ms: number): void {
    for (let i = 0; i < ms; i++) {
      this.now++;
      this.join();
    }
  }

  done(ended: string): void {
    this.running.delete(ended);
    this.join();
  }

  /** Which keys may come next: those that joined the better list first. Several, if they joined at the same time. */
  candidates(): string[] {
    for (const wanted of ['user', 'resync']) {
      const listed = [...this.waiting].filter(([, entry]) => entry.priority === wanted && entry.joined !== undefined);
      const first = Math.min(...listed.map(([, entry]) => entry.joined!));
      if (listed.length > 0) return listed.filter(([, entry]) => entry.joined === first).map(([name]) => name);
    }
    return [];
  }

  take(taken: string): void {
    this.waiting.delete(taken);
    this.running.add(taken);
  }

  private join(): void {
    this.tick++;
    for (const [name, entry] of this.waiting) {
      if (entry.readyAt <= this.now && !this.running.has(name)) entry.joined ??= this.tick;
    }
  }
}

function play(steps: readonly Step[]): void {
  const clock = new ManualClock();
  const queue = new WorkQueue<string>({ clock });
  const model = new Model();
  for (const one of steps) {
    if (one.do === 'add') {
      queue.add(one.key, one.priority);
      model.add(one.key, 0, one.priority);
    } else if (one.do === 'addAfter') {
      queue.addAfter(one.key, one.ms, one.priority);
      model.add(one.key, one.ms, one.priority);
    } else if (one.do === 'wait') {
      clock.advanceSync(one.ms);
      model.wait(one.ms);
    } else if (one.do === 'done') {
      const running = [...model.running];
      const ended = running[one.which % Math.max(1, running.length)];
      if (ended === undefined) continue;
      queue.done(ended);
      model.done(ended);
    } else {
      takeAsModelled(queue, model);
    }
    expect(queue.running.toSorted()).toEqual([...model.running].toSorted());
  }
  drain(queue, model, clock);
}

function takeAsModelled(queue: WorkQueue<string>, model: Model): void {
  const candidates = model.candidates();
  const taken = queue.take();
  if (taken === undefined) {
    expect(candidates).toEqual([]);
    return;
  }
  expect(candidates).toContain(taken.key);
  expect(model.running.has(taken.key)).toBe(false);
  expect(taken.priority).toBe(model.waiting.get(taken.key)?.priority);
  model.take(taken.key);
}

/** Ends everything: nothing that was asked for may be left out. */
function drain(queue: WorkQueue<string>, model: Model, clock: ManualClock): void {
  clock.advanceSync(1000);
  model.wait(100);
  for (let round = 0; round <= 2 * keys.length; round++) {
    for (const running of [...model.running]) {
      queue.done(running);
      model.done(running);
    }
    takeAsModelled(queue, model);
  }
  expect(model.waiting.size).toBe(0);
  expect(queue.depth + queue.delayedCount).toBe(0);
}

it('behaves as its model: never two at once, nothing lost, priorities, first in first out', () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 80 }), play), { numRuns: 1000 });
});
