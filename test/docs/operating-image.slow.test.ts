import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(__dirname, '..', '..');

interface Instruction {
  readonly name: string;
  readonly rest: string;
}

/** The instructions of a Dockerfile: comments left out, continued lines joined. */
function instructionsOf(text: string): readonly Instruction[] {
  return text
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('#'))
    .join('\n')
    .replace(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name = '', rest = ''] = /^(\S+)\s+(.*)$/.exec(line) ?? [];
      return { name, rest };
    });
}

const fileOf = (path: string): readonly Instruction[] => instructionsOf(readFileSync(join(root, path), 'utf8'));
const instructions = fileOf('operator/Dockerfile');

function only(name: string): string {
  const found = instructions.filter((instruction) => instruction.name === name);
  expect(found).toHaveLength(1);
  return found[0]?.rest ?? '';
}

/** A command that builds an image. */
interface BuildCommand {
  readonly dockerfile: string;
  readonly args: readonly string[];
  readonly context: string;
}

/** The commands by which the page builds images. */
function buildCommands(): readonly BuildCommand[] {
  const page = readFileSync(join(root, 'docs', 'operating.md'), 'utf8');
  return [...page.matchAll(/docker build (.*?)(?=`|\n)/g)].map(([, words = '']) => ({
    dockerfile: / ?-f (\S+)/.exec(words)?.[1] ?? '',
    args: [...words.matchAll(/--build-arg (\w+)=/g)].map(([, name = '']) => name),
    context: words.split(' ').at(-1) ?? '',
  }));
}

describe('the commands that build the images', () => {
  const commands = buildCommands();
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'kindred-context-'));
    execFileSync(process.execPath, [join(root, 'scripts', 'build.mjs'), folder]);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('are there for both', () => {
    expect(commands.map(({ dockerfile }) => dockerfile)).toEqual(['operator/Dockerfile', 'provisioner/Dockerfile']);
  });

  it.each(commands)('have what $dockerfile copies in their context, which is what the build makes', (command) => {
    expect(command.context).toBe('dist');
    const copied = fileOf(command.dockerfile)
      .filter(({ name }) => name === 'COPY' || name === 'ADD')
      .flatMap(({ rest }) =>
        rest
          .split(' ')
          .filter((word) => !word.startsWith('--'))
          .slice(0, -1),
      );
    expect(copied.length).toBeGreaterThan(0);
    expect(readdirSync(folder)).toEqual(expect.arrayContaining([...copied]));
  });

  it.each(commands)('give $dockerfile all that it cannot do without', ({ dockerfile, args }) => {
    const declared = fileOf(dockerfile).filter(({ name }) => name === 'ARG');
    const needed = declared.filter(({ rest }) => !rest.includes('=')).map(({ rest }) => rest);
    expect([...args].sort()).toEqual([...needed].sort());
  });

  it('download nothing by http', () => {
    const downloads = fileOf('provisioner/Dockerfile').flatMap(({ rest }) => rest.match(/curl .*?https?:\S+/g) ?? []);
    expect(downloads).toHaveLength(1);
    for (const download of downloads) expect(download).toMatch(/--proto =https --proto-redir =https .*https:/);
  });
});

// No container engine runs here: the image itself is not built by any test.
describe("the operator's Dockerfile", () => {
  it('has one stage, on a distroless base pinned by tag, of a Node that the package supports', () => {
    const [, node = ''] = /^gcr\.io\/distroless\/nodejs(\d+)-debian\d+:nonroot$/.exec(only('FROM')) ?? [];
    const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { engines: { node: string } };
    const [, least = ''] = /^>=(\d+)/.exec(engines.node) ?? [];
    expect(Number(node)).toBeGreaterThanOrEqual(Number(least));
  });

  it('names that base in its labels, with title, licence, version and revision', () => {
    const labels = [...only('LABEL').matchAll(/org\.opencontainers\.image\.([a-z.]+)="([^"]*)"/g)];
    expect(labels.map(([, name]) => name)).toEqual([
      'title',
      'description',
      'licenses',
      'version',
      'revision',
      'base.name',
    ]);
    expect(labels.at(-1)?.[2]).toBe(only('FROM'));
  });

  it('copies the bundle that the build makes, and nothing else', () => {
    const words = only('COPY')
      .split(' ')
      .filter((word) => !word.startsWith('--'));
    expect(words).toEqual(['operator.cjs', '/operator.cjs']);

    const folder = mkdtempSync(join(tmpdir(), 'kindred-image-'));
    try {
      execFileSync(process.execPath, [join(root, 'scripts', 'build.mjs'), folder]);
      expect(readdirSync(folder)).toContain(words[0]);
      // Beside it there is no node_modules: it imports nothing but Node's own modules.
      const help = execFileSync(process.execPath, [join(folder, 'operator.cjs'), '--help'], { cwd: folder });
      expect(help.toString()).toMatch(/^Reconciles Kindred's kinds\./);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('runs as the user that the Deployment asks for, by number', () => {
    const pod = readFileSync(join(root, 'constructs', 'operator', 'operator-deployment.ts'), 'utf8');
    const [, uid = ''] = /NON_ROOT = (\d+);/.exec(pod) ?? [];
    expect(only('USER')).toBe(`${uid}:${uid}`);
  });

  it('starts the bundle without a shell, and runs nothing while it is built', () => {
    expect(JSON.parse(only('ENTRYPOINT'))).toEqual(['/nodejs/bin/node', '/operator.cjs']);
    expect(instructions.filter(({ name }) => ['RUN', 'SHELL', 'CMD', 'ADD'].includes(name))).toEqual([]);
  });
});
