import type { FaultBench } from '../fault-bench';
import { when } from '../proxy/fault-proxy';
import type { Fault } from '../proxy/fault-proxy';
import { aboutWork } from '../proxy/faults';
import { startAuditing } from '../support/calm';
import { liveThrough } from '../support/live-through';

/** A fault by its name. */
export type NamedFault = readonly [what: string, fault: Fault];

/** Tests that work goes on, or is caught up with, under each of the faults, on one control plane. */
export function testUnderFaults(bench: FaultBench, faults: readonly NamedFault[]): void {
  beforeAll(async () => {
    await startAuditing(bench);
  }, 60_000);

  test.each(faults)('%s', async (_what, fault) => {
    await liveThrough(bench, async (work) => {
      bench.proxy.fault = when(aboutWork, fault);
      // Watches are opened anew, into the fault.
      bench.proxy.cut();
      await work();
      bench.heal();
    });
  });
}
