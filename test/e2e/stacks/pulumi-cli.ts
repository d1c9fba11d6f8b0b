import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';

const root = join(__dirname, '..', '..', '..');

/** The `pulumi` on PATH, if it works, with the plugins that the stack needs. */
export function pulumiVersion(): string | undefined {
  try {
    return execFileSync('pulumi', ['version'], {
      encoding: 'utf8',
      timeout: 20_000,
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    // Not there, or not working: the tests that need it say so.
    return undefined;
  }
}

/** What a run of the CLI said. */
export interface PulumiResult {
  readonly code: number | null;
  /** Both streams, as a person sees them. */
  readonly text: string;
}

/** What a run did, by operation, from its summary: `{ create: 31 }`. */
export type Changes = Readonly<Record<string, number>>;

/** A stack of stacks/index.ts on a file backend of its own, driven by the real CLI. */
export class RealStack {
  private readonly folder = mkdtempSync(join(tmpdir(), 'kindred-pulumi-'));
  private readonly project = join(this.folder, 'project');
  private readonly configFile = join(this.project, 'Pulumi.test.yaml');

  /** Everything that lies on disk after a run: state, history, and what the providers put into TMPDIR. */
  files(): readonly { readonly path: string; readonly text: string }[] {
    return readdirSync(this.folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => ({ path, text: readFileSync(path, 'utf8') }));
  }

  /** Makes the stack with that configuration. */
  async init(config: Readonly<Record<string, unknown>>, secrets: Readonly<Record<string, string>>): Promise<void> {
    // A copy of the project, so that nothing is written into the checkout; the program stays where it is.
    mkdirSync(this.project);
    const project = parse(readFileSync(join(root, 'Pulumi.yaml'), 'utf8')) as { readonly main: string };
    writeFileSync(join(this.project, 'Pulumi.yaml'), stringify({ ...project, main: join(root, project.main) }));
    await this.must('stack', 'init', 'test', '--no-select');
    const plain = Object.entries(config).map(([key, value]) => [`kindred:${key}`, value]);
    const salt = parse(readFileSync(this.configFile, 'utf8')) as object;
    writeFileSync(this.configFile, stringify({ ...salt, config: Object.fromEntries(plain) as unknown }));
    for (const [key, value] of Object.entries(secrets)) await this.setSecret(key, value);
  }

  /** Changes one secret of the configuration. */
  async setSecret(key: string, value: string): Promise<void> {
    const { code, text } = await this.run(['config', 'set', '--secret', `kindred:${key}`], value);
    if (code !== 0) throw new Error(`pulumi config set --secret ${key} failed:\n${text}`);
  }

  /** Changes one value of the configuration. */
  async set(key: string, value: string): Promise<void> {
    await this.must('config', 'set', `kindred:${key}`, value);
  }

  /** What an update changed. @throws Error with what it said, when it fails */
  async up(): Promise<Changes> {
    await this.must('up', '--yes', '--skip-preview', '--non-interactive');
    return this.lastChanges();
  }

  /**
   * Starts an update and kills the CLI, its language host and its providers as soon as they have said so.
   *
   * @param said what the output has to contain
   * @throws Error if the update ended before
   */
  async killUp(said: RegExp): Promise<void> {
    const { code } = await this.run(['up', '--yes', '--skip-preview', '--non-interactive'], '', said);
    if (code !== null) throw new Error(`pulumi up ended with ${code} before it was killed`);
    await this.must('cancel', '--yes');
  }

  /** What a refresh that must find no change has said. */
  async refresh(...flags: readonly string[]): Promise<PulumiResult> {
    return this.run(['refresh', '--yes', '--skip-preview', '--non-interactive', ...flags]);
  }

  async preview(): Promise<PulumiResult> {
    return this.run(['preview', '--non-interactive']);
  }

  async destroy(): Promise<Changes> {
    await this.must('destroy', '--yes', '--skip-preview', '--non-interactive');
    return this.lastChanges();
  }

  /** An output of the stack, secrets shown. */
  async output(name: string): Promise<unknown> {
    const { text } = await this.must('stack', 'output', '--json', '--show-secrets');
    return (JSON.parse(text) as Record<string, unknown>)[name];
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async lastChanges(): Promise<Changes> {
    const { text } = await this.must('stack', 'history', '--json', '--page-size', '1');
    const [last] = JSON.parse(text) as readonly { readonly resourceChanges?: Record<string, number> }[];
    const changes = Object.entries(last?.resourceChanges ?? {}).filter(
      ([op, count]) => !['same', 'read'].includes(op) && count > 0,
    );
    return Object.fromEntries(changes);
  }

  private async must(...args: readonly string[]): Promise<PulumiResult> {
    const result = await this.run(args);
    if (result.code === 0) return result;
    throw new Error(`pulumi ${args.join(' ')} ended with ${String(result.code)}:\n${result.text}`);
  }

  /** @param killAt ends the run and all of its processes when the output contains it */
  private run(args: readonly string[], input = '', killAt?: RegExp): Promise<PulumiResult> {
    const [command = '', ...rest] = args;
    const stack = command === 'stack' && rest[0] === 'init' ? [] : ['--stack', 'test'];
    const child = spawn('pulumi', [...args, ...stack], {
      cwd: this.project,
      // A process group of its own, which is killed as a whole.
      detached: killAt !== undefined,
      env: {
        ...process.env,
        PULUMI_BACKEND_URL: `file://${this.folder}`,
        PULUMI_CONFIG_PASSPHRASE: 'test',
        PULUMI_SKIP_UPDATE_CHECK: 'true',
        TMPDIR: this.folder,
        NO_COLOR: '1',
      },
    });
    child.stdin.end(input);
    let text = '';
    child.stdout.on('data', (data: Buffer) => {
      text += String(data);
      if (killAt?.test(text) === true && child.exitCode === null && child.pid !== undefined) {
        process.kill(-child.pid, 'SIGKILL');
      }
    });
    child.stderr.on('data', (data: Buffer) => (text += String(data)));
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve({ code, text }));
    });
  }
}
