import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import type { Pack } from 'tar-stream';
import { codeOf, messageOf, undefinedIfMissing } from '../local/assets/errors';
import type { Image, PlatformImage } from './image';
import { ImageError, blobOf, goArchitecture, jsonBlob, mediaTypes } from './oci';
import type { Blob } from './oci';
import { formatReference } from './reference';
import type { ImageReference } from './reference';
import type { Registry } from './registry';
import { writeAtomically } from './temporary-files';

/**
 * Checks that an archive can be written, before minutes go into its image.
 *
 * @returns the file itself where a link is given
 * @throws ImageError when something else is there
 */
export async function archivePath(file: string): Promise<string> {
  try {
    const target = await realpath(file).catch(undefinedIfMissing);
    if (target === undefined) return file;
    if ((await stat(target)).isFile()) return target;
  } catch (cause) {
    throw new ImageError(`the archive ${file} cannot be written: ${messageOf(cause)}`, { cause });
  }
  throw new ImageError(
    `the archive ${file} cannot be written: there is a folder or a device of that name. Give another name.`,
  );
}

/**
 * Writes an image into one file, for `docker load`, `ctr images import`, `kind load image-archive` and `k3d image import`:
 * an OCI layout, with the list that Docker reads beside it. On machines of the same architecture, the same image gives the same bytes.
 *
 * @param reference the name that the image has after loading
 * @throws ImageError when the file cannot be written
 */
export async function writeArchive(file: string, image: Image, reference: ImageReference): Promise<void> {
  // Not while the archive is written: what fails then is not the archive.
  for (const { config, layers } of image.images) for (const blob of [config, ...layers]) await blob.prepare?.();
  try {
    await mkdir(path.dirname(path.resolve(file)), { recursive: true });
    await writeAtomically(file, async (temporary) => {
      const tar = pack();
      const written = pipeline(Readable.from(tar as AsyncIterable<Uint8Array>), createWriteStream(temporary));
      await Promise.all([writeEntries(tar, image, reference, written), written]);
    });
  } catch (cause) {
    if (cause instanceof ImageError || codeOf(cause) === 'ENOSPC') throw cause;
    throw new ImageError(`the archive ${file} cannot be written: ${messageOf(cause)}`, { cause });
  }
}

async function writeEntries(tar: Pack, image: Image, reference: ImageReference, written: Promise<void>): Promise<void> {
  try {
    const { images } = image;
    const content = [image.root, ...images.flatMap(({ manifest, config, layers }) => [manifest, config, ...layers])];
    const blobs = new Map(content.map((blob) => [blob.descriptor.digest, blob]));
    const files: readonly (readonly [string, Blob])[] = [
      ['oci-layout', jsonBlob('', { imageLayoutVersion: '1.0.0' })],
      ['index.json', layoutIndex(image, reference)],
      ['manifest.json', dockerManifest(images, reference)],
      ...[...blobs].map(([digest, blob]) => [blobPath(digest), blob] as const),
    ];
    for (const folder of ['blobs', 'blobs/sha256']) {
      tar.entry({ name: folder, type: 'directory', mode: 0o755, mtime: new Date(0), uid: 0, gid: 0 });
    }
    for (const [name, blob] of files.toSorted(([a], [b]) => (a < b ? -1 : 1)))
      await writeEntry(tar, name, blob, written);
    tar.finalize();
  } catch (error) {
    // Ends the other side too.
    tar.destroy(error instanceof Error ? error : new Error(messageOf(error)));
    throw error;
  }
}

async function writeEntry(tar: Pack, name: string, blob: Blob, written: Promise<void>): Promise<void> {
  const header = { name, size: blob.descriptor.size, mode: 0o644, mtime: new Date(0), uid: 0, gid: 0 } as const;
  const entry = tar.entry(header);
  const failed = once(entry, 'error').then(([error]) => Promise.reject(error as Error));
  failed.catch(() => undefined);
  for await (const chunk of blob.open()) {
    // Nobody takes it any more once the file cannot be written.
    if (!entry.write(chunk)) await Promise.race([once(entry, 'drain'), written, failed]);
  }
  entry.end(undefined);
  await Promise.race([once(entry, 'close'), written, failed]);
}

function blobPath(digest: string): string {
  return `blobs/${digest.replace(':', '/')}`;
}

/** `ctr` takes the name from the first annotation, and tools of the OCI layout the tag from the second. */
function layoutIndex({ root }: Image, reference: ImageReference): Blob {
  const annotations = {
    'io.containerd.image.name': formatReference(reference),
    'org.opencontainers.image.ref.name': reference.tag ?? 'latest',
  };
  return jsonBlob(mediaTypes.index, {
    schemaVersion: 2,
    mediaType: mediaTypes.index,
    manifests: [{ ...root.descriptor, annotations }],
  });
}

/** The list that Docker reads has one platform: the one of this machine if the image has it. */
function dockerManifest(images: readonly PlatformImage[], reference: ImageReference): Blob {
  const own = goArchitecture(process.arch);
  const image = images.find(({ platform }) => platform.architecture === own) ?? images[0];
  if (image === undefined) throw new Error('an image has a platform');
  const { config, layers } = image;
  const entry = {
    Config: blobPath(config.descriptor.digest),
    RepoTags: [familiarName(reference)],
    Layers: layers.map(({ descriptor }) => blobPath(descriptor.digest)),
  };
  return blobOf('application/json', Buffer.from(JSON.stringify([entry])));
}

/** As `docker images` shows it. */
function familiarName(reference: ImageReference): string {
  return formatReference(reference).replace(/^docker\.io\/(library\/)?/, '');
}

/** How many blobs a push sent, and how many the registry had. */
export interface PushSummary {
  readonly uploaded: number;
  /** Bytes of those that were uploaded. */
  readonly uploadedBytes: number;
  /** Taken from another repository of the same registry. */
  readonly mounted: number;
  readonly present: number;
}

/**
 * Pushes an image to a registry: first the layers, and at last the tag, so that the tag never names an incomplete image.
 *
 * @throws ImageError when the registry refuses something
 */
export async function pushImage(
  registry: Registry,
  { repository, tag }: ImageReference,
  { root, images }: Image,
): Promise<PushSummary> {
  const blobs = new Map(
    images.flatMap(({ layers, config }) => [...layers, config]).map((blob) => [blob.descriptor.digest, blob]),
  );
  const counts = { uploaded: 0, uploadedBytes: 0, mounted: 0, present: 0 };
  for (const blob of blobs.values()) {
    const result = await registry.pushBlob(repository, blob);
    counts[result] += 1;
    if (result === 'uploaded') counts.uploadedBytes += blob.descriptor.size;
  }
  for (const { manifest } of images) {
    if (manifest !== root) await registry.pushManifest(repository, manifest.descriptor.digest, manifest);
  }
  await registry.pushManifest(repository, tag ?? 'latest', root);
  return counts;
}
