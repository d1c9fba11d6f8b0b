import { posix } from 'node:path';
import { pack } from 'tar-stream';
import type { Base, BaseImage } from './base';
import { blobOf, jsonBlob, mediaTypes, readAll } from './oci';
import type { Blob, ImageConfig, Platform } from './oci';

/** Something in a layer. Everything belongs to root, and has no time. */
export type LayerEntry =
  | { readonly type: 'file'; readonly path: string; readonly mode: number; readonly content: Uint8Array }
  | { readonly type: 'directory'; readonly path: string; readonly mode: number }
  | { readonly type: 'symlink'; readonly path: string; readonly target: string };

/**
 * A layer with these entries and the folders that hold them, sorted by path. Nothing but the entries determines its bytes:
 * it has no times and no names of users, and it is not compressed, because each version of zlib compresses differently.
 * So its digest is its diff ID too.
 *
 * @param entries absolute paths, each once
 */
export async function layerOf(entries: readonly LayerEntry[]): Promise<Blob> {
  const tar = pack();
  const given = new Set(entries.map((entry) => entry.path));
  const all = [...entries, ...parentFolders([...given]).filter((folder) => !given.has(folder.path))];
  for (const entry of all.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    const name = entry.path.replace(/^\/+/, '');
    const header = { name, mtime: new Date(0), uid: 0, gid: 0 };
    if (entry.type === 'file') tar.entry({ ...header, type: 'file', mode: entry.mode }, Buffer.from(entry.content));
    else if (entry.type === 'directory') tar.entry({ ...header, type: 'directory', mode: entry.mode });
    else tar.entry({ ...header, type: 'symlink', mode: 0o777, linkname: entry.target });
  }
  tar.finalize();
  return blobOf(mediaTypes.layer, await readAll(tar as AsyncIterable<Uint8Array>));
}

/**
 * The folders that hold these paths, as entries that everybody may read. Without them, Docker makes missing folders for root
 * alone.
 */
function parentFolders(paths: readonly string[]): readonly LayerEntry[] {
  const found = new Set<string>();
  for (const file of paths) {
    for (let folder = posix.dirname(file); folder !== '/'; folder = posix.dirname(folder)) found.add(folder);
  }
  return [...found].map((folder) => ({ type: 'directory', path: folder, mode: 0o755 }));
}

/** What an image adds to its base. */
export interface ImageContents {
  /** Layers for a platform, from the lowest to the highest. They are not compressed. */
  readonly layers: (platform: Platform) => readonly Blob[];
  /** The program, by its path in the image. */
  readonly program: string;
  readonly labels: Readonly<Record<string, string>>;
  /** When the image was made, in seconds since 1970. It is part of the digest. @default 0 */
  readonly createdSeconds?: number;
}

/** An image for one platform. */
export interface PlatformImage {
  readonly platform: Platform;
  readonly manifest: Blob;
  readonly config: Blob;
  readonly layers: readonly Blob[];
}

/** An image for one platform or several. */
export interface Image {
  /** The manifest of the only platform, or the index of all. Its digest is the image's. */
  readonly root: Blob;
  readonly images: readonly PlatformImage[];
}

/** The user that the operator's Deployment asks for, and that of distroless `nonroot` images. */
const NON_ROOT = '65532:65532';

const BASE_NAME = 'org.opencontainers.image.base.name';
const BASE_DIGEST = 'org.opencontainers.image.base.digest';

/**
 * Makes an image: a base, layers on it, and how the program starts. The same arguments give the same digest.
 */
export function buildImage(base: Base, contents: ImageContents): Image {
  const images = base.images.map((image) => platformImage(base, image, contents));
  const [only] = images;
  if (only !== undefined && images.length === 1) return { root: only.manifest, images };
  const manifests = images.map(({ platform, manifest }) => ({ ...manifest.descriptor, platform }));
  const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests };
  return { root: jsonBlob(mediaTypes.index, index), images };
}

function platformImage(base: Base, image: BaseImage, contents: ImageContents): PlatformImage {
  const added = contents.layers(image.platform);
  const config = jsonBlob(mediaTypes.config, imageConfig(base, image, contents, added));
  const layers = [...image.layers, ...added];
  const manifest = {
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    config: config.descriptor,
    layers: layers.map(({ descriptor: { mediaType, digest, size } }) => ({ mediaType, digest, size })),
    annotations: baseLabels(base),
  };
  return { platform: image.platform, manifest: jsonBlob(mediaTypes.manifest, manifest), config, layers };
}

/** Of the base's config only what holds for the new image too: Docker's own fields describe how it was built. */
function imageConfig(
  base: Base,
  { platform, config: from }: BaseImage,
  { program, labels, createdSeconds = 0 }: ImageContents,
  added: readonly Blob[],
): object {
  const created = new Date(createdSeconds * 1000).toISOString().replace('.000Z', 'Z');
  const { Env, Labels } = from.config ?? {};
  return {
    created,
    ...platform,
    config: {
      User: NON_ROOT,
      // /healthz, /readyz and /metrics
      ExposedPorts: { '8080/tcp': {} },
      ...(Env === undefined ? {} : { Env }),
      Entrypoint: [nodeOf(from), program],
      WorkingDir: '/',
      Labels: { ...Labels, ...baseLabels(base), ...labels },
    },
    rootfs: {
      type: 'layers',
      // The digest of a layer that is not compressed is its diff ID.
      diff_ids: [...from.rootfs.diff_ids, ...added.map(({ descriptor }) => descriptor.digest)],
    },
    history: [...(from.history ?? []), ...added.map(() => ({ created, created_by: 'kindred build' }))],
  };
}

function baseLabels({ name, digest }: Base): Readonly<Record<string, string>> {
  return {
    ...(name === '' ? {} : { [BASE_NAME]: name }),
    ...(digest === undefined ? {} : { [BASE_DIGEST]: digest }),
  };
}

/** Node.js in a base: what the base starts, if that is Node.js, otherwise `node` on its PATH. */
function nodeOf({ config }: ImageConfig): string {
  const [first = ''] = config?.Entrypoint ?? [];
  return /(?:^|\/)node(?:js)?$/.test(first) ? first : 'node';
}
