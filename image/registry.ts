import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { codeOf, messageOf, undefinedIfMissing } from '../local/assets/errors';
import { discard, withRetries } from './http';
import type { HttpResponse } from './http';
import {
  ImageError,
  MAX_DOCUMENT_BYTES,
  blobOf,
  isDigest,
  mediaTypeOf,
  mediaTypes,
  readAll,
  sha256,
  verified,
} from './oci';
import type { Blob, Descriptor } from './oci';
import { writeAtomically } from './temporary-files';
import { RegistryTransport } from './transport';
import type { TransportOptions } from './transport';

/** Options of {@link Registry}. */
export interface RegistryOptions extends TransportOptions {
  /** The folder where downloaded blobs are kept, by digest. */
  readonly cacheFolder: string;
  /** Before a request is sent again, in milliseconds, where the registry names no time. @default 1000 */
  readonly retryDelayMs?: number;
}

/** What became of a blob that was pushed. */
type PushResult = 'present' | 'mounted' | 'uploaded';

const manifestTypes = [mediaTypes.index, mediaTypes.manifest, mediaTypes.dockerIndex, mediaTypes.dockerManifest].join(
  ', ',
);

/**
 * A registry, by the protocol of the OCI distribution specification 1.1. It is read anonymously, or with the credentials that
 * `docker login` stored.
 */
export class Registry {
  private readonly transport: RegistryTransport;

  /** @param host the registry as references name it: `docker.io` */
  constructor(
    readonly host: string,
    private readonly options: RegistryOptions,
  ) {
    this.transport = new RegistryTransport(host, options);
  }

  /** Closes its connections. */
  async close(): Promise<void> {
    await this.transport.close();
  }

  /**
   * Reads a manifest or an index.
   *
   * @param reference a tag or a digest
   * @throws ImageError when there is none, or its content is not what the digest says
   */
  async manifest(repository: string, reference: string): Promise<Blob> {
    const name = this.nameOf(repository, reference);
    const { content, response } = await this.withRetries(async () => {
      const received = await this.transport.send({
        method: 'GET',
        target: `/v2/${repository}/manifests/${reference}`,
        scopes: [`repository:${repository}:pull`],
        headers: { accept: manifestTypes },
      });
      if (received.status === 404) {
        await discard(received);
        throw new ImageError(notFound(name, reference));
      }
      if (received.status !== 200) throw await this.transport.unexpected(received, `reading ${name}`);
      return { content: await readAll(received.body, MAX_DOCUMENT_BYTES), response: received };
    });
    const digest = sha256(content);
    if (isDigest(reference) && digest !== reference) {
      throw new ImageError(`the registry ${this.host} answers with ${digest} when asked for ${name}: do not use it`);
    }
    return blobOf(mediaTypeOf(content, response.headers['content-type']), content);
  }

  private withRetries<T>(run: () => Promise<T>): Promise<T> {
    return withRetries(run, this.options.retryDelayMs);
  }

  /** A blob of a repository, which is downloaded when it is read first. */
  blob(repository: string, descriptor: Descriptor): Blob {
    let file: Promise<string> | undefined;
    const download = (): Promise<string> => (file ??= this.download(repository, descriptor));
    return {
      descriptor,
      origin: { host: this.host, repository },
      prepare: async () => void (await download()),
      async *open() {
        yield* createReadStream(await download(), { highWaterMark: 256 * 1024 }) as AsyncIterable<Uint8Array>;
      },
    };
  }

  /**
   * Stores a blob in a repository, unless it is there. A blob of another repository of this registry is not sent again.
   *
   * @throws ImageError when the registry refuses it, or stored something else
   */
  async pushBlob(repository: string, blob: Blob): Promise<PushResult> {
    const { digest } = blob.descriptor;
    const scopes = [`repository:${repository}:pull,push`];
    const found = await this.withRetries(() =>
      this.transport.send({ method: 'HEAD', target: `/v2/${repository}/blobs/${digest}`, scopes }),
    );
    await discard(found);
    if (found.status === 200) return 'present';
    if (await this.mount(repository, blob)) return 'mounted';
    // An upload that waits for a download may be given up by the registry.
    await blob.prepare?.();
    await this.withRetries(() => this.upload(repository, blob, scopes));
    return 'uploaded';
  }

  /** Asks for a blob of another repository of this registry. A registry need not do that: then it is uploaded. */
  private async mount(repository: string, { descriptor: { digest }, origin }: Blob): Promise<boolean> {
    if (origin?.host !== this.host || origin.repository === repository) return false;
    const from = origin.repository;
    try {
      const response = await this.transport.send({
        method: 'POST',
        target: `/v2/${repository}/blobs/uploads/?mount=${digest}&from=${encodeURIComponent(from)}`,
        scopes: [`repository:${repository}:pull,push`, `repository:${from}:pull`],
      });
      await discard(response);
      return response.status === 201;
    } catch (error) {
      // Whoever may not read the other repository with these credentials can upload the blob all the same.
      if (error instanceof ImageError) return false;
      throw error;
    }
  }

