import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Synth } from './results';
import { operatorBundle } from '../testing';
import { kustomize } from './operators-under-test';

const turns = 7;

/**
 * Measures how long it takes to write the platform as YAML, and `kustomize build` to write the same objects.
 *
 * @param missing called with what is not available
 */
export async function measureSynth(root: string, missing: (why: string) => void, signal: AbortSignal): Promise<Synth> {
  const folder = await mkdtemp(join(tmpdir(), 'kindred-bench-synth-'));
  try {
    await operatorBundle(); // also builds the command line
    const peer = await kustomize(signal);
    if ('missing' in peer) missing(peer.missing);
    await timed('npm', ['run', '--silent', 'synth', '--', `--out=${folder}`], root, signal);
    const resources = (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort();
    await writeFile(join(folder, 'kustomization.yaml'), JSON.stringify({ resources }));
    const acts: Record<keyof Synth, (() => Promise<number>) | undefined> = {
      npm: () => timed('npm', ['run', '--silent', 'synth', '--', `--out=${folder}`], root, signal),
      bundle: () => timed(process.execPath, ['dist/cli.cjs', 'synth', `--out=${folder}`], root, signal),
      kustomize: 'missing' in peer ? undefined : () => timed(peer.file, ['build', folder], root, signal),
      node: () => timed(process.execPath, ['-e', ''], root, signal),
    };
    const times: Record<keyof Synth, number[]> = { npm: [], bundle: [], kustomize: [], node: [] };
    for (let turn = 0; turn <= turns; turn += 1) {
      for (const name of Object.keys(acts) as (keyof Synth)[]) {
        const ms = await acts[name]?.();
        if (turn > 0 && ms !== undefined) times[name].push(ms); // the first run only fills the file system's cache
      }
    }
    return times;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs a program to its end. @returns milliseconds @throws Error when it fails */
async function timed(file: string, args: readonly string[], cwd: string, signal: AbortSignal): Promise<number> {
  const began = performance.now();
  const child = spawn(file, args, { cwd, signal, stdio: ['ignore', 'ignore', 'pipe'] });
  let told = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (told += text));
  const [code] = (await once(child, 'close')) as [number | null];
  const ms = performance.now() - began;
  if (code !== 0) throw new Error(`${file} ${args.join(' ')} ended with code ${String(code)}: ${told}`);
  return ms;
}
