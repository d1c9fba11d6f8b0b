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
  /** The same when all was measured, the benchmark's own work included. */
  readonly loadAfter?: number;
}

/** This machine, as it stands. */
export function thisMachine(): Machine {
  return {
    cpus: cpus().length,
    model: cpus()[0]?.model.trim() ?? 'unknown CPU',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.version,
    load: loadNow(),
  };
}

/** Processes that ran or waited over the last minute. */
export function loadNow(): number {
  return Number((loadavg()[0] ?? NaN).toFixed(2));
}

/** One line. */
export function machineLine(machine: Machine): string {
  const { cpus: count, model, memoryGiB, system, node } = machine;
  return `${String(count)} x ${model}, ${String(memoryGiB)} GiB, ${system}, Node ${node}, ${loads(machine)}`;
}

/** What kind of machine it is, in words that fit many. */
export function machineKind(machine: Machine): string {
  const { cpus: count, memoryGiB, system, node } = machine;
  const [kernel = ''] = system.split(' ');
  return `${String(count)} cores, ${String(memoryGiB)} GiB, ${kernel}, Node ${node}, ${loads(machine)}`;
}

function loads({ load, loadAfter }: Machine): string {
  const after = loadAfter === undefined ? '' : `, ${String(loadAfter)} at the end (the benchmark's own work included)`;
  return `load ${String(load)} at the start${after}`;
}
