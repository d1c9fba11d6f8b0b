import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HelloApp } from '../constructs/kinds';
import type { KubeObject } from '../constructs/kube/kube-object';
import { clusterAccessFromText } from '../operator/client/kubeconfig';
import { expectedChildren } from '../testing';
import { LogLines } from '../testing/log-lines';
import type { BareAccess } from './bare-loop';
import { bundle } from './bundle';
import { spawnWithSignal, usageOf } from './measured-process';
import type { LimitName, Usage } from './results';

const sendTimeoutMs = 900_000;

/** Bundles the program that sends the bare requests into a directory. @returns its file */
export async function bareBundle(folder: string): Promise<string> {
  const file = join(folder, 'bare-loop.cjs');
  await bundle('bare-loop', file);
  return file;
}

/** The access of a kubeconfig, as the program reads it from stdin. */
export async function bareAccess(kubeconfig: string): Promise<BareAccess> {
  const access = clusterAccessFromText(await readFile(kubeconfig, 'utf8'), kubeconfig);
  const { headers, tls = {} } = await access.credentials(false);
  const texts = Object.entries(tls).map(([name, value]: [string, unknown]) => [
    name,
    Buffer.isBuffer(value) ? value.toString() : value,
  ]);
  return { server: access.server, headers, tls: Object.fromEntries(texts) as BareAccess['tls'] };
}

/** Options of {@link sendBare}. */
interface BareOptions {
  /** The bundle from `bareBundle`; the requests are written beside it. */
  readonly bundle: string;
  readonly access: BareAccess;
  readonly env: Readonly<Record<string, string>>;
  readonly concurrency: number;
  readonly signal: AbortSignal;
}

/**
 * Sends prepared requests from a separate process.
 *
 * @returns the resource usage of that process, including its start
 * @throws Error when one is rejected
 */
export async function sendBare(pairs: Iterable<RequestPair>, options: BareOptions): Promise<Usage> {
  const { bundle, access, env, concurrency, signal } = options;
  const file = `${bundle}.requests`;
  await writeFile(file, linesOf(pairs));
  const args = [bundle, file, String(concurrency)];
  const child = spawnWithSignal({ command: process.execPath, args, env }, 'pipe', signal);
  const log = new LogLines();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => log.push(chunk));
  }
  const closed = once(child, 'close').then(() =>
    log.end(`the bare requests have failed: ${log.errors()[0]?.msg ?? 'no reason was given'}`),
  );
  child.stdin?.on('error', () => undefined); // the program has ended, which its log reports
  child.stdin?.write(`${JSON.stringify(access)}\n`);
  await log.line('sent', sendTimeoutMs);
  const usage = await usageOf(child.pid ?? 0);
  child.stdin?.end();
  await closed;
  return usage;
}

function* linesOf(pairs: Iterable<RequestPair>): Generator<string> {
  for (const pair of pairs) {
    yield `${pair.flatMap(({ method, path, type, body }) => [method, path, type, body]).join('\t')}\n`;
  }
}

/** A prepared request. */
interface PreparedRequest {
  readonly method: 'POST' | 'PATCH';
  readonly path: string;
  readonly type: string;
  readonly body: string;
}

/** The two writes that an object needs. */
export type RequestPair = readonly [create: PreparedRequest, status: PreparedRequest];

const query = 'fieldManager=kindred&fieldValidation=Strict';

/**
 * The two requests that create an object's Deployment and write the object's status.
 *
 * @param status the status that the operator writes for such an object
 * @param how the Deployment is created by POST, as our operator does (`same`), or by server-side apply
 *   (`apply`)
 */
export function requestPair(owner: KubeObject, status: object, how: LimitName): RequestPair {
  const { name, namespace = '', uid } = owner.metadata;
  const [child] = expectedChildren(HelloApp, owner);
  if (child === undefined) throw new Error('a HelloApp renders nothing');
  const { apiVersion, kind, type } = HelloApp;
  const own = { ...status, selector: `app=${name}` };
  const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`;
  const create =
    how === 'apply'
      ? applied(`${deployments}/${name}`, child.object)
      : {
          method: 'POST' as const,
          path: `${deployments}?${query}`,
          type: 'application/json',
          body: json(child.object),
        };
  const statusPath = `/apis/${apiVersion}/namespaces/${namespace}/${type.plural}/${name}/status`;
  return [create, applied(statusPath, { apiVersion, kind, metadata: { name, namespace, uid }, status: own })];
}

function applied(path: string, body: object): PreparedRequest {
  const type = 'application/apply-patch+yaml';
  return { method: 'PATCH', path: `${path}?${query}&force=true`, type, body: json(body) };
}

function json(body: object): string {
  return JSON.stringify(body);
}
