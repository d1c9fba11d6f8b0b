import { randomUUID } from 'node:crypto';
import { request } from 'undici';
import { LocalControlPlaneError } from '../errors';
import type { GuardedProcess } from './guarded-process';
import { etcdArgs } from './parts-args';
import { freePort, loopback } from './ports';
import { untilReady } from './ready';
import { retryLostPort } from './retry-lost-port';
import type { RunFolder } from './run-folder';
import type { RunningParts } from './running-parts';

/** A running etcd. */
export interface Etcd {
  readonly url: string;
  readonly process: GuardedProcess;
}

/** How to start it. */
export interface EtcdOptions {
  readonly program: string;
  readonly run: RunFolder;
  readonly parts: RunningParts;
  /** Milliseconds. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Starts etcd on free ports and waits until it answers. */
export async function startEtcd({ program, run, parts, timeoutMs, signal }: EtcdOptions): Promise<Etcd> {
  return retryLostPort(async () => {
    const [clientPort, peerPort] = await Promise.all([freePort(), freePort()]);
    const url = `http://${loopback}:${clientPort}`;
    const process = parts.start({
      part: 'etcd',
      program,
      args: etcdArgs(run.file('etcd', String(clientPort)), clientPort, peerPort),
      cwd: run.folder('etcd'),
      logFile: run.file('etcd.log'),
    });
    const probe = async (): Promise<true | string> => {
      const { statusCode, body } = await request(`${url}/health`, { signal: AbortSignal.timeout(1000) });
      await body.dump();
      return statusCode === 200 ? true : `/health answers ${statusCode}`;
    };
    try {
      await untilReady(probe, { what: 'etcd to be healthy', processes: [process], timeoutMs, signal });
    } catch (error) {
      await parts.kill(process);
      throw error;
    }
    return { url, process };
  });
}

/**
 * Forgets every revision but the newest. A key is written first, so that the newest revision is one that no client
 * has seen, and each resourceVersion that was handed out is older.
 */
export async function compact(url: string): Promise<void> {
  const key = Buffer.from('/kindred/compaction').toString('base64');
  const written = await call(url, 'put', { key, value: Buffer.from(randomUUID()).toString('base64') });
  const revision = (written as { header?: { revision?: string } }).header?.revision;
  if (revision === undefined) throw new LocalControlPlaneError(`etcd at ${url} answered a write without a revision.`);
  await call(url, 'compaction', { revision, physical: true });
}

async function call(url: string, method: string, body: unknown): Promise<unknown> {
  const response = await request(`${url}/v3/kv/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  });
  const text = await response.body.text();
  if (response.statusCode === 200) return JSON.parse(text) as unknown;
  throw new LocalControlPlaneError(`etcd at ${url} refused ${method} with ${response.statusCode}: ${text}`);
}
