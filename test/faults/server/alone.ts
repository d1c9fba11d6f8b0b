import type { Bench } from '../../e2e/operator/support/bench';

/** Has the operators of a bench work without a Lease: one that is frozen then goes on when it thaws. With a Lease it ends; see `leadership/`. */
export function alone(bench: Bench): void {
  const args = bench.platform.args.filter((arg) => arg !== '--leader-elect' && !arg.startsWith('--lease-'));
  bench.platform = { ...bench.platform, args };
}
