import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Metrics, type OperatorProcess } from '../../../testing';
import { rssMiB } from '../support/rss';

const MIB = 1024 * 1024;

/** What an operator's process holds at one moment. */
export interface Sample {
  /** Seconds since the first sample. */
  readonly seconds: number;
  /** VmRSS of /proc/<pid>/status. */
  readonly rssMiB: number;
  /** V8's heap in use, garbage included. */
  readonly heapMiB: number;
  /** Memory of buffers, outside of V8's heap. */
  readonly externalMiB: number;
  /** Open file descriptors. */
  readonly fds: number;
  /** Those among them that are sockets. */
  readonly sockets: number;
  /** What keeps Node's event loop busy: timers, sockets, servers. */
  readonly resources: number;
  /** The 99th percentile of the event loop's lag since the sample before, in milliseconds. */
  readonly lagMs: number;
  /** CPU time used so far, in seconds. */
  readonly cpuSeconds: number;
  /** Time series that `/metrics` shows, those left out that tell of Node itself, which come and go. */
  readonly series: number;
  /** Custom resources in the operator's caches. */
  readonly objects: number;
  /** Reconciles so far. */
  readonly reconciles: number;
}

/** Takes samples of one operator. */
export class Sampler {
  readonly samples: Sample[] = [];
  /** What `/metrics` said last, word by word. */
  text = '';
  private began: number | undefined;

  constructor(private readonly operator: OperatorProcess) {}

  async take(): Promise<Sample> {
    this.began ??= Date.now();
    const seconds = (Date.now() - this.began) / 1000;
    const { port } = await this.operator.log.line('serving /healthz, /readyz and /metrics');
    this.text = await (await fetch(`http://127.0.0.1:${String(port)}/metrics`)).text();
    const sample = { seconds, ...fromMetrics(this.text), ...(await fromProc(this.operator.pid)) };
    this.samples.push(sample);
    return sample;
  }
}

/** Comma-separated, a header first: what a spreadsheet reads. */
export function csv(samples: readonly Sample[]): string {
  const names = Object.keys(samples[0] ?? {}) as (keyof Sample)[];
  const lines = samples.map((sample) => names.map((name) => String(Number(sample[name].toFixed(3)))).join(','));
  return [names.join(','), ...lines, ''].join('\n');
}

function fromMetrics(text: string): Omit<Sample, 'seconds' | 'rssMiB' | 'fds' | 'sockets'> {
  const metrics = Metrics.parse(text);
  const ofNode = /^(#|nodejs_|process_|$)/;
  return {
    heapMiB: metrics.sum('nodejs_heap_size_used_bytes') / MIB,
    externalMiB: metrics.sum('nodejs_external_memory_bytes') / MIB,
    resources: metrics.sum('nodejs_active_resources_total'),
    lagMs: metrics.sum('nodejs_eventloop_lag_p99_seconds') * 1000,
    cpuSeconds: metrics.sum('process_cpu_seconds_total'),
    series: text.split('\n').filter((line) => !ofNode.test(line)).length,
    objects: metrics.sum('kindred_objects'),
    reconciles: metrics.sum('controller_runtime_reconcile_total'),
  };
}

/** Source of the fields: proc(5). */
async function fromProc(pid: number): Promise<Pick<Sample, 'rssMiB' | 'fds' | 'sockets'>> {
  const folder = `/proc/${String(pid)}`;
  const fds = await readdir(join(folder, 'fd'));
  // One that was closed meanwhile is none any more.
  const links = await Promise.all(fds.map((fd) => readlink(join(folder, 'fd', fd)).catch(() => undefined)));
  const open = links.filter((link) => link !== undefined);
  return {
    rssMiB: rssMiB(pid),
    fds: open.length,
    sockets: open.filter((link) => link.startsWith('socket:')).length,
  };
}
