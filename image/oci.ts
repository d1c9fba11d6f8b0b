import { createHash } from 'node:crypto';

/**
 * An image cannot be read, built or pushed. The message says what is wrong (the registry, the credentials, a digest, the
 * platform or a file) and what to do. It contains no secret.
 */
export class ImageError extends Error {
  override readonly name = 'ImageError';
}

/** Media types of the OCI image specification, and of Docker's, which many base images have. */
export const mediaTypes = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar',
  dockerIndex: 'application/vnd.docker.distribution.manifest.list.v2+json',
  dockerManifest: 'application/vnd.docker.distribution.manifest.v2+json',
} as const;

/** Docker's names of layers, whose content is the same. */
const ociLayerTypes: Readonly<Record<string, string>> = {
  'application/vnd.docker.image.rootfs.diff.tar': mediaTypes.layer,
  'application/vnd.docker.image.rootfs.diff.tar.gzip': `${mediaTypes.layer}+gzip`,
  'application/vnd.docker.image.rootfs.diff.tar.zstd': `${mediaTypes.layer}+zstd`,
};

/** The OCI name of a layer's media type. */
export function ociLayerType(mediaType: string): string {
  return ociLayerTypes[mediaType] ?? mediaType;
}

/** `linux/amd64`, or `linux/arm64/v8`. */
export interface Platform {
  readonly architecture: string;
  readonly os: string;
  readonly variant?: string;
}

export function formatPlatform({ os, architecture, variant }: Platform): string {
  return variant === undefined ? `${os}/${architecture}` : `${os}/${architecture}/${variant}`;
}

/** @returns undefined when the text is no platform */
export function parsePlatform(text: string): Platform | undefined {
  const [, os, architecture, variant] = /^([a-z0-9]+)\/([a-z0-9]+)(?:\/([a-z0-9]+))?$/.exec(text) ?? [];
  if (os === undefined || architecture === undefined) return undefined;
  return { architecture, os, ...(variant === undefined ? {} : { variant }) };
}

/** Whether an image runs on a platform. A platform without a variant takes every variant. */
export function matchesPlatform(image: Platform, wanted: Platform): boolean {
  const isSame = image.os === wanted.os && image.architecture === wanted.architecture;
  return isSame && (wanted.variant === undefined || image.variant === undefined || image.variant === wanted.variant);
}

/** The name of an architecture that Node.js calls otherwise. */
export function goArchitecture(nodeArchitecture: string): string {
  return { x64: 'amd64', ia32: '386' }[nodeArchitecture] ?? nodeArchitecture;
}

export interface Descriptor {
  readonly mediaType: string;
  /** `sha256:` and 64 hex digits. */
  readonly digest: string;
  /** Bytes. */
  readonly size: number;
  readonly platform?: Platform;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface Manifest {
  readonly schemaVersion: 2;
  readonly mediaType?: string;
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface Index {
  readonly schemaVersion: 2;
  readonly mediaType?: string;
  readonly manifests: readonly Descriptor[];
}

/** What an image's config says about its container. */
interface ContainerConfig {
  readonly User?: string;
  readonly ExposedPorts?: Readonly<Record<string, object>>;
  readonly Env?: readonly string[];
  readonly Entrypoint?: readonly string[];
  readonly WorkingDir?: string;
  readonly Labels?: Readonly<Record<string, string>>;
}

export interface ImageConfig extends Platform {
  readonly created?: string;
  readonly config?: ContainerConfig;
  readonly rootfs: { readonly type: 'layers'; readonly diff_ids: readonly string[] };
  readonly history?: readonly HistoryEntry[];
}

/** How a layer was made, for people. */
interface HistoryEntry {
  readonly created?: string;
  readonly created_by?: string;
  readonly empty_layer?: boolean;
}

/** Content that is known by its digest. */
export interface Blob {
  readonly descriptor: Descriptor;
  /** The repository of a registry that has it already. @default none */
  readonly origin?: { readonly host: string; readonly repository: string };
  /** Reads the content. @throws ImageError when it is not there, or is not what the digest says */
  open(): AsyncIterable<Uint8Array>;
}

export function sha256(content: string | Uint8Array): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}

export function isDigest(text: string): boolean {
  return /^sha256:[0-9a-f]{64}$/.test(text);
}

/** A blob in memory. */
export function blobOf(mediaType: string, content: Uint8Array): Blob {
  return {
    descriptor: { mediaType, digest: sha256(content), size: content.byteLength },
    // eslint-disable-next-line @typescript-eslint/require-await -- an async generator is what makes an AsyncIterable
    async *open() {
      yield content;
    },
  };
}

/** A blob of JSON. The same value gives the same bytes. */
export function jsonBlob(mediaType: string, value: unknown): Blob {
  return blobOf(mediaType, Buffer.from(JSON.stringify(value)));
}

export async function readAll(content: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/**
 * Passes content on, and checks it at the end.
 *
 * @param from where the content comes from, for messages
 * @throws ImageError when its size or digest is another one
 */
export async function* verified(
  { digest, size }: Pick<Descriptor, 'digest' | 'size'>,
  content: AsyncIterable<Uint8Array>,
  from: string,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of content) {
    hash.update(chunk);
    bytes += chunk.byteLength;
    yield chunk;
  }
  const found = `sha256:${hash.digest('hex')}`;
  if (found === digest) return;
  throw new ImageError(
    `${from}: the content of ${digest} is not what its digest says: it is ${found} with ${bytes} of ${size} bytes. ` +
      'It is damaged or was changed on its way: get it again from where it came from.',
  );
}
