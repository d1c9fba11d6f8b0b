import { randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { EnvHttpProxyAgent } from 'undici';
import type { Dispatcher } from 'undici';
import { codeOf, messageOf, undefinedIfMissing } from '../local/assets/errors';
import { dockerConfigFile, dockerCredentials } from './credentials';
import { ImageError, blobOf, mediaTypes, readAll, sha256, verified } from './oci';
import type { Blob, Descriptor } from './oci';
import { RegistryAuth } from './registry-auth';
import { registryUrl } from './reference';

/** Options of {@link Registry}. */
export interface RegistryOptions {
  /** Speak HTTP, without TLS. @default only to registries on this machine */
  readonly plainHttp?: boolean;
  /** The folder where downloaded layers are kept, by digest. */
  readonly cacheFolder: string;
  /** Finds the credentials and the proxy. @default that of this process */
  readonly env?: NodeJS.ProcessEnv;
}

interface RequestOptions {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'PUT';
  /** A path of the registry, or the URL of an upload. */
  readonly target: string | URL;
  /** What the request needs: `repository:team/app:pull,push`. */
  readonly scopes: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: () => Readable | string;
}

/** What became of a blob that was pushed. */
type PushResult = 'present' | 'mounted' | 'uploaded';

const manifestTypes = [mediaTypes.index, mediaTypes.manifest, mediaTypes.dockerIndex, mediaTypes.dockerManifest].join(
  ', ',
);
const redirects: readonly number[] = [301, 302, 303, 307, 308];
const MAX_REDIRECTS = 5;

/**
 * A registry, by the protocol of the OCI distribution specification. It is read anonymously, or with the credentials that
 * `docker login` stored.
 */
export class Registry {
  private readonly url: URL;
  private readonly auth: RegistryAuth;
  private readonly agent: EnvHttpProxyAgent;

  /** @param host the registry as references name it: `docker.io` */
  constructor(
    readonly host: string,
    private readonly options: RegistryOptions,
  ) {
    this.url = registryUrl(host, options.plainHttp ?? false);
    this.agent = proxyAgent(options.env);
    this.auth = new RegistryAuth(this.url, {
      host,
      send: (url, request) => this.exchange(url, request),
      configFile: dockerConfigFile(options.env),
      credentials: () => dockerCredentials(host, options.env),
    });
  }

  /** Closes its connections. */
  async close(): Promise<void> {
    await this.agent.close();
  }

  /**
   * Reads a manifest or an index.
   *
   * @param reference a tag or a digest
   * @throws ImageError when there is none, or its content is not what the digest says
   */
  async manifest(repository: string, reference: string): Promise<Blob> {
    const response = await this.send({
      method: 'GET',
      target: `/v2/${repository}/manifests/${reference}`,
      scopes: [`repository:${repository}:pull`],
      headers: { accept: manifestTypes },
    });
    const content = await readAll(response.body);
    const name = this.nameOf(repository, reference);
    if (response.statusCode === 404) throw new ImageError(notFound(name, reference));
    if (response.statusCode !== 200) throw this.unexpected(response, content, `reading ${name}`);
    const digest = sha256(content);
    if (reference.startsWith('sha256:') && digest !== reference) {
      throw new ImageError(`the registry ${this.host} answers with ${digest} when asked for ${name}: do not use it`);
    }
    const mediaType = String(response.headers['content-type']).replace(/;.*$/, '');
    return blobOf(mediaType, content);
  }

  /** A blob of a repository, which is downloaded when it is read first. */
  blob(repository: string, descriptor: Descriptor): Blob {
    const open = async function* (this: Registry): AsyncGenerator<Uint8Array> {
      const file = await this.download(repository, descriptor);
      yield* createReadStream(file, { highWaterMark: 256 * 1024 }) as AsyncIterable<Uint8Array>;
    };
    return { descriptor, origin: { host: this.host, repository }, open: open.bind(this) };
  }

  /**
   * Stores a blob in a repository, unless it is there. A blob of another repository of this registry is not sent again.
   *
   * @throws ImageError when the registry refuses it, or stored something else
   */
  async pushBlob(repository: string, blob: Blob): Promise<PushResult> {
    const { digest, size } = blob.descriptor;
    const from = blob.origin?.host === this.host ? blob.origin.repository : undefined;
    const pull = from === undefined ? [] : [`repository:${from}:pull`];
    const scopes = [`repository:${repository}:pull,push`, ...pull];
    const doing = `pushing ${digest} to ${this.host}/${repository}`;
    const found = await this.send({ method: 'HEAD', target: `/v2/${repository}/blobs/${digest}`, scopes });
    await found.body.dump();
    if (found.statusCode === 200) return 'present';
    const mount = from === undefined ? '' : `?mount=${digest}&from=${encodeURIComponent(from)}`;
    const target = `/v2/${repository}/blobs/uploads/${mount}`;
    const started = await this.expect({ method: 'POST', target, scopes }, [201, 202], doing);
    if (started.statusCode === 201) return 'mounted';
    const sent = await this.expect(
      {
        method: 'PATCH',
        target: this.location(started, doing),
        scopes,
        headers: { 'content-type': 'application/octet-stream', 'content-length': String(size) },
        body: () => Readable.from(blob.open(), { objectMode: false }),
      },
      [202],
      doing,
    );
    const end = this.location(sent, doing);
    end.searchParams.set('digest', digest);
    const headers = { 'content-length': '0' };
    const stored = await this.expect({ method: 'PUT', target: end, scopes, headers }, [201], doing);
    this.requireDigest(stored, digest, doing);
    return 'uploaded';
  }

  /**
   * Stores a manifest or an index, whose blobs and manifests must be there.
   *
   * @param reference a tag, or its digest
   */
  async pushManifest(repository: string, reference: string, manifest: Blob): Promise<void> {
    const content = await readAll(manifest.open());
    const doing = `pushing ${this.nameOf(repository, reference)}`;
    const stored = await this.expect(
      {
        method: 'PUT',
        target: `/v2/${repository}/manifests/${reference}`,
        scopes: [`repository:${repository}:pull,push`],
        headers: { 'content-type': manifest.descriptor.mediaType },
        body: () => content.toString(),
      },
      [201],
      doing,
    );
    this.requireDigest(stored, manifest.descriptor.digest, doing);
  }

  /** Downloads a blob into the cache. @returns its file */
  private async download(repository: string, descriptor: Descriptor): Promise<string> {
    const { digest, size } = descriptor;
    const file = path.join(this.options.cacheFolder, digest.replace(':', '-'));
    if ((await stat(file).catch(undefinedIfMissing))?.size === size) return file;
    const what = `${this.host}/${repository}`;
    const target = `/v2/${repository}/blobs/${digest}`;
    const scopes = [`repository:${repository}:pull`];
    const response = await this.expect({ method: 'GET', target, scopes }, [200], `reading ${digest} of ${what}`, true);
    const temporary = `${file}.${randomUUID()}.tmp`;
    try {
      await mkdir(path.dirname(file), { recursive: true });
      await pipeline(verified(descriptor, response.body, what), createWriteStream(temporary));
      await rename(temporary, file);
    } finally {
      await rm(temporary, { force: true });
    }
    return file;
  }

  /** Sends a request, and reads the body of the response unless `keepBody`. @throws ImageError with another status */
  private async expect(
    request: RequestOptions,
    statuses: readonly number[],
    doing: string,
    keepBody = false,
  ): Promise<Dispatcher.ResponseData> {
    const response = await this.send(request);
    if (!statuses.includes(response.statusCode)) throw this.unexpected(response, await readAll(response.body), doing);
    if (!keepBody) await response.body.dump();
    return response;
  }

  /** Sends a request with authorization; if that is refused, once more with a new one. */
  private async send(request: RequestOptions): Promise<Dispatcher.ResponseData> {
    const { scopes } = request;
    const response = await this.follow(request, this.auth.known(scopes));
    if (response.statusCode !== 401) return response;
    await response.body.dump();
    const authorization = await this.auth.authorize(response.headers['www-authenticate'], scopes);
    const again = await this.follow(request, authorization);
    if (again.statusCode !== 401) return again;
    await again.body.dump();
    throw await this.auth.refused();
  }

  /** Follows redirects, as registries send them to where they store blobs. Only the registry itself gets credentials. */
  private async follow(request: RequestOptions, authorization: string | undefined): Promise<Dispatcher.ResponseData> {
    let url = new URL(request.target, this.url);
    for (let count = 0; ; count += 1) {
      const isOwn = url.origin === this.url.origin;
      const headers = { ...request.headers, ...(isOwn && authorization !== undefined ? { authorization } : {}) };
      const { method, body } = request;
      const response = await this.exchange(url, { method, headers, body: body?.() ?? null });
      const { location } = response.headers;
      if (!redirects.includes(response.statusCode) || method === 'PATCH' || typeof location !== 'string')
        return response;
      await response.body.dump();
      if (count >= MAX_REDIRECTS) throw new ImageError(`the registry ${this.host} redirects without end`);
      const next = new URL(location, url);
      if (url.protocol === 'https:' && next.protocol !== 'https:') {
        throw new ImageError(`the registry ${this.host} redirects to ${next.host} without TLS, which is refused`);
      }
      url = next;
    }
  }

  private async exchange(
    url: URL,
    { method, headers, body }: Pick<Dispatcher.RequestOptions, 'method' | 'headers' | 'body'>,
  ): Promise<Dispatcher.ResponseData> {
    try {
      return await this.agent.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method,
        headers: headers ?? null,
        body: body ?? null,
      });
    } catch (error) {
      throw error instanceof ImageError ? error : this.unreachable(url, error);
    }
  }

  private unreachable(url: URL, cause: unknown): ImageError {
    const code = codeOf(cause) ?? '';
    const advice = /^(ERR_SSL_|EPROTO)/.test(code)
      ? 'It may speak HTTP without TLS: give --plain-http if it does.'
      : /CERT|ISSUER|SELF_SIGNED|ALTNAME/.test(code)
        ? 'If it has a certificate of your own authority, name its file in NODE_EXTRA_CA_CERTS.'
        : 'Check its name, the network, and HTTPS_PROXY if you need a proxy.';
    const what =
      url.host === this.url.host ? `the registry ${this.host}` : `${url.host}, to which ${this.host} refers,`;
    return new ImageError(`${what} cannot be reached: ${messageOf(cause)}. ${advice}`, { cause });
  }

  private unexpected({ statusCode }: Dispatcher.ResponseData, content: Buffer, doing: string): ImageError {
    const { errors = [] } = parseErrors(content.toString());
    const words = errors.map(({ code = '', message = '' }) => `${code}: ${message}`).join('; ');
    const said = this.auth.redact(words) || 'no reason';
    const advice =
      statusCode === 403
        ? ` ${this.auth.describe()} may not do that: ask for the permission, or log in as somebody else.`
        : statusCode === 404
          ? ' Check the name of the repository: some registries want it to be made first.'
          : statusCode === 429
            ? ' It limits how often it is asked: wait, or log in.'
            : '';
    return new ImageError(`the registry ${this.host} answered ${doing} with ${statusCode} (${said}).${advice}`);
  }

  private location({ headers }: Dispatcher.ResponseData, doing: string): URL {
    const { location } = headers;
    if (typeof location === 'string') return new URL(location, this.url);
    throw new ImageError(`the registry ${this.host} named no place for the upload (${doing}): it breaks the protocol`);
  }

  private requireDigest({ headers }: Dispatcher.ResponseData, digest: string, doing: string): void {
    const stored = headers['docker-content-digest'];
    if (stored === undefined || stored === digest) return;
    throw new ImageError(`${doing}: the registry ${this.host} stored ${String(stored)} instead. Do not use it.`);
  }

  private nameOf(repository: string, reference: string): string {
    return `${this.host}/${repository}${reference.startsWith('sha256:') ? '@' : ':'}${reference}`;
  }
}

