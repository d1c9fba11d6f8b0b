import { createHash } from 'node:crypto';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { LocalControlPlaneError } from '../assets/errors';
import { hostPlatform } from '../assets/parts';
import { runTool } from '../assets/process';

/** An image with one static program. */
interface ProgramImage {
  /** The path of the program, which becomes `/pod` in the image. */
  readonly program: string;
  /** The arguments that containers start with. */
  readonly args: readonly string[];
  /** Its names, each with a host and a tag. */
  readonly names: readonly string[];
}

/**
 * Writes an image as an archive that `ctr images import` and `docker load` read.
 *
 * @param file - the path of the archive
 * @throws LocalControlPlaneError when there is no `tar`
 */
export async function writeImageArchive(file: string, { program, args, names }: ProgramImage): Promise<void> {
  const folder = `${file}.d`;
  await mkdir(folder, { recursive: true });
  try {
    await copyFile(program, path.join(folder, 'pod'));
    await tar(folder, 'layer.tar', ['pod']);
    const layer = await readFile(path.join(folder, 'layer.tar'));
    const { os, arch: architecture } = hostPlatform();
    const config = {
      os,
      architecture,
      config: { Entrypoint: ['/pod'], Cmd: args, User: '65532:65532' },
      rootfs: { type: 'layers', diff_ids: [`sha256:${createHash('sha256').update(layer).digest('hex')}`] },
    };
    await writeFile(path.join(folder, 'config.json'), JSON.stringify(config));
    const manifest = [{ Config: 'config.json', RepoTags: names, Layers: ['layer.tar'] }];
    await writeFile(path.join(folder, 'manifest.json'), JSON.stringify(manifest));
    await tar(folder, file, ['manifest.json', 'config.json', 'layer.tar']);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function tar(cwd: string, file: string, members: readonly string[]): Promise<void> {
  const flags = ['--owner=0', '--group=0', '--numeric-owner', '--mode=755', '--mtime=@0'];
  const result = await runTool('tar', ['-cf', file, ...flags, ...members], { cwd });
  if (result?.code === 0) return;
  throw new LocalControlPlaneError(`cannot write the image ${file}: ${result?.stderr ?? 'there is no tar'}`);
}
