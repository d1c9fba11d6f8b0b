import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { BareAccess } from '../../../bench/bare-loop';
import type { Usage } from '../../../bench/results';
import { clusterAccessFromText } from '../../../operator/client/kubeconfig';
import { LogLines } from '../../../testing/operator-process';
import type { Pair } from './limit';
import { spawnFor } from './spawn-for';
import { usageOf } from './usage';

const root = join(__dirname, '..', '..', '..');
const patienceMs = 900_000;

/** Bundles the program of the bare requests into a folder; @returns its file */
export async function bareBundle(folder: string): Promise<string> {
  const file = join(folder, 'bare-loop.cjs');
  await promisify(execFile)(process.execPath, ['bench/bundle.mjs', 'bare-loop', file], { cwd: root });
  return file;
}

/** Whose requests are sent, as the program is told. */
export async function bareAccess(kubeconfig: string): Promise<BareAccess> {
  const access = clusterAccessFromText(await readFile(kubeconfig, 'utf8'), kubeconfig);
  const { headers, tls = {} } = await access.credentials(false);
  const texts = Object.entries(tls).map(([name, value]: [string, unknown]) => [
    name,
    Buffer.isBuffer(value) ? value.toString() : value,
  ]);
  return { server: access.server, headers, tls: Object.fromEntries(texts) as BareAccess['tls'] };
}

/** How prepared requests are sent. */
export interface BareOptions {
  /** What `bareBundle` made; the requests are put beside it. */
  readonly bundle: string;
  readonly access: BareAccess;
  readonly env: Readonly<Record<string, string>>;
  readonly concurrency: number;
  readonly signal: AbortSignal;
}

/**
 * Sends prepared requests from a process of its own.
 *
 * @returns what that process used, its start included
 * @throws Error when one is refused
 */
export async function sendBare(pairs: Iterable<Pair>, options: BareOptions): Promise<Usage> {
  const { bundle, access, env, concurrency, signal } = options;
  const file = `${bundle}.requests`;
  await writeFile(file, linesOf(pairs));
  const args = [bundle, file, String(concurrency)];
  const child = spawnFor({ command: process.execPath, args, env }, 'pipe', signal);
  const log = new LogLines();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => log.push(chunk));
  }
  const closed = once(child, 'close').then(() =>
    log.end(`the bare requests have failed: ${log.errors()[0]?.msg ?? 'no reason was given'}`),
  );
  child.stdin?.on('error', () => undefined); // it has ended; that is told by its log
  child.stdin?.write(`${JSON.stringify(access)}\n`);
  await log.line('sent', patienceMs);
  const usage = await usageOf(child.pid ?? 0);
  child.stdin?.end();
  await closed;
  return usage;
}

function* linesOf(pairs: Iterable<Pair>): Generator<string> {
  for (const pair of pairs) {
    yield `${pair.flatMap(({ method, path, type, body }) => [method, path, type, body]).join('\t')}\n`;
  }
}
