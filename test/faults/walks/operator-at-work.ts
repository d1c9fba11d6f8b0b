import type { OperatorProcess } from '../../../operator/testing';
import type { FaultBench } from '../fault-bench';

/** Audits come often, so that what a watch has missed is counted while the walk lasts. */
const args = ['--audit-seconds=1'];

/** Starts the first operator; it leads. */
export async function startOperator(bench: FaultBench): Promise<void> {
  await bench.start(args);
  await bench.operator.working();
}

/** Starts another in place of one that is gone, or is killed now; it need not work yet. */
export async function replaceOperator(bench: FaultBench): Promise<OperatorProcess> {
  if (bench.operator.running) await bench.operator.kill();
  await bench.releaseLease();
  return bench.start(args);
}
