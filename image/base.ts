import { createReadStream, existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { messageOf } from '../local/assets/errors';
import {
  ImageError,
  MAX_DOCUMENT_BYTES,
  blobOf,
  formatPlatform,
  imageConfigSchema,
  indexSchema,
  manifestSchema,
  matchesPlatform,
  mediaTypes,
  ociLayerType,
  readAll,
  readDocument,
  verified,
} from './oci';
import type { Blob, Descriptor, ImageConfig, Index, Platform } from './oci';
import { formatReference } from './reference';
import type { ImageReference } from './reference';
import type { Registry } from './registry';

/** An image to build on, for one platform. */
export interface BaseImage {
  readonly platform: Platform;
  readonly config: ImageConfig;
  readonly layers: readonly Blob[];
}

/** An image to build on. */
export interface Base {
  /** Its name for labels and messages. */
  readonly name: string;
  /** The digest of its manifest or index. @default none: it is made from this machine */
  readonly digest?: string;
  /** One for each platform. */
  readonly images: readonly BaseImage[];
}

/** Where manifests and layers are read. */
interface Source {
  /** For messages. */
  readonly name: string;
  manifest(descriptor: Descriptor): Promise<Blob>;
  blob(descriptor: Descriptor): Blob;
}

/** What is built if nobody says so, as far as the base has it. */
const defaultPlatforms: readonly Platform[] = [
  { os: 'linux', architecture: 'amd64' },
  { os: 'linux', architecture: 'arm64' },
];

/**
 * Reads a base image from a registry. Its layers stay there until somebody reads them.
 *
 * @param reference with a tag or a digest
 * @param platforms @default {@link defaultPlatforms}, as far as the base has them
 * @throws ImageError when the registry does not have it, or it lacks a platform
 */
export async function registryBase(
  registry: Registry,
  reference: ImageReference,
  platforms: readonly Platform[] | undefined,
): Promise<Base> {
  const { repository, tag, digest } = reference;
  const root = await registry.manifest(repository, digest ?? tag ?? 'latest');
  const source: Source = {
    name: formatReference({ ...reference, digest: root.descriptor.digest }),
    manifest: (descriptor) => registry.manifest(repository, descriptor.digest),
    blob: (descriptor) => registry.blob(repository, descriptor),
  };
  const name = formatReference({ ...reference, digest: undefined });
  return { name, digest: root.descriptor.digest, images: await imagesOf(source, root, platforms) };
}

/**
 * Reads a base image from an OCI layout, the folder that `skopeo copy docker://... oci:DIR` writes.
 *
 * @param text the folder; with `:TAG` behind it, the image of this name in it
 * @param platforms @default {@link defaultPlatforms}, as far as the base has them
 * @throws ImageError when it is no layout, a file is missing or damaged, or it lacks a platform
 */
export async function layoutBase(text: string, platforms: readonly Platform[] | undefined): Promise<Base> {
  const [, before = text, tag] = existsSync(text) ? [text, text] : (/^(.*):([^:/]+)$/.exec(text) ?? []);
  const folder = path.resolve(before);
  const { index, content } = await readIndex(folder);
  const source: Source = {
    name: `oci:${text}`,
    manifest: async (descriptor) =>
      blobOf(descriptor.mediaType, await readAll(layoutBlob(folder, descriptor).open(), MAX_DOCUMENT_BYTES)),
    blob: (descriptor) => layoutBlob(folder, descriptor),
  };
  const named = index.manifests.filter(({ annotations }) => tag === undefined || isNamed(annotations, tag));
  const [only] = named;
  if (only === undefined) {
    throw new ImageError(`oci:${text}: there is no such image in ${folder}${namesIn(index)}`);
  }
  const platformNames = named.flatMap(({ platform }) => (platform === undefined ? [] : formatPlatform(platform)));
  const isIndex = named.length > 1 && new Set(platformNames).size === named.length;
  if (named.length > 1 && !isIndex) {
    throw new ImageError(`oci:${text}: ${folder} has several images: name one, as oci:DIR:TAG${namesIn(index)}`);
  }
  // The folder's index may have images of other names.
  const own = named.length === index.manifests.length ? content : indexOf(index, named);
  const root = isIndex ? own : await source.manifest(only);
  // The name of a folder is another one on each machine, and must not get into the image.
  return { name: '', digest: root.descriptor.digest, images: await imagesOf(source, root, platforms) };
}

function indexOf(index: Index, manifests: readonly Descriptor[]): Blob {
  return blobOf(mediaTypes.index, Buffer.from(JSON.stringify({ ...index, manifests })));
}

const REF_NAME = 'org.opencontainers.image.ref.name';

function isNamed(annotations: Descriptor['annotations'], tag: string): boolean {
  const name = annotations?.[REF_NAME];
  return name === tag || name?.endsWith(`:${tag}`) === true;
}

function namesIn({ manifests }: Index): string {
  const names = manifests.flatMap(({ annotations }) => annotations?.[REF_NAME] ?? []);
  return names.length === 0 ? '' : ` (it has ${[...new Set(names)].join(', ')})`;
}

async function readIndex(folder: string): Promise<{ readonly index: Index; readonly content: Blob }> {
  const file = path.join(folder, 'index.json');
  try {
    const content = blobOf(mediaTypes.index, await readFile(file));
    return { index: await readDocument(indexSchema, content, file), content };
  } catch (cause) {
    throw new ImageError(
      `${folder} is not an OCI layout: ${messageOf(cause)} Make one with: skopeo copy --all docker://IMAGE oci:DIR`,
      { cause },
    );
  }
}

function layoutBlob(folder: string, descriptor: Descriptor): Blob {
  const file = path.join(folder, 'blobs', ...descriptor.digest.split(':'));
  return {
    descriptor,
    async *open() {
      try {
        yield* verified(descriptor, createReadStream(file) as AsyncIterable<Uint8Array>, folder);
      } catch (cause) {
        if (cause instanceof ImageError) throw cause;
        throw new ImageError(`the OCI layout ${folder} is not complete: ${messageOf(cause)}`, { cause });
      }
    },
  };
}

const indexTypes: readonly string[] = [mediaTypes.index, mediaTypes.dockerIndex];
const manifestTypes: readonly string[] = [mediaTypes.manifest, mediaTypes.dockerManifest];

async function imagesOf(
  source: Source,
  root: Blob,
  platforms: readonly Platform[] | undefined,
): Promise<readonly BaseImage[]> {
  const { mediaType } = root.descriptor;
  if (manifestTypes.includes(mediaType)) return [await onlyImage(source, root, platforms)];
  if (!indexTypes.includes(mediaType)) {
    throw new ImageError(`${source.name} is not an image that can be built on: its media type is ${mediaType}`);
  }
  const { manifests } = await readDocument(indexSchema, root, source.name);
  const wanted = platforms ?? defaultPlatforms.filter((platform) => findIn(manifests, platform) !== undefined);
  if (wanted.length === 0) throw missing(source, defaultPlatforms, platformsOf(manifests));
  // Two of the platforms may be the same image, such as linux/arm64 and linux/arm64/v8.
  const read = new Map<string, Promise<BaseImage>>();
  const images = wanted.map(async (platform) => {
    const descriptor = findIn(manifests, platform);
    if (descriptor === undefined) throw missing(source, [platform], platformsOf(manifests));
    const known = read.get(descriptor.digest);
    const reading = known ?? source.manifest(descriptor).then((blob) => imageOf(source, blob, descriptor.platform));
    read.set(descriptor.digest, reading);
    const image = await reading;
    if (matchesPlatform(image.platform, platform)) return image;
    throw new ImageError(
      `the base ${source.name} names an image for ${formatPlatform(platform)}, which is for ${formatPlatform(image.platform)} by its ` +
        'own config: it was put together wrongly. Give another base.',
    );
  });
  return [...new Set(await Promise.all(images))];
}

async function onlyImage(
  source: Source,
  manifest: Blob,
  platforms: readonly Platform[] | undefined,
): Promise<BaseImage> {
  const image = await imageOf(source, manifest);
  const lacking = (platforms ?? []).filter((platform) => !matchesPlatform(image.platform, platform));
  if (lacking.length === 0) return image;
  throw missing(source, lacking, [image.platform]);
}

async function imageOf(source: Source, blob: Blob, named?: Platform): Promise<BaseImage> {
  const manifest = await readDocument(manifestSchema, blob, source.name);
  const config = await readDocument(imageConfigSchema, source.blob(manifest.config), source.name);
  const layers = manifest.layers.map((layer) => source.blob({ ...layer, mediaType: ociLayerType(layer.mediaType) }));
  if (layers.length !== config.rootfs.diff_ids.length) {
    throw new ImageError(
      `the base ${source.name} has ${layers.length} layers, and ${config.rootfs.diff_ids.length} by its config: give another base`,
    );
  }
  const { architecture, os } = config;
  // Some configs leave it out, and the index tells it.
  const variant = config.variant || named?.variant || undefined;
  return { platform: { architecture, os, ...(variant === undefined ? {} : { variant }) }, config, layers };
}

function findIn(manifests: readonly Descriptor[], wanted: Platform): Descriptor | undefined {
  return manifests.find(({ platform }) => platform !== undefined && matchesPlatform(platform, wanted));
}

/** Signatures and attestations stand in an index as images for `unknown/unknown`. */
function platformsOf(manifests: readonly Descriptor[]): readonly Platform[] {
  return manifests.flatMap(({ platform }) => (platform === undefined || platform.os === 'unknown' ? [] : [platform]));
}

function missing({ name }: Source, wanted: readonly Platform[], found: readonly Platform[]): ImageError {
  const list = (platforms: readonly Platform[]): string => platforms.map(formatPlatform).join(', ');
  return new ImageError(
    `the base ${name} has no image for the platform ${list(wanted)}: it has ${list(found) || 'none'}. ` +
      'Give another base, or some of these with --platform.',
  );
}
