import {
  labels,
  limits,
  type Converged,
  type Edits,
  type LimitName,
  type LimitRun,
  type OperatorName,
  type OperatorRun,
  type Restarted,
  type Round,
} from './results';
import type { KubeObject } from '../constructs/kube/kube-object';
import { HelloApp } from '../constructs/kinds';
import { deleteObjects, createObjects } from './many-objects';
import type { AuditSummary } from './audit';
import type { OperatorUnderTest } from './operators-under-test';
import { measureEdits } from './edits';
import { requestPair } from './bare-requests';
import type { BenchContext } from './bench-env';
import { assertConverged } from './convergence';

/** Options of a round. */
export interface RoundOptions {
  readonly objects: number;
  /** The operators to measure; the bare requests are always measured. */
  readonly names: readonly OperatorName[];
  /** Objects that are edited in this round; 0 for none. */
  readonly edits: number;
  /** Whether to run in reverse order. */
  readonly backwards: boolean;
}

/** Measures one round after another on one control plane. */
export class Rounds {
  /** A status as the operator writes it, for the bare requests. */
  private status: object = {};
  private namespaces = 0;

  constructor(
    private readonly stage: BenchContext,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * Small runs that do not count. They warm the server's caches and code paths, and give a status for the
   * bare requests.
   */
  async warmUp(): Promise<void> {
    for (const contestant of this.stage.contestants) {
      const objects = await this.createObjects(100);
      await this.converge(contestant, objects);
      if (contestant.name === 'kindred') {
        const { namespace = '', name = '' } = objects[0]?.metadata ?? {};
        this.status = (await this.stage.client.get(HelloApp.type, { namespace, name }))?.status ?? {};
      }
      await deleteObjects(this.stage.client, objects);
    }
    for (const name of limits) await this.limit(name, 100);
  }

  /** One round: each operator and bare loop in turn. */
  async round(options: RoundOptions): Promise<Round> {
    const { objects, backwards, names } = options;
    const operators: Partial<Record<OperatorName, OperatorRun>> = {};
    const bare: Partial<Record<LimitName, LimitRun>> = {};
    const acts = [
      async () => void (bare.same = await this.limit('same', objects)),
      ...this.stage.contestants
        .filter(({ name }) => names.includes(name))
        .map((one) => async () => void (operators[one.name] = await this.run(one, options))),
      async () => void (bare.apply = await this.limit('apply', objects)),
    ];
    for (const act of alternate(acts, backwards)) await act();
    return { operators, limits: bare };
  }

  /** Creates a new namespace with this many objects. */
  createObjects(count: number): Promise<readonly KubeObject[]> {
    return createObjects(this.stage.client, `bench-${String((this.namespaces += 1))}`, count);
  }

  /** Measures the bare requests. */
  private async limit(name: LimitName, count: number): Promise<LimitRun> {
    const { stage } = this;
    const objects = await this.createObjects(count);
    const pairs = objects.map((object) => requestPair(object, this.status, name));
    const [{ user }] = stage.contestants as readonly [OperatorUnderTest];
    await stage.calm();
    await stage.requests(user);
    const usage = await stage.send(pairs, this.signal);
    const done = await stage.requests(user);
    if (done.writeCount !== 2 * count) throw new Error(`the bare requests were ${JSON.stringify(done.writes)}`);
    await assertConverged(stage.client, labels[name], objects);
    await deleteObjects(stage.client, objects);
    return { objectsPerSecond: perSecond(count, done), ...usage };
  }

  /** Measures an operator: with new objects, after a restart, and with single edits. */
  private async run(
    contestant: OperatorUnderTest,
    { objects: count, edits: edited }: RoundOptions,
  ): Promise<OperatorRun> {
    const objects = await this.createObjects(count);
    const converged = await this.converge(contestant, objects);
    const { restarted, edits } = await this.restart(contestant, objects, edited);
    await deleteObjects(this.stage.client, objects);
    return { converged, restarted, ...(edits === undefined ? {} : { edits }) };
  }

  private async converge(contestant: OperatorUnderTest, objects: readonly KubeObject[]): Promise<Converged> {
    await this.stage.calm();
    await this.stage.requests(contestant.user);
    const operator = this.stage.start(await contestant.program(objects.length), this.signal);
    await operator.settled(objects.length);
    const usage = await operator.usage();
    await operator.stop();
    const { writes, writeCount, events, requests, ...times } = await this.stage.requests(contestant.user);
    const objectsPerSecond = perSecond(objects.length, times);
    await assertConverged(this.stage.client, labels[contestant.name], objects);
    return {
      ...{ objectsPerSecond, writes, events, requests, ...usage },
      writesPerObject: writeCount / objects.length,
      firstWriteMs: times.firstAt - operator.startedAt,
      convergedMs: times.doneAt - operator.startedAt,
      lastWriteMs: times.lastAt - operator.startedAt,
    };
  }

  private async restart(
    contestant: OperatorUnderTest,
    objects: readonly KubeObject[],
    edited: number,
  ): Promise<{ readonly restarted: Restarted; readonly edits: Edits | undefined }> {
    const { stage } = this;
    await stage.calm();
    const operator = stage.start(await contestant.program(objects.length), this.signal);
    const reconcilingMs = await operator.reconciling();
    await operator.settled(objects.length);
    const usage = await operator.usage();
    const { writes, writeCount, events } = await stage.requests(contestant.user);
    const chosen = objects.slice(0, edited);
    const either = AbortSignal.any([this.signal, operator.gone]);
    const edits = chosen.length === 0 ? undefined : await measureEdits(stage.client, chosen, either);
    await operator.settled(objects.length); // the plain twin still reconciles the events of its own writes
    await operator.stop();
    await assertConverged(stage.client, `${labels[contestant.name]}, started again`, objects);
    return { restarted: { writes, writeCount, events, reconcilingMs, ...usage }, edits };
  }
}

/** Reverses the order in every second round, so that what is first in one is last in the next. */
export function alternate<T>(all: readonly T[], backwards: boolean): readonly T[] {
  return backwards ? [...all].reverse() : all;
}

function perSecond(
  objects: number,
  { firstAt, done, doneAt }: Pick<AuditSummary, 'firstAt' | 'done' | 'doneAt'>,
): number {
  if (done !== objects) throw new Error(`${String(done)} of ${String(objects)} objects were given a status`);
  return (objects / (doneAt - firstAt)) * 1000;
}
