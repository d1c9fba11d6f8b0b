import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HelloApp } from '../../constructs/kinds';
import { waitFor } from '../../testing/wait-for';
import { root } from '../support/project-folder';
import { temporaryFolder } from '../support/temporary-folder';

export const startTimeoutMs = 240_000;

/** Where the commands of the file run. */
export const folder = temporaryFolder('kindred-start-test-');

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface StartOptions {
  readonly project: string;
  /** @default the one of this process */
  readonly kubeconfig?: string;
}

/** `kindred dev` as a process of its own. */
export class Start {
  stdout = '';
  stderr = '';
  readonly ended: Promise<Ended>;
  /** Its temporary folder, in which all that it leaves behind would be found. */
  readonly temporary = mkdtempSync(join(folder, 'tmp-'));
  private readonly child;

  /** In Kindred's own project. */
  constructor(...args: readonly string[]);
  /** In another one. */
  constructor(options: StartOptions, ...args: readonly string[]);
  constructor(first: StartOptions | string = '', ...more: readonly string[]) {
    const [{ project, kubeconfig }, args] =
      typeof first === 'string' ? [{ project: root }, [first, ...more].filter((arg) => arg !== '')] : [first, more];
    // With `gc()`, for kinds that call it.
    this.child = spawn(
      process.execPath,
      ['--expose-gc', join(root, 'dist', 'cli.cjs'), `--project=${project}`, 'dev', ...args],
      {
        cwd: folder,
        env: { ...process.env, TMPDIR: this.temporary, ...(kubeconfig !== undefined && { KUBECONFIG: kubeconfig }) },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    this.child.stdout.on('data', (data: Buffer) => (this.stdout += String(data)));
    this.child.stderr.on('data', (data: Buffer) => (this.stderr += String(data)));
    this.ended = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('close', (code) => resolve({ code, stdout: this.stdout, stderr: this.stderr }));
    });
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  /** Waits until something was written. */
  async says(text: string | RegExp): Promise<void> {
    const said = (): boolean => this.stdout.match(text) !== null || this.child.exitCode !== null;
    // Before the test ends, whose error would not have what was written instead.
    await waitFor(said, { timeout: (startTimeoutMs * 3) / 4 }).catch(() => undefined);
    expect({ stdout: this.stdout, stderr: this.stderr }).toMatchObject({
      stdout: expect.stringMatching(text) as string,
    });
  }
}

/**
 * Processes whose command line names the temporary folder, or which run in it: the parts, their guards, the operators, and those that
 * wait to become one.
 */
export function processesOf({ temporary }: Start): readonly string[] {
  const all = execFileSync('ps', ['-A', '-ww', '--sort=start_time', '-o', 'pid=,args='], { encoding: 'utf8' }).split(
    '\n',
  );
  return all.filter(
    (line) => line.includes(temporary) || workingDirectory(line.trim().split(' ')[0]).startsWith(temporary),
  );
}

function workingDirectory(pid = ''): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return ''; // it has ended meanwhile
  }
}

export function expectNothingLeft(start: Start): void {
  expect(processesOf(start)).toEqual([]);
  const left = readdirSync(start.temporary, { recursive: true }).map(String);
  expect(left.filter((name) => !/^kindred-local-[^/]*$/.test(name))).toEqual([]);
}

export function manifest(name: string, ...objects: readonly object[]): string {
  const file = join(folder, name);
  writeFileSync(file, objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  return file;
}

export const helloApp = (name: string, spec: object): object => ({
  apiVersion: HelloApp.apiVersion,
  kind: HelloApp.kind,
  metadata: { name },
  spec,
});
