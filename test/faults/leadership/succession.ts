import { expectCalm, expectNothingMissed } from '../support/calm';
import type { Reconcilable } from '../support/calm';
import { rssMiB } from '../support/rss';
import { expectNoStorm, trafficOf } from '../support/traffic';
import type { Traffic, Workload } from '../support/traffic';
import type { Replica } from './replica';

/** What a replica may grow by when it begins to work, in MiB: a heap that is not collected yet is no leak; a soak tells leaks apart. */
const GROWTH_MIB = 60;

/**
 * How often the heir may ask what a calm run asks once: nothing is in its way, but all that was left undone comes at once. Measured in the short form: 9
 * writes to one object where 18 are allowed, and 5 where 36 are.
 */
const HEIR_FACTOR = 3;

/** What there was to do, and how all of it is looked at again; a `Load` is one. */
export interface Work extends Reconcilable {
  readonly workload: Workload;
}

/** One replica takes over from another. */
export class Succession {
  private readonly began = Date.now();
  private readonly before: number;

  /** The heir still stands by. */
  constructor(
    private readonly leader: Replica,
    private readonly heir: Replica,
  ) {
    this.before = rssMiB(heir.operator.pid);
  }

  /**
   * Expects, once all is done, that neither replica has made a storm of requests, and that the heir has missed nothing, has not grown, and has
   * nothing left to write.
   */
  async expectSound(work: Work): Promise<void> {
    const { operator, proxy } = this.heir;
    expectNoStorm(this.trafficOf(this.leader), work.workload);
    expectNoStorm(this.trafficOf(this.heir), work.workload, HEIR_FACTOR);
    await expectNothingMissed(proxy, operator);
    await expectCalm(this.heir, work);
    expect(rssMiB(operator.pid) - this.before).toBeLessThan(GROWTH_MIB);
  }

  private trafficOf({ proxy }: Replica): Traffic {
    return trafficOf(proxy.requests, this.began, Date.now());
  }
}
