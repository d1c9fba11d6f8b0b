import { cpus, loadavg, release, totalmem, type } from 'node:os';

/** What it was measured on. */
export interface Machine {
  readonly cpus: number;
  readonly model: string;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
  /** Processes that ran or waited over the last minute, before the benchmark began. */
  readonly load: number;
}

/** This machine, as it stands. */
export function thisMachine(): Machine {
  return {
    cpus: cpus().length,
    model: cpus()[0]?.model.trim() ?? 'unknown CPU',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.version,
    load: Number((loadavg()[0] ?? NaN).toFixed(2)),
  };
}

/** One line. */
export function machineLine(machine: Machine): string {
  const { cpus: count, model, memoryGiB, system, node, load } = machine;
  return `${String(count)} x ${model}, ${String(memoryGiB)} GiB, ${system}, Node ${node}, load ${String(load)} at the start`;
}

/** What kind of machine it is, in words that fit many. */
export function machineKind({ cpus: count, memoryGiB, system, node, load }: Machine): string {
  const [kernel = ''] = system.split(' ');
  return `${String(count)} cores, ${String(memoryGiB)} GiB, ${kernel}, Node ${node}, load ${String(load)} at the start`;
}
