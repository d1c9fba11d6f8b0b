import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { waitFor } from '../../../testing/wait-for';
import { temporaryFolder } from '../../support/temporary-folder';

/** Its own temporary folder, so that no other run's folder is in sight. */
const temporary = temporaryFolder('kindred-crash-');
const program = path.join(__dirname, 'parent.ts');

interface Parent {
  readonly child: ChildProcess;
  readonly dataDir: string;
  /** What it has told on stderr so far. */
  progress(): string;
}

/** A process that starts a control plane and then does nothing. */
async function startParent(): Promise<Parent> {
  const child = spawn(process.execPath, ['--import', 'tsx', program], {
    cwd: path.resolve(__dirname, '../../..'),
    env: { ...process.env, TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  let told = '';
  child.stderr.on('data', (chunk: Buffer) => (told += chunk.toString()));
  const dataDir = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      printed += chunk.toString();
      if (printed.includes('\n')) resolve(printed.trim());
    });
    child.once('exit', (code) =>
      reject(new Error(`the parent exited with ${String(code)} before it was ready:\n${told}`)),
    );
  });
  return { child, dataDir, progress: () => told };
}

/** The living processes (zombies are dead) whose command line or working folder speaks of the run. */
function processesOf(dataDir: string): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      return command.includes(dataDir) ? [command.slice(0, 80)] : [];
    } catch {
      return []; // ended while we looked
    }
  });
}

const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux(
  'SIGKILL of the parent leaves no process, and the next start removes its folder',
  async () => {
    const { child, dataDir } = await startParent();
    expect(processesOf(dataDir).length).toBeGreaterThanOrEqual(5);
    child.kill('SIGKILL');
    await waitFor(() => processesOf(dataDir).length === 0, { timeout: 5000, describe: 'every part to be gone' });
    expect(existsSync(dataDir)).toBe(true);

    const next = await startParent();
    next.child.kill('SIGTERM');
    expect(existsSync(dataDir)).toBe(false);
    expect(next.progress()).toContain(`removing what a crashed run left in ${dataDir}`);
  },
  60_000,
);

onLinux.each(['SIGINT', 'SIGTERM'] as const)(
  '%s of the parent leaves neither process nor folder',
  async (signal) => {
    const { child, dataDir } = await startParent();
    const ended = new Promise((resolve) => child.once('exit', (_code, by) => resolve(by)));
    child.kill(signal);
    expect(await ended).toBe(signal);
    expect(existsSync(dataDir)).toBe(false);
    await waitFor(() => processesOf(dataDir).length === 0, { timeout: 5000, describe: 'every part to be gone' });
  },
  60_000,
);