  private async upload(repository: string, blob: Blob, scopes: readonly string[]): Promise<void> {
    const { digest, size } = blob.descriptor;
    const doing = `pushing ${digest} to ${this.host}/${repository}`;
    const start = new URL(`/v2/${repository}/blobs/uploads/`, this.transport.url);
    const started = await this.transport.expect({ method: 'POST', target: start, scopes }, [202], doing);
    const to = this.transport.location(started, start, doing);
    const sent = await this.transport.expect(
      {
        method: 'PATCH',
        target: to,
        scopes,
        headers: { 'content-type': 'application/octet-stream', 'content-length': String(size) },
        body: () => Readable.from(blob.open(), { objectMode: false }),
      },
      // 202 by the specification; some answer with 201 or 204.
      [201, 202, 204],
      doing,
    );
    const end = this.transport.location(sent, to, doing);
    end.searchParams.set('digest', digest);
    const headers = { 'content-length': '0' };
    const stored = await this.transport.expect({ method: 'PUT', target: end, scopes, headers }, [201, 204], doing);
    this.requireDigest(stored, digest, doing);
  }

  /**
   * Stores a manifest or an index, whose blobs and manifests must be there.
   *
   * @param reference a tag, or its digest
   */
  async pushManifest(repository: string, reference: string, manifest: Blob): Promise<void> {
    const content = await readAll(manifest.open());
    const doing = `pushing ${this.nameOf(repository, reference)}`;
    await this.withRetries(async () => {
      const stored = await this.transport.expect(
        {
          method: 'PUT',
          target: `/v2/${repository}/manifests/${reference}`,
          scopes: [`repository:${repository}:pull,push`],
          headers: { 'content-type': manifest.descriptor.mediaType },
          body: () => content.toString(),
        },
        [200, 201, 202],
        doing,
      );
      this.requireDigest(stored, manifest.descriptor.digest, doing);
    });
  }

  /** Downloads a blob into the cache, unless it is there undamaged. @returns its file */
  private async download(repository: string, descriptor: Descriptor): Promise<string> {
    const { digest } = descriptor;
    const what = `${this.host}/${repository}`;
    const file = path.join(this.options.cacheFolder, digest.replace(':', '-'));
    try {
      if (await isUndamaged(file, descriptor)) return file;
      await mkdir(path.dirname(file), { recursive: true });
      await this.withRetries(async () => {
        const request = { method: 'GET', target: `/v2/${repository}/blobs/${digest}` } as const;
        const response = await this.transport.send({ ...request, scopes: [`repository:${repository}:pull`] });
        if (response.status !== 200) throw await this.transport.unexpected(response, `reading ${digest} of ${what}`);
        await writeAtomically(file, (temporary) =>
          pipeline(verified(descriptor, response.body, what), createWriteStream(temporary)),
        );
      });
      return file;
    } catch (cause) {
      // A full disk is told by whoever runs the command.
      if (cause instanceof ImageError || codeOf(cause) === 'ENOSPC') throw cause;
      throw new ImageError(`${digest} of ${what} cannot be kept in ${path.dirname(file)}: ${messageOf(cause)}`, {
        cause,
      });
    }
  }

  private requireDigest({ headers }: HttpResponse, digest: string, doing: string): void {
    const stored = headers['docker-content-digest'];
    if (stored === undefined || stored === digest) return;
    const shown = typeof stored === 'string' && isDigest(stored) ? stored : 'something else';
    throw new ImageError(`${doing}: the registry ${this.host} stored ${shown} instead. Do not use it.`);
  }

  private nameOf(repository: string, reference: string): string {
    return `${this.host}/${repository}${isDigest(reference) ? '@' : ':'}${reference}`;
  }
}

/** Whether a file of the cache has the content of its digest. A damaged one is removed. */
async function isUndamaged(file: string, descriptor: Descriptor): Promise<boolean> {
  try {
    for await (const _ of verified(descriptor, createReadStream(file) as AsyncIterable<Uint8Array>, file));
    return true;
  } catch (error) {
    // Missing is the usual case; another file error is told by the caller.
    if (error instanceof ImageError) await rm(file, { force: true });
    else undefinedIfMissing(error);
    return false;
  }
}

function notFound(name: string, reference: string): string {
  return isDigest(reference)
    ? `the registry has no ${name} (any more). If kindred.lock.json names this digest, take the tag's of today with ` +
        '--update-base; a registry may delete what no tag names.'
    : `the registry has no ${name}. Check the name and the tag.`;
}
