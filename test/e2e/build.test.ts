import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256 } from '../../image/oci';
import { version } from '../../package.json';
import { tinyImage, writeLayout } from '../image/images';
import { kindredBuild } from '../support/kindred-build';
import type { BuildResult } from '../support/kindred-build';
import { temporaryFolder } from '../support/temporary-folder';

const root = join(__dirname, '..', '..');
const folder = temporaryFolder('kindred-build-');
let layout: string;
beforeAll(async () => (layout = await writeLayout(join(folder, 'layout'), await tinyImage('base'))));

/** An empty folder in which the command runs. */
function emptyFolder(name: string): string {
  const made = join(folder, name);
  mkdirSync(made, { recursive: true });
  return made;
}

const build = (cwd: string, args: readonly string[], env?: NodeJS.ProcessEnv): Promise<BuildResult> =>
  kindredBuild(args, { cwd, env });

async function built(cwd: string, args: readonly string[], env?: NodeJS.ProcessEnv): Promise<BuildResult> {
  const result = await build(cwd, args, env);
  expect(result).toMatchObject({ code: 0 });
  return result;
}

/** A file of an archive. */
const inArchive = (archive: string, name: string): Buffer =>
  execFileSync('tar', ['-xOf', archive, name], { maxBuffer: 1e9 });

interface DockerManifest {
  readonly Config: string;
  readonly RepoTags: readonly string[];
  readonly Layers: readonly string[];
}

const manifestOf = (archive: string): DockerManifest =>
  (JSON.parse(inArchive(archive, 'manifest.json').toString()) as [DockerManifest])[0];

/** Unpacks the layers of an image, one onto the other, as a container's root. */
function unpack(archive: string, to: string): string {
  mkdirSync(to);
  for (const layer of manifestOf(archive).Layers)
    execFileSync('tar', ['-xf', '-', '-C', to], { input: inArchive(archive, layer) });
  return to;
}

test('the same bundle and base give the same digest and the same archive in two folders', async () => {
  const folders = [emptyFolder('one'), emptyFolder('two')];
  const results = await Promise.all(folders.map((made) => built(made, [`--base=oci:${layout}`])));
  const [one, two] = results.map(({ stdout }) => stdout);
  expect(one).toMatch(/^sha256:[0-9a-f]{64}\n$/);
  expect(two).toBe(one);
  const archives = folders.map((made) => readFileSync(join(made, 'dist', 'operator.tar')));
  expect(archives[0]!.equals(archives[1]!)).toBe(true);
  expect(archives[0]!.includes(folder)).toBe(false);
});

