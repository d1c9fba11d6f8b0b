import { TaskError } from './task-error';

/** Something to do, after others. */
export interface Step {
  readonly id: string;
  /** Ids of other steps; those that are none count as done. */
  readonly after: readonly string[];
  /** Throws a {@link TaskError} when it fails. */
  readonly run: () => Promise<void>;
}

/** What to run, and how. */
export interface InOrderOptions {
  readonly steps: readonly Step[];
  readonly concurrency: number;
  /** Nothing starts once it is aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** How far it came. */
export interface InOrder {
  readonly complete: boolean;
  readonly errors: readonly TaskError[];
}

/**
 * Runs steps, each once those before it are done, several at a time, the first ones first. After a failure or an abort nothing starts; what is
 * under way comes to its end.
 *
 * @throws what a step throws that is no TaskError, after the others under way have ended
 */
export async function runInOrder({ steps, concurrency, signal }: InOrderOptions): Promise<InOrder> {
  const waiting = new Map(steps.map((step) => [step.id, step]));
  const open = new Set(waiting.keys());
  const running = new Set<Promise<void>>();
  const errors: TaskError[] = [];
  const fatal: unknown[] = [];
  const start = (step: Step): void => {
    waiting.delete(step.id);
    const run = step
      .run()
      .then(
        () => void open.delete(step.id),
        (error: unknown) => {
          if (error instanceof TaskError) errors.push(error);
          else fatal.push(error);
        },
      )
      .finally(() => running.delete(run));
    running.add(run);
  };
  for (;;) {
    const mayStart = errors.length === 0 && fatal.length === 0 && signal?.aborted !== true;
    const ready = mayStart ? [...waiting.values()].filter(({ after }) => !after.some((id) => open.has(id))) : [];
    for (const step of ready.slice(0, Math.max(0, concurrency - running.size))) start(step);
    if (running.size === 0) break;
    await Promise.race(running);
  }
  if (fatal.length > 0) throw fatal[0];
  return { complete: open.size === 0, errors };
}
