import { form } from '../form';
import { sentenceOf } from '../proxy/proxied-request';
import { expectCalm, expectNothingMissed } from '../support/calm';
import type { Reconcilable } from '../support/calm';
import { rssMiB } from '../support/rss';
import type { Replica } from './replica';

/** What a replica may grow by when it begins to work, in MiB: a heap that is not collected yet is no leak; a soak tells leaks apart. */
const GROWTH_MIB = 60;

/**
 * How often the heir may write one thing, a status say, which tells of each state of its children. A loop without delays comes to hundreds in a
 * second.
 */
const WRITES = form({ short: 40, long: 100 });

/** One replica takes over from another. */
export class Succession {
  private readonly began = Date.now();
  private readonly before: number;

  /** The heir still stands by. */
  constructor(private readonly heir: Replica) {
    this.before = rssMiB(heir.operator.pid);
  }

  /** Expects, once all is done, that the heir has missed nothing, has written in measure, has not grown, and has nothing left to write. */
  async expectSound(work: Reconcilable): Promise<void> {
    const { operator, proxy } = this.heir;
    expect(this.written().filter(([, times]) => times > WRITES)).toEqual([]);
    await expectNothingMissed(proxy, operator);
    await expectCalm(this.heir, work);
    expect(rssMiB(operator.pid) - this.before).toBeLessThan(GROWTH_MIB);
  }

  /** What the heir has written since, and how often. */
  private written(): readonly (readonly [sentence: string, times: number])[] {
    const counts = new Map<string, number>();
    for (const sentence of this.heir.writesSince(this.began).map(sentenceOf)) {
      counts.set(sentence, (counts.get(sentence) ?? 0) + 1);
    }
    return [...counts];
  }
}