/** Requests to this machine use no proxy, as in Go programs; others use the one that the environment names. */
function proxyAgent(env: NodeJS.ProcessEnv = process.env): EnvHttpProxyAgent {
  const named = (name: string): string | undefined => env[name.toLowerCase()] ?? env[name];
  const [httpProxy, httpsProxy] = [named('HTTP_PROXY'), named('HTTPS_PROXY')];
  return new EnvHttpProxyAgent({
    ...(httpProxy === undefined ? {} : { httpProxy }),
    ...(httpsProxy === undefined ? {} : { httpsProxy }),
    noProxy: [named('NO_PROXY') ?? '', 'localhost', '127.0.0.1', '::1'].filter((host) => host !== '').join(','),
  });
}

function notFound(name: string, reference: string): string {
  return reference.startsWith('sha256:')
    ? `the registry has no ${name} (any more). If kindred.lock.json names this digest, take the tag's of today with ` +
        '--update-base; a registry may delete what no tag names.'
    : `the registry has no ${name}. Check the name and the tag.`;
}

function parseErrors(text: string): {
  readonly errors?: readonly { readonly code?: string; readonly message?: string }[];
} {
  try {
    return JSON.parse(text) as ReturnType<typeof parseErrors>;
  } catch {
    // A proxy's page of HTML says less than the status.
    return {};
  }
}
