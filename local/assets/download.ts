import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { EnvHttpProxyAgent, fetch, type Response } from 'undici';
import { sha256Of } from './cache';
import { LocalControlPlaneError, codeOf, isError, messageOf } from './errors';
import type { Checksum, Download } from './parts';

/** Timeouts for a host. */
export interface DownloadTimeouts {
  /** For the connection, in milliseconds. @default 3000 */
  readonly connectMs?: number;
  /** For the next byte once connected, in milliseconds. @default 15_000 */
  readonly idleMs?: number;
}

/**
 * Downloads releases and verifies their checksums. Remembers unreachable hosts, so that a machine without
 * internet waits for the timeout once and not for each part. Honours HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
 */
export class Downloader {
  readonly #agent: EnvHttpProxyAgent;
  readonly #unreachable = new Map<string, string>();

  constructor(timeouts: DownloadTimeouts = {}) {
    const idle = timeouts.idleMs ?? 15_000;
    this.#agent = new EnvHttpProxyAgent({
      connect: { timeout: timeouts.connectMs ?? 3000 },
      headersTimeout: idle,
      bodyTimeout: idle,
    });
  }

  /**
   * Writes a verified download to `file`.
   *
   * @throws HostUnreachableError when a host does not respond
   * @throws ChecksumMismatchError when its sha256 is not the published one
   * @throws LocalControlPlaneError when the server responds with an error, or publishes no sha256
   */
  async fetchTo(download: Download, file: string, signal?: AbortSignal): Promise<void> {
    // The checksum first: it is small, and the download cannot be used without it.
    const expected = await this.#expectedSha256(download.checksum, signal);
    const target = download.member === undefined ? file : `${file}.tar.gz`;
    try {
      await this.#save(download.url, target, signal);
      const actual = await sha256Of(target);
      if (actual !== expected) {
        throw new ChecksumMismatchError(
          `checksum mismatch: ${download.url} has sha256 ${actual}, but ${download.checksum.url} says ${expected}. ` +
            `The download was thrown away and nothing was built in its place, because something on the way (a proxy, ` +
            `a mirror) changes it. Find out what does, or set KINDRED_DOWNLOADS=off to build from source.`,
        );
      }
      if (download.member !== undefined) await extractMember(target, download.member, file);
    } finally {
      if (target !== file) await rm(target, { force: true });
    }
  }

  /** Why this download is not worth trying: one of its hosts did not respond earlier. */
  knownUnreachable(download: Download): string | undefined {
    const hosts = [download.checksum.url, download.url].map((url) => new URL(url).host);
    return hosts.map((host) => this.#unreachable.get(host)).find((reason) => reason !== undefined);
  }

  /** Closes the connections. */
  async close(): Promise<void> {
    await this.#agent.close();
  }

  async #expectedSha256(checksum: Checksum, signal?: AbortSignal): Promise<string> {
    const text = await (await this.#get(checksum.url, signal)).text();
    const found = readChecksum(checksum, text);
    if (found !== undefined && /^[0-9a-f]{64}$/.test(found)) return found;
    throw new LocalControlPlaneError(`${checksum.url} holds no sha256 for the download; it is not used unverified.`);
  }

  async #save(url: string, file: string, signal?: AbortSignal): Promise<void> {
    const { body } = await this.#get(url, signal);
    if (body === null) throw new LocalControlPlaneError(`${url} answered without a body.`);
    try {
      await pipeline(Readable.fromWeb(body), createWriteStream(file, { flags: 'wx' }), { signal });
    } catch (error) {
      if (codeOf(error) === 'ENOSPC' || signal?.aborted === true) throw error;
      throw new LocalControlPlaneError(`the download of ${url} broke off: ${causeOf(error)}.`, { cause: error });
    }
  }

  async #get(url: string, signal?: AbortSignal): Promise<Response> {
    const { host } = new URL(url);
    let response: Response;
    try {
      response = await fetch(url, {
        dispatcher: this.#agent,
        headers: { 'user-agent': 'kindred' },
        ...(signal && { signal }),
      });
    } catch (error) {
      if (signal?.aborted === true) throw error;
      const message = `${host} cannot be reached: ${causeOf(error)}`;
      this.#unreachable.set(host, message);
      throw new HostUnreachableError(message, { cause: error });
    }
    if (response.ok) return response;
    await response.body?.cancel();
    throw new LocalControlPlaneError(`${url} answered ${response.status} ${response.statusText}`.trimEnd() + '.');
  }
}

/** A host could not be reached at all, as opposed to one that responded with an error. */
export class HostUnreachableError extends LocalControlPlaneError {
  override readonly name = 'HostUnreachableError';
}

/**
 * A download's sha256 is not the published one: the download was changed, so no other source is tried unless
 * the user asks for it.
 */
export class ChecksumMismatchError extends LocalControlPlaneError {
  override readonly name = 'ChecksumMismatchError';
}

/** fetch says only "fetch failed"; the reason is in its cause. */
function causeOf(error: unknown): string {
  return messageOf(isError(error) && error.cause !== undefined ? error.cause : error);
}

function readChecksum(checksum: Checksum, text: string): string | undefined {
  switch (checksum.kind) {
    case 'file':
      return text.trim().split(/\s+/)[0];
    case 'list': {
      const lines = text.split('\n').map((line) => line.trim().split(/\s+/));
      return lines.find(([, name]) => name?.replace(/^\*/, '') === checksum.entry)?.[0];
    }
    case 'release':
      return assetDigest(text, checksum);
  }
}

function assetDigest(text: string, checksum: Checksum & { kind: 'release' }): string | undefined {
  let release: { assets?: { name?: string; digest?: string | null }[] };
  try {
    release = JSON.parse(text) as typeof release;
  } catch (error) {
    throw new LocalControlPlaneError(`${checksum.url} did not answer with JSON.`, { cause: error });
  }
  const digest = release.assets?.find(({ name }) => name === checksum.asset)?.digest;
  return digest?.startsWith('sha256:') === true ? digest.slice('sha256:'.length) : undefined;
}

/**
 * Writes one member of a `.tar.gz` to a file, with the system's `tar`.
 *
 * @throws LocalControlPlaneError when tar is missing or fails, or the archive has no such member
 */
async function extractMember(archive: string, member: string, file: string): Promise<void> {
  const tar = spawn('tar', ['-xzOf', archive, member], { stdio: ['ignore', 'pipe', 'pipe'] });
  let stderr = '';
  tar.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<number | null>((resolve, reject) => {
    tar.on('error', reject);
    tar.on('close', resolve);
  });
  const [code] = await Promise.all([ended, pipeline(tar.stdout, createWriteStream(file, { flags: 'wx' }))]).catch(
    (error: unknown) => {
      throw new LocalControlPlaneError(`cannot unpack ${archive} with tar.`, { cause: error });
    },
  );
  if (code !== 0) throw new LocalControlPlaneError(`tar cannot unpack ${member} from ${archive}: ${stderr.trim()}`);
}
