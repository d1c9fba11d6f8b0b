import type { OperatorProcess } from '../../../testing';
import type { FaultBench } from '../fault-bench';
import { auditing } from '../support/calm';
import { ErrorsLogged } from '../support/errors-logged';

/** The operators of a walk, one after the other: what each has found counts, though another has taken its place. */
export class OperatorAtWork {
  private readonly logged = new ErrorsLogged();

  /** Takes over the one that works. */
  constructor(private readonly bench: FaultBench) {
    this.logged.follow(bench.operator);
  }

  /**
   * Starts another in place of one that has given up, or is killed now; it need not work yet.
   *
   * @throws Error when the one that is replaced, or one before it, has logged what is a bug, or has ended by itself
   */
  async replace(): Promise<OperatorProcess> {
    const { bench } = this;
    if (bench.operator.running) await bench.operator.kill();
    else this.expectGivenUp();
    this.expectNoBug();
    await bench.releaseLease();
    const next = await bench.start(auditing);
    this.logged.follow(next);
    return next;
  }

  /**
   * None of them has logged what is a bug.
   *
   * @throws Error with what was logged
   */
  expectNoBug(): void {
    this.logged.expectNoBug();
  }

  /** It gives up only when it has lost its Lease. */
  private expectGivenUp(): void {
    const { all } = this.bench.operator.log;
    if (all.some(({ msg }) => msg === 'lost leadership')) return;
    throw new Error(`the operator has ended by itself: ${JSON.stringify(all.at(-1))}`);
  }
}
