import { setTimeout as delay } from 'node:timers/promises';
import { HelloApp } from '../constructs/kinds';
import type { KubeObject } from '../constructs/kube/kube-object';
import { owned } from '../constructs/kube/resource-type';
import type { OperatorUnderTest } from './operators-under-test';
import { WatchObserver, imageOf } from './edits';
import { deleteObjects } from './many-objects';
import { labels, type BusyEdits, type BusyRound, type OperatorName } from './results';
import { alternate, type Rounds } from './rounds';
import type { BenchContext } from './bench-env';
import { assertConverged } from './convergence';

/** How many objects a user edits in turn. */
const edited = 50;

/** The environment of the measurements. */
export interface BusyEditsContext {
  readonly stage: BenchContext;
  readonly rounds: Rounds;
  readonly signal: AbortSignal;
}

/** Measures each operator once. @param count how many other objects it reconciles meanwhile */
export async function busyRound(on: BusyEditsContext, count: number, backwards: boolean): Promise<BusyRound> {
  const round: Partial<Record<OperatorName, BusyEdits>> = {};
  for (const contestant of alternate(on.stage.contestants, backwards)) {
    round[contestant.name] = await measureBusyEdits(on, contestant, count);
  }
  return round;
}

/**
 * Edits images, one after another, while an operator that was just started creates the children of many other
 * objects. Ends with the last edit that began while other objects were still waiting.
 */
async function measureBusyEdits(
  { stage, rounds, signal }: BusyEditsContext,
  contestant: OperatorUnderTest,
  count: number,
): Promise<BusyEdits> {
  const mine = await rounds.createObjects(edited);
  const before = stage.start(await contestant.program(count), signal);
  await before.settled(mine.length);
  await before.stop();
  const others = await rounds.createObjects(count);
  await stage.calm();
  const operator = stage.start(await contestant.program(count), signal);
  await operator.reconciling();
  const backlog = new Backlog(() => operator.work());
  const either = AbortSignal.any([signal, operator.gone]);
  const edits = await editWhile(() => backlog.open, stage.client, mine, either);
  await backlog.end();
  await operator.settled(count);
  await operator.stop();
  for (const objects of [mine, others]) await assertConverged(stage.client, labels[contestant.name], objects);
  await deleteObjects(stage.client, [...mine, ...others]);
  return edits;
}

/**
 * Edits one object after another. Each edit that begins while the operator is busy counts, even the slowest.
 */
export async function editWhile(
  busy: () => boolean,
  client: BenchContext['client'],
  objects: readonly KubeObject[],
  signal: AbortSignal,
): Promise<BusyEdits> {
  const namespace = objects[0]?.metadata.namespace ?? '';
  const deployments = await WatchObserver.start(client, owned.Deployment, namespace, signal);
  const [toChild, request]: [number[], number[]] = [[], []];
  try {
    for (let i = 0; busy(); i += 1) {
      const name = objects[i % objects.length]?.metadata.name ?? '';
      const image = `registry.example.com/busy:${String(i)}`;
      const changed = deployments.waitFor(name, (object) => imageOf(object) === image);
      const began = performance.now();
      const options = { type: 'merge', fieldManager: 'bench' } as const;
      await client.patch(HelloApp.type, { namespace, name }, { spec: { image } }, options);
      const answered = performance.now() - began;
      const seen = (await changed) - began;
      request.push(answered);
      toChild.push(seen);
    }
  } finally {
    await deployments.stop();
  }
  return { toChild, request };
}

const lookMs = 250;
/** The edited objects may be in the queue too, so the operator is busy only with more keys than these. */
const handful = 5;

/** Polls an operator to tell whether much of its work is still waiting. */
export class Backlog {
  private isOpen = true;
  private readonly looking: Promise<void>;

  /** @param work returns how many keys are queued or in progress, and how many reconciles are done */
  constructor(
    private readonly work: () => Promise<{ readonly open: number; readonly done: number }>,
    private readonly pauseMs = lookMs,
  ) {
    this.looking = this.look();
    this.looking.catch(() => (this.isOpen = false)); // end() throws it
  }

  /** Whether the work is not seen to be done yet. An operator without a single reconcile has not begun. */
  get open(): boolean {
    return this.isOpen;
  }

  /**
   * Stops polling.
   *
   * @throws the error of a failed poll
   */
  async end(): Promise<void> {
    this.isOpen = false;
    await this.looking;
  }

  private async look(): Promise<void> {
    while (this.isOpen) {
      const { open, done } = await this.work();
      if (open <= handful && done > 0) this.isOpen = false;
      else await delay(this.pauseMs);
    }
  }
}
