import type { OperatorProcess } from '../../../../testing';
import type { Bench } from './bench';

/** Waits until an operator has nothing left to do and has looked at so many keys at least. */
export async function quiet(bench: Bench, operator: OperatorProcess, reconciles = 0): Promise<void> {
  await bench.eventually(`the operator to have nothing left to do after ${String(reconciles)} reconciles`, async () => {
    const metrics = await operator.metrics();
    const open = metrics.sum('workqueue_depth') + metrics.sum('controller_runtime_active_workers');
    return open === 0 && metrics.sum('controller_runtime_reconcile_total') >= reconciles ? true : undefined;
  });
}
