import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import path from 'node:path';
import { PartCache, cacheFolder, freeSpace, requireSpace, type FreeSpace } from './cache';
import { ChecksumMismatchError, Downloader, HostUnreachableError, type DownloadTimeouts } from './download';
import { LocalControlPlaneError, codeOf, messageOf, undefinedIfMissing } from './errors';
import { GoMissingError, buildPart } from './go-build';
import { withLock } from './lock';
import { hostPlatform, officialHosts, parts, type DownloadHosts, type Part, type PartName } from './parts';
import { duration, progressToStderr, size, type Progress } from './progress';

/** The sources of parts, and how to report progress. */
export interface ObtainOptions {
  /**
   * A directory that is searched first; a part that is not in it comes from the other sources.
   * @default $KUBEBUILDER_ASSETS
   */
  readonly assets?: string;
  /** The cache directory. @default $KINDRED_CACHE, $XDG_CACHE_HOME/kindred or ~/.cache/kindred */
  readonly cache?: string;
  /** Whether to try the official downloads. @default true unless $KINDRED_DOWNLOADS is `off` */
  readonly downloads?: boolean;
  /** Where releases are published. @default the official hosts */
  readonly hosts?: DownloadHosts;
  /** Timeouts for these hosts. */
  readonly timeouts?: DownloadTimeouts;
  /** Hashes every cached file even when its size and time are unchanged. @default false */
  readonly thorough?: boolean;
  /** @default to stderr */
  readonly onProgress?: Progress;
  /** The environment variables of the defaults and the Go toolchain. @default process.env */
  readonly env?: NodeJS.ProcessEnv;
  /** How free disk space is measured. @default statfs */
  readonly freeSpace?: FreeSpace;
  readonly signal?: AbortSignal;
}

/**
 * What to run: `api` is etcd and the API server; `full` adds controllers, scheduler and a fake node's
 * kubelet.
 */
export type Components = 'api' | 'full';

/** Which parts to get. */
export interface PrepareOptions extends ObtainOptions {
  /** @default 'full' */
  readonly components?: Components;
  /** How many nodes run containers: see `ControlPlaneOptions.nodes`. @default 0 */
  readonly nodes?: number;
  /** Get kubectl too. @default false */
  readonly kubectl?: boolean;
}

/** The path of each requested part. */
export type PartPaths = Readonly<Partial<Record<PartName, string>>>;

/**
 * Gets every part that a control plane needs, so that a later start takes seconds; parts that exist are only
 * checked. For scripts and CI. One part after the other: a Go build uses all cores by itself.
 *
 * @returns the path of each part
 * @throws LocalControlPlaneError when a part cannot be obtained
 */
export async function prepare(options: PrepareOptions = {}): Promise<PartPaths> {
  const names = [...api];
  if ((options.components ?? 'full') === 'full')
    names.push(...controllers, ...((options.nodes ?? 0) > 0 ? realNode : simulatedNode));
  if (options.kubectl === true) names.push('kubectl');
  const source = new PartSource(options);
  const paths: Partial<Record<PartName, string>> = {};
  try {
    for (const name of names) paths[name] = await source.get(name);
    return paths;
  } finally {
    await source.close();
  }
}

// Short builds first, so that there are results in the first minute.
const api: readonly PartName[] = ['etcd', 'kube-apiserver'];
const controllers: readonly PartName[] = ['kube-controller-manager', 'kube-scheduler'];
const simulatedNode: readonly PartName[] = ['kwok', 'kwok-stages'];
const realNode: readonly PartName[] = ['pod', 'kube-proxy', 'kubelet'];

/** Gets parts from the first source that has them: directory, cache, download, build. */
export class PartSource {
  readonly #options: ObtainOptions;
  readonly #env: NodeJS.ProcessEnv;
  readonly #onProgress: Progress;
  readonly #cache: PartCache;
  readonly #downloader: Downloader;

  constructor(options: ObtainOptions = {}) {
    this.#options = options;
    this.#env = options.env ?? process.env;
    this.#onProgress = options.onProgress ?? progressToStderr;
    this.#cache = new PartCache(options.cache ?? cacheFolder(this.#env));
    this.#downloader = new Downloader(options.timeouts);
  }

