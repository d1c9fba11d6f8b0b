import { setImmediate as turn } from 'node:timers/promises';
import type { AnyKind } from '../../../constructs/kind/kind';
import { Controller } from '../../../operator/controller/controller';
import { objectKey, type QueueKey } from '../../../operator/controller/queue-keys';
import { EffectReconciler } from '../../../operator/effects/effect-reconciler';
import type { EffectEngineOptions } from '../../../operator/effects/effect-engine';
import { EffectInputReader } from '../../../operator/effects/effect-input-reader';
import { DEFAULT_ATTEMPT_BACKOFF } from '../../../operator/effects/effect-state';
import { EffectRunQueue } from '../../../operator/effects/effect-runs';
import { WorkQueue } from '../../../operator/workqueue/work-queue';
import type { WorkersEnd } from '../../../operator/workqueue/run-workers';
import type { ControllerMetrics, ReconcileOutcome } from '../../../operator/metrics/controller-metrics';
import { createLogger } from '../../../operator/process/logger';
import { Harness } from '../reconcile/harness';
import { ManualClock } from '../support/manual-clock';
import type { MemoryApiServer } from '../../../testing/api-server/memory-api-server';

/** What differs from a controller that begins on an empty server. */
export interface RunningControllerOptions {
  /** @default 4 */
  readonly concurrency?: number;
  /** One that holds something already, as an operator finds it that is started again. */
  readonly server?: MemoryApiServer;
  /** What carries out the kind's effects. @default nothing */
  readonly effects?: (harness: Harness) => EffectEngineOptions;
  /** How long a function of the kind may run, in milliseconds. @default as in an operator */
  readonly limitMs?: number;
}

/** A controller of one kind that works on the memory, whose clock stands still until told. */
export class RunningController extends Harness {
  readonly clock = new ManualClock();
  readonly results: (ReconcileOutcome | 'terminal')[] = [];
  readonly log: Record<string, unknown>[] = [];
  readonly queue = new WorkQueue<QueueKey>({ clock: this.clock, backoff: { random: () => 0 } });
  readonly controller: Controller;
  private readonly stopping = new AbortController();
  private runs: EffectRunQueue | undefined;
  private ended: Promise<WorkersEnd<QueueKey>> | undefined;

  constructor(kind: AnyKind, { concurrency = 4, server, effects, limitMs }: RunningControllerOptions = {}) {
    super(kind, server);
    if (effects !== undefined) Object.assign(this.context, { effects: this.desk(effects) });
    this.server.eventDelivery = 'after';
    const metrics: ControllerMetrics = {
      setMaxConcurrent: () => undefined,
      started: () => undefined,
      finished: (result) => this.results.push(result),
      terminalError: () => this.results.push('terminal'),
    };
    const write = (line: string): void => void this.log.push(JSON.parse(line) as Record<string, unknown>);
    const logger = createLogger({ level: 'debug', destination: { write } });
    this.controller = new Controller({
      ...{ context: this.context, queue: this.queue, metrics, logger, concurrency },
      ...(limitMs !== undefined && { limitMs }),
    });
    if (server !== undefined) this.fillCaches();
  }

  private desk(effects: (harness: Harness) => EffectEngineOptions): EffectReconciler {
    const { kind, server, context, clock } = this;
    const { plans, limit, reads, storeOf, backoff = DEFAULT_ATTEMPT_BACKOFF } = effects(this);
    const stop = this.stopping.signal;
    const runs = (this.runs = new EffectRunQueue({ limit, stop }));
    return new EffectReconciler({
      ...{ kind, plans, backoff, clock, runs, stop, store: storeOf(kind), reads: new EffectInputReader(server, reads) },
      record: context.record,
      enqueue: ({ metadata }) => this.queue.add(objectKey(metadata)),
      getCached: ({ metadata }) => this.objects.get(metadata)?.object,
      assertMayRun: () => undefined,
    });
  }

  start(): void {
    this.ended = this.controller.run(this.stopping.signal, 1000);
  }

  /** Waits until nothing is under way and no watch has more to tell. What waits for the clock stays. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 5;) {
      await turn();
      const work = this.queue.depth + this.queue.running.length + (this.runs?.size ?? 0);
      quiet = work === 0 ? quiet + 1 : 0;
    }
  }

  async stop(): Promise<WorkersEnd<QueueKey> | undefined> {
    this.stopping.abort();
    return this.ended;
  }

  /** The log lines of a level and above, as their messages. */
  complaints(): readonly string[] {
    return this.log.filter(({ level }) => level === 'warn' || level === 'error').map(({ msg }) => String(msg));
  }
}
