import type { OperatorProcess } from '../../../testing';

/** How the operator begins to say that a watch has not told it of something. */
export const missedEvents = 'the watch missed events';

/** What no trouble of a network or a server excuses, by how the messages begin. */
const bugs = [missedEvents, 'a reconcile ended unexpectedly'];

/** What the operators of a test have logged as errors: those that are gone count like the one at work. */
export class ErrorsLogged {
  private readonly operators: OperatorProcess[] = [];

  /** From now on what this one has logged counts, and what it still will. */
  follow(operator: OperatorProcess): void {
    this.operators.push(operator);
  }

  /** All of them as JSON, those of the first operator first. */
  all(): readonly string[] {
    return this.operators.flatMap(({ log }) => log.errors()).map((line) => JSON.stringify(line));
  }

  /**
   * Those that are a bug, whatever trouble there was, are none.
   *
   * @throws Error with what was logged
   */
  expectNoBug(): void {
    const errors = this.operators.flatMap(({ log }) => log.errors());
    const found = errors.filter(({ msg }) => bugs.some((begin) => msg.startsWith(begin)));
    if (found.length === 0) return;
    throw new Error(`operators have logged what is a bug:\n${found.map((line) => JSON.stringify(line)).join('\n')}`);
  }
}