  /**
   * The path of a part.
   *
   * @throws ChecksumMismatchError when a download does not have its published checksum; then nothing is built
   * in its place
   * @throws LocalControlPlaneError when no source has it, with what was tried and what to do
   */
  async get(name: PartName): Promise<string> {
    const part = parts[name];
    return (await this.#fromFolder(part)) ?? (await this.#fromCache(part)) ?? (await this.#make(part));
  }

  /** Closes connections to download hosts. */
  async close(): Promise<void> {
    await this.#downloader.close();
  }

  async #fromFolder(part: Part): Promise<string | undefined> {
    const [folder, origin] =
      this.#options.assets === undefined
        ? [this.#env['KUBEBUILDER_ASSETS'], 'KUBEBUILDER_ASSETS']
        : [this.#options.assets, 'the assets option'];
    if (folder === undefined || folder === '') return undefined;
    const found = await stat(folder).catch(undefinedIfMissing);
    if (found?.isDirectory() !== true) {
      throw new LocalControlPlaneError(`${origin} names ${folder}, which is no folder. Correct it or leave it out.`);
    }
    const file = path.resolve(folder, part.fileName);
    if ((await stat(file).catch(undefinedIfMissing)) === undefined) return undefined;
    if (part.executable) {
      await access(file, constants.X_OK).catch((cause: unknown) => {
        throw new LocalControlPlaneError(`${file} (from ${origin}) may not be executed. Run: chmod +x ${file}`, {
          cause,
        });
      });
    }
    this.#onProgress(`${part.name}: using ${file} (from ${origin}), whatever its version`);
    return file;
  }

  async #fromCache(part: Part): Promise<string | undefined> {
    const entry = await this.#cache.check(part, this.#options.thorough);
    return entry.state === 'valid' ? entry.file : undefined;
  }

  /** Downloads or builds a part, one process at a time. */
  async #make(part: Part): Promise<string> {
    const lock = { purpose: label(part), onProgress: this.#onProgress, signal: this.#options.signal };
    return withLock(this.#cache.lockOf(part), lock, async () => {
      // The previous owner of the lock may have stored the part.
      const entry = await this.#cache.check(part, this.#options.thorough);
      if (entry.state === 'valid') return entry.file;
      if (entry.state === 'broken') {
        this.#onProgress(`${label(part)}: the cached ${this.#cache.fileOf(part)} is not used: ${entry.reason}`);
      }
      await this.#cache.removeDrafts(part);
      const free = this.#options.freeSpace ?? freeSpace;
      await requireSpace(this.#cache.folder, neededSpace, label(part), free);
      const tried: string[] = [];
      return (await this.#download(part, tried)) ?? (await this.#build(part, tried));
    });
  }

  async #download(part: Part, tried: string[]): Promise<string | undefined> {
    if (!(this.#options.downloads ?? this.#env['KINDRED_DOWNLOADS'] !== 'off')) {
      tried.push('download: switched off');
      return undefined;
    }
    const download = part.download(hostPlatform(), this.#options.hosts ?? officialHosts);
    if (download === undefined) {
      tried.push('download: none is published for this platform');
      return undefined;
    }
    const started = Date.now();
    const unreachable = this.#downloader.knownUnreachable(download);
    if (unreachable !== undefined) {
      tried.push(`download: ${unreachable}`);
      return undefined;
    }
    this.#onProgress(`${label(part)}: downloading ${download.url}`);
    try {
      const file = await this.#cache.store(part, download.url, (to) =>
        this.#downloader.fetchTo(download, to, this.#options.signal),
      );
      const took = duration(Date.now() - started);
      this.#onProgress(`${label(part)}: downloaded ${size((await stat(file)).size)} in ${took}, checksum verified`);
      return file;
    } catch (error) {
      if (!canTryNextSource(error, this.#options.signal)) throw error;
      tried.push(`download: ${messageOf(error)}`);
      const how = error instanceof HostUnreachableError ? '' : 'download failed: ';
      this.#onProgress(`${label(part)}: ${how}${messageOf(error)}`);
      return undefined;
    }
  }

  async #build(part: Part, tried: string[]): Promise<string> {
    const started = Date.now();
    this.#onProgress(`${label(part)}: building with Go; the first time this takes minutes`);
    const context = {
      platform: hostPlatform(),
      onProgress: this.#onProgress,
      env: this.#env,
      signal: this.#options.signal,
    };
    try {
      const file = await this.#cache.store(part, `go build ${part.version}`, (to) => buildPart(part, to, context));
      this.#onProgress(`${label(part)}: built in ${duration(Date.now() - started)}`);
      return file;
    } catch (error) {
      if (this.#options.signal?.aborted === true) throw error;
      tried.push(`build: ${messageOf(error)}`);
      throw noSourceError(part, tried, this.#cache.folder, error);
    }
  }
}

/** The space that a part and its download or link step need in the cache, in bytes. */
const neededSpace = 400_000_000;

/**
 * A wrong checksum, a full disk or an abort ends the search; after any other error of a download, a build is
 * tried.
 */
function canTryNextSource(error: unknown, signal: AbortSignal | undefined): boolean {
  if (error instanceof ChecksumMismatchError) return false;
  return signal?.aborted !== true && codeOf(error) !== 'ENOSPC' && codeOf(error) !== 'EDQUOT';
}

function noSourceError(part: Part, tried: readonly string[], cache: string, cause: unknown): LocalControlPlaneError {
  const { os, arch } = hostPlatform();
  const goHint =
    cause instanceof GoMissingError ? 'install Go (1.26 or newer, https://go.dev/dl)' : 'mend what the build says';
  return new LocalControlPlaneError(
    [
      `cannot get ${label(part)} for ${os}/${arch}. Tried:`,
      `  - assets folder: no ${part.fileName} in it, or no folder given`,
      `  - cache: nothing usable in ${cache}`,
      ...tried.map((line) => `  - ${line.replaceAll('\n', '\n    ')}`),
      `What to do: ${goHint}; or connect to the internet; or put ${part.fileName} into a folder and name that folder ` +
        `in KUBEBUILDER_ASSETS; or copy the cache folder of a machine that has it.`,
    ].join('\n'),
    { cause },
  );
}

function label(part: Part): string {
  return `${part.name} ${part.version}`;
}
