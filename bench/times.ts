import { cpus } from 'node:os';
import { quantile } from './measures';

/** Prints how long things took, by name, in milliseconds: a table, or JSON. */
export function printTimes(what: string, times: ReadonlyMap<string, readonly number[]>, json: boolean): void {
  const results = [...times].map(([name, ms]) => ({
    ...{ name, n: ms.length, median: quantile(ms, 0.5), p10: quantile(ms, 0.1), p90: quantile(ms, 0.9) },
    ...{ min: Math.min(...ms), max: Math.max(...ms) },
  }));
  if (json) {
    console.log(JSON.stringify({ node: process.version, results }));
    return;
  }
  console.log(`${what}, ms; Node ${process.version}, ${String(cpus().length)} x ${cpus()[0]?.model ?? 'CPU'}`);
  for (const { name, n, median, p10, p90, min, max } of results) {
    const figures = [median, p10, p90, min, max].map((value) => value.toFixed(0).padStart(7));
    console.log(
      `${name.padEnd(66)} n=${String(n)} median${figures[0] ?? ''}  p10-p90${figures[1] ?? ''} -${figures[2] ?? ''}  min-max${figures[3] ?? ''} -${figures[4] ?? ''}`,
    );
  }
}
