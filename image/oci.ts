import { createHash } from 'node:crypto';
import { z } from 'zod';

/**
 * An image cannot be read, built or pushed. The message says what is wrong (the registry, the credentials, a digest, the
 * platform or a file) and what to do. It contains no secret.
 */
export class ImageError extends Error {
  override readonly name = 'ImageError';

  constructor(message: string, options?: ErrorOptions) {
    // Parts of it come from registries and documents, and it goes to a terminal.
    super(message.replaceAll(/\p{Cc}+/gu, ' '), options);
  }
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

/**
 * The media type of a manifest or an index: what the registry says, otherwise what the document says, or looks like. Registries that serve
 * files say nothing.
 */
export function mediaTypeOf(content: Uint8Array, header: string | readonly string[] | undefined): string {
  const known: readonly string[] = [
    mediaTypes.index,
    mediaTypes.manifest,
    mediaTypes.dockerIndex,
    mediaTypes.dockerManifest,
  ];
  const said = typeof header === 'string' ? header.replace(/;.*$/s, '').trim() : '';
  if (known.includes(said)) return said;
  try {
    const { mediaType, manifests, layers } = JSON.parse(Buffer.from(content).toString()) as Readonly<
      Record<string, unknown>
    >;
    if (typeof mediaType === 'string' && known.includes(mediaType)) return mediaType;
    if (Array.isArray(manifests)) return mediaTypes.index;
    if (Array.isArray(layers)) return mediaTypes.manifest;
  } catch {
    // No document has no media type either.
  }
  return /^[\w.+/-]{1,100}$/.test(said) ? said : 'unknown';
}

/** The OCI name of a layer's media type. */
export function ociLayerType(mediaType: string): string {
  return ociLayerTypes[mediaType] ?? mediaType;
}

/** `linux/amd64`, or `linux/arm64/v8`. */
export interface Platform {
  readonly architecture: string;
  readonly os: string;
  readonly variant?: string | undefined;
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
  readonly platform?: Platform | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

export interface Manifest {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

export interface Index {
  readonly manifests: readonly Descriptor[];
}

/** What the config of a base says. The images on it need no more of it. */
export interface ImageConfig extends Platform {
  readonly config?:
    | {
        readonly Env?: readonly string[] | undefined;
        readonly Entrypoint?: readonly string[] | undefined;
        readonly Labels?: Readonly<Record<string, string>> | undefined;
      }
    | undefined;
  readonly rootfs: { readonly diff_ids: readonly string[] };
  /** How the layers were made, for people. */
  readonly history?: readonly object[] | undefined;
}

export function isDigest(text: string): boolean {
  return /^sha256:[0-9a-f]{64}$/.test(text);
}

// What others wrote is checked before it is used: a digest becomes a path and a part of URLs. Programs in Go write null for what is empty.

const optional = <T>(schema: z.ZodType<T>) => schema.nullish().transform((value) => value ?? undefined);

const texts = z
  .record(z.string(), optional(z.string()))
  .transform((given) =>
    Object.fromEntries(Object.entries(given).flatMap(([key, text]) => (text === undefined ? [] : [[key, text]]))),
  );
const digest = z.string().refine(isDigest, 'it is not sha256: and 64 hexadecimal digits');
const platform = z.object({ architecture: z.string(), os: z.string(), variant: optional(z.string()) });
const descriptor = z.object({
  mediaType: z.string(),
  digest,
  /** Bytes. */
  size: z.int().min(0),
  platform: optional(platform),
  annotations: optional(texts),
});

export const manifestSchema: z.ZodType<Manifest> = z.object({ config: descriptor, layers: z.array(descriptor) });

export const indexSchema: z.ZodType<Index> = z.object({ manifests: z.array(descriptor) });

export const imageConfigSchema: z.ZodType<ImageConfig> = z.object({
  ...platform.shape,
  config: optional(
    z.object({
      Env: optional(z.array(z.string())),
      Entrypoint: optional(z.array(z.string())),
      Labels: optional(texts),
    }),
  ),
  rootfs: z.object({ diff_ids: z.array(digest) }),
  history: optional(z.array(z.looseObject({}))),
});

/**
 * Reads a document that somebody else wrote.
 *
 * @param name where it is from, for messages
 * @throws ImageError when it is not such a document
 */
export async function readDocument<T>(schema: z.ZodType<T>, blob: Blob, name: string): Promise<T> {
  const content = await readAll(blob.open(), MAX_DOCUMENT_BYTES);
  let value: unknown;
  try {
    value = JSON.parse(content.toString());
  } catch (cause) {
    throw new ImageError(`${name}: ${sha256(content)} is not JSON. Check that the name is that of an image.`, {
      cause,
    });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue?.path.join('.') ?? '';
  throw new ImageError(
    `${name}: ${sha256(content)} does not describe an image (${where === '' ? '' : `${where}: `}${issue?.message ?? ''}). ` +
      'Check that the name is that of an image, and not of something else that registries hold.',
  );
}

/** More than any manifest, index, config or error has. Registries allow manifests of 4 MiB. */
export const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;

/** Content that is known by its digest. */
export interface Blob {
  readonly descriptor: Descriptor;
  /** The repository of a registry that has it already. @default none */
  readonly origin?: { readonly host: string; readonly repository: string };
  /** Makes the content available on this machine. @throws ImageError when it cannot be had */
  prepare?(): Promise<void>;
  /** Reads the content. @throws ImageError when it is not there, or is not what the digest says */
  open(): AsyncIterable<Uint8Array>;
}

export function sha256(content: string | Uint8Array): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
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

/** @throws ImageError when there is more than `maxBytes` */
export async function readAll(content: AsyncIterable<Uint8Array>, maxBytes = Infinity): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of content) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new ImageError(`more than ${maxBytes} bytes came where a short document is expected`);
    chunks.push(chunk);
  }
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
    if (bytes > size) break;
    yield chunk;
  }
  const found = `sha256:${hash.digest('hex')}`;
  if (found === digest && bytes === size) return;
  throw new ImageError(
    `${from}: the content of ${digest} is not what its digest says: it is ${bytes > size ? 'longer' : found} (${bytes} of ${size} bytes). ` +
      'It is damaged or was changed on its way: get it again from where it came from.',
  );
}
