import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runTool } from '../local/assets/process';
import { printTimes } from './times';

const root = join(__dirname, '..');

/** `npm run bench:first-run -- [--rounds=5] [--json]`: from an empty folder to a sample that is Ready, with the packed package. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { rounds: { type: 'string', default: '5' }, json: { type: 'boolean', default: false } },
  });
  const rounds = Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1)
    throw new Error(`--rounds=${values.rounds}: it must be a whole number from 1`);
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.on(name, () => stop.abort(new Error(`stopped by ${name}`)));
  const folder = await mkdtemp(join(tmpdir(), 'kindred-bench-first-'));
  const run = async (command: string, args: readonly string[], cwd: string): Promise<string> => {
    const result = await runTool(command, args, { cwd, env: process.env, signal: stop.signal });
    if (result?.code === 0) return result.stdout;
    throw new Error(
      `${command} ${args.join(' ')} failed:\n${result?.stdout ?? ''}${result?.stderr ?? 'it is not on PATH'}`,
    );
  };
  try {
    const packed = JSON.parse(await run('npm', ['pack', '--json', `--pack-destination=${folder}`], root)) as unknown;
    const [{ filename }] = packed as [{ readonly filename: string }];
    const tarball = join(folder, filename);
    const times = new Map<string, number[]>();
    // The first round fills npm's cache, and that of the control plane's parts.
    for (let round = 0; round <= rounds; round += 1) {
      const empty = await mkdtemp(join(folder, 'empty-'));
      const project = join(empty, 'website');
      const began = performance.now();
      for (const [name, command, args, cwd] of [
        [
          'npx kindred new website',
          'npx',
          [
            '--yes',
            '--prefer-offline',
            `--package=${tarball}`,
            'kindred',
            'new',
            'website',
            `--kindred=file:${tarball}`,
          ],
          empty,
        ],
        ['npm install', 'npm', ['install', '--prefer-offline', '--no-audit', '--no-fund'], project],
        ['npx kindred dev --once', 'npx', ['kindred', 'dev', '--once'], project],
      ] as const) {
        const from = performance.now();
        await run(command, args, cwd);
        add(name, performance.now() - from);
      }
      add('all of it', performance.now() - began);
      await rm(empty, { recursive: true });

      function add(name: string, ms: number): void {
        console.error(`bench: round ${String(round)}: ${name}: ${ms.toFixed(0)} ms`);
        if (round > 0) times.set(name, [...(times.get(name) ?? []), ms]);
      }
    }
    printTimes('From an empty folder to Ready', times, values.json);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
