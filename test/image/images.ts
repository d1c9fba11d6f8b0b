import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { writeArchive } from '../../image/publish';
import type { Base } from '../../image/base';
import { buildImage } from '../../image/image';
import type { Image } from '../../image/image';
import { layerOf } from '../../image/image';
import type { LayerEntry } from '../../image/image';
import type { Platform } from '../../image/oci';
import { parseReference } from '../../image/reference';

export function textEntry(path: string, text: string): LayerEntry {
  return { type: 'file', path, mode: 0o444, content: Buffer.from(text) };
}

/** A base of a few bytes for some architectures. */
export async function tinyBase(architectures: readonly string[] = ['amd64', 'arm64']): Promise<Base> {
  const images = architectures.map(async (architecture) => {
    const layer = await layerOf([textEntry('/bin/node', `node for ${architecture}`)]);
    const platform: Platform = { os: 'linux', architecture };
    const config = {
      ...platform,
      config: { Env: ['PATH=/bin'], Entrypoint: ['/bin/node'], Labels: { of: 'base' } },
      rootfs: { type: 'layers' as const, diff_ids: [layer.descriptor.digest] },
    };
    return { platform, config, layers: [layer] };
  });
  return { name: '', images: await Promise.all(images) };
}

/** An image with one file on a base. */
export async function tinyImage(text = 'program', base?: Base): Promise<Image> {
  const layer = await layerOf([textEntry('/operator.cjs', text)]);
  const contents = { layers: () => [layer], program: '/operator.cjs', labels: { title: 'tiny' } };
  return buildImage(base ?? (await tinyBase()), contents);
}

/** Writes an image as an OCI layout, with the tag `latest`. */
export async function writeLayout(folder: string, image: Image): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const archive = join(folder, 'archive.tar');
  await writeArchive(archive, image, { ...parseReference('tiny'), tag: 'latest' });
  execFileSync('tar', ['-xf', archive, '-C', folder]);
  return folder;
}
