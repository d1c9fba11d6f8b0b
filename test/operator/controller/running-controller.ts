import { setImmediate as turn } from 'node:timers/promises';
import type { AnyKind } from '../../../constructs/core/kind';
import { Controller } from '../../../operator/src/controller/controller';
import type { QueueKey } from '../../../operator/src/controller/queue-key';
import { WorkQueue } from '../../../operator/src/queue/work-queue';
import type { WorkersEnd } from '../../../operator/src/queue/run-workers';
import type { ControllerMetrics, ReconcileResult } from '../../../operator/src/runtime/controller-metrics';
import { createLogger } from '../../../operator/src/runtime/logger';
import { Harness } from '../reconcile/harness';
import { ManualClock } from '../runtime/manual-clock';

/** A controller of one kind that works on the memory, whose clock stands still until told. */
export class RunningController extends Harness {
  readonly clock = new ManualClock();
  readonly results: (ReconcileResult | 'terminal')[] = [];
  readonly log: Record<string, unknown>[] = [];
  readonly queue = new WorkQueue<QueueKey>({ clock: this.clock, backoff: { random: () => 0 } });
  readonly controller: Controller;
  private readonly stopping = new AbortController();
  private ended: Promise<WorkersEnd<QueueKey>> | undefined;

  constructor(kind: AnyKind, concurrency = 4) {
    super(kind);
    this.server.delivery = 'after';
    const metrics: ControllerMetrics = {
      setMaxConcurrent: () => undefined,
      started: () => undefined,
      finished: (result) => this.results.push(result),
      terminalError: () => this.results.push('terminal'),
    };
    const write = (line: string): void => void this.log.push(JSON.parse(line) as Record<string, unknown>);
    const logger = createLogger({ level: 'debug', destination: { write } });
    this.controller = new Controller({ context: this.context, queue: this.queue, metrics, logger, concurrency });
  }

  start(): void {
    this.ended = this.controller.run(this.stopping.signal, 1000);
  }

  /** Waits until nothing is under way and no watch has more to tell. What waits for the clock stays. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 5;) {
      await turn();
      quiet = this.queue.depth === 0 && this.queue.running.length === 0 ? quiet + 1 : 0;
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