test('an image has the bundle, the labels, and a name', async () => {
  const made = emptyFolder('labels');
  const archive = join(made, 'operator.tar');
  const args = [`--base=oci:${layout}`, '--platform=linux/amd64', `--archive=${archive}`, '--label=a=b'];
  const { stdout } = await built(made, [...args, '--output=json'], { SOURCE_DATE_EPOCH: '1700000000' });
  expect(JSON.parse(stdout)).toMatchObject({
    base: { name: `oci:${layout}` },
    platforms: [{ platform: 'linux/amd64' }],
    archive: { file: archive, name: `docker.io/library/kindred-operator:${version}` },
  });
  const { Layers, Config, RepoTags } = manifestOf(archive);
  // As the Deployment names it.
  expect(RepoTags).toEqual([`kindred-operator:${version}`]);
  expect(JSON.parse(inArchive(archive, Config).toString())).toMatchObject({
    created: '2023-11-14T22:13:20Z',
    config: {
      Entrypoint: ['/bin/node', '/operator.cjs'],
      Labels: {
        'org.opencontainers.image.title': 'kindred operator',
        'org.opencontainers.image.version': version,
        'org.opencontainers.image.base.digest': expect.stringMatching(/^sha256:/) as string,
        a: 'b',
      },
    },
  });
  const layer = inArchive(archive, Layers.at(-1)!);
  expect(`blobs/${sha256(layer).replace(':', '/')}`).toBe(Layers.at(-1));
  const bundle = execFileSync('tar', ['-xO', 'operator.cjs'], { input: layer, maxBuffer: 1e9 });
  expect(bundle.equals(readFileSync(join(root, 'dist', 'operator.cjs')))).toBe(true);
  const map = JSON.parse(
    execFileSync('tar', ['-xO', 'operator.cjs.map'], { input: layer, encoding: 'utf8', maxBuffer: 1e9 }),
  ) as {
    readonly sources: readonly string[];
  };
  expect(map.sources).toEqual(
    expect.arrayContaining(['constructs/kinds/hello-app.ts', 'node_modules/cdk8s/src/chart.ts']),
  );
  expect(map.sources.filter((source) => /^\.\.|^\//.test(source))).toEqual([]);
  expect(map).not.toHaveProperty('sourcesContent');
});

const canChangeRoot = process.platform === 'linux' && process.getuid?.() === 0;
if (!canChangeRoot) console.warn('skipped: running an image without a container engine needs Linux and root');

(canChangeRoot ? test : test.skip)(
  'of the Node.js of this machine: both programs start in nothing but their image',
  async () => {
    const made = emptyFolder('local');
    const rke = join(made, 'rke');
    writeFileSync(rke, '#!/bin/sh\necho rke version v1.8.14\n');
    await built(made, ['--base=local']);
    await built(made, ['--base=local', '--operator=provisioner', `--binary=rke=${rke}#${sha256(readFileSync(rke))}`]);
    const run = (at: string, ...command: readonly string[]): string =>
      execFileSync('chroot', ['--userspec=65532:65532', at, ...command], {
        encoding: 'utf8',
        env: { PATH: '/usr/sbin:/usr/bin' },
      });
    const operator = unpack(join(made, 'dist', 'operator.tar'), join(folder, 'operator'));
    expect(run(operator, '/usr/local/bin/node', '/operator.cjs', '--help')).toContain('helloapps.apps.anupam.com');
    const script =
      'console.log(process.getuid(), os.userInfo().username, fs.statSync("/tmp").mode.toString(8), fs.readdirSync("/").join())';
    const shown = run(operator, '/usr/local/bin/node', '-e', script);
    expect(shown).toMatch(/^65532 nonroot 41777 /);
    expect(shown).not.toMatch(/\b(proc|root|work|opt)\b/);
    const provisioner = unpack(join(made, 'dist', 'provisioner.tar'), join(folder, 'provisioner'));
    expect(run(provisioner, '/usr/local/bin/node', '/provisioner.cjs', '--help')).toContain('rke.io');
    // Not ssh itself, which wants a /dev that only a container has.
    expect(run(provisioner, '/bin/sh', '-c', '/usr/local/bin/rke; id -un; command -v ssh')).toMatch(
      /^rke version v1\.8\.14\nnonroot\n\/usr\/bin\/ssh\n$/,
    );
  },
);

test.each([
  [['--base=oci:/nowhere'], /\/nowhere is not an OCI layout: ENOENT/],
  [['--base=local', '--platform=linux/s390x'], /can only make an image for the platform of this machine, linux\//],
  [['--base=local', '--binary=x=/nowhere'], /the program x cannot be read: ENOENT/],
  [['--base=127.0.0.1:1/base:1'], /the registry 127\.0\.0\.1:1 cannot be reached: .*ECONNREFUSED/],
])('%j fails in one line, and leaves nothing behind', async (args, message) => {
  const made = join(folder, 'bad');
  if (!existsSync(made)) emptyFolder('bad');
  const { code, stdout, stderr } = await build(made, args);
  expect(stderr).toMatch(message);
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
  expect({ code, stdout, files: readdirSync(made) }).toEqual({ code: 1, stdout: '', files: [] });
});

test('a build that is interrupted leaves nothing behind', async () => {
  const made = emptyFolder('interrupted');
  const args = [join(root, 'dist', 'cli.cjs'), `--project=${root}`, 'build', '--base=local', '--archive=operator.tar'];
  const child = spawn(process.execPath, args, { cwd: made, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const words = child.stderr.toArray();
  while (!readdirSync(made).some((name) => name.startsWith('operator.tar.')) && child.exitCode === null)
    await new Promise((resolve) => setTimeout(resolve, 1));
  child.kill('SIGINT');
  expect(await ended).toEqual([130, null]);
  expect(Buffer.concat((await words) as Buffer[]).toString()).toBe('kindred: stopped by SIGINT\n');
  expect(readdirSync(made)).toEqual([]);
});

test('an archive that cannot be written', async () => {
  const made = emptyFolder('unwritable');
  writeFileSync(join(made, 'file'), '');
  chmodSync(join(made, 'file'), 0o444);
  const failed = await build(made, [`--base=oci:${layout}`, '--operator=provisioner', '--archive=file/x.tar']);
  expect(failed).toMatchObject({ code: 1, stderr: expect.stringMatching(/file\/x\.tar cannot be written/) as string });
});
