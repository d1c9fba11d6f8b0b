import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { kinds } from '../../../constructs/kinds';
import { serverImage } from '../../../local';
import { useControlPlane } from '../../support/use-control-plane';
import { kubectl, kubectlOrThrow } from '../../../testing/kubectl';
import { codeBlocks, commandsIn, filesIn, wordsOf } from '../../support/code-blocks';
import { goTool, goToolsUnavailable } from '../../support/go-tools/build';
import { helmOrThrow, helmVersions } from '../../support/helm';
import { kindredBuild } from '../../support/kindred-build';
import { startRegistry } from '../../support/registry';
import { temporaryFolder } from '../../support/temporary-folder';
import { describeOnNodes } from '../node/on-nodes';

jest.setTimeout(300_000);

// The commands of docs/installing.md, with this machine's Node.js as the base of the image.
const root = join(__dirname, '..', '..', '..');
const cli = join(root, 'dist', 'cli.cjs');
const page = readFileSync(join(root, 'docs', 'installing.md'), 'utf8');
const section = (title: string): string => page.split(`## ${title}\n`, 2)[1]!.split(/^## /m, 1)[0]!;
const linesOf = (title: string): readonly string[] =>
  commandsIn(codeBlocks(section(title))).map(({ line }) => line.replace(/ +#.*$/, ''));

const build = async (args: readonly string[], folder: string): Promise<void> => {
  expect(await kindredBuild(['--base=local', ...args], { cwd: folder })).toMatchObject({ code: 0 });
};
const synth = (args: readonly string[], folder: string): string =>
  execFileSync(process.execPath, [cli, `--project=${root}`, 'synth', ...args], {
    cwd: folder,
    encoding: 'utf8',
    stdio: 'pipe',
  });

describeOnNodes('on your own machine, from nothing', () => {
  const plane = useControlPlane({ nodes: 1 });

  test('the commands install an operator that reconciles the samples', async () => {
    const folder = temporaryFolder('kindred-installing-');
    const here = (word: string): string => (word.startsWith('dist/') ? join(folder, word) : word);
    let printed = '';
    for (const line of linesOf('On your own machine, from nothing')) {
      const [program, ...args] = wordsOf(line);
      const given = args.slice(args.indexOf('--') + 1);
      if (line === 'npm ci' || line === 'kind create cluster') continue; // done, by this checkout and by these nodes
      if (line === 'npm run image') await build([], folder);
      else if (line.startsWith('npm run synth -- ')) synth(given, folder);
      else if (line.startsWith('kind load image-archive ')) await plane.importImage(here(args.at(-1)!));
      else if (program === 'kubectl') printed = await kubectlOrThrow(plane, args.map(here));
      else throw new Error(`the test does not know how to run: ${line}`);
    }
    for (const { kind } of kinds) expect(printed).toContain(`${kind.toLowerCase()}.`);
    const operator = ['-n', 'kindred-system', 'get', 'pods', '-o', 'jsonpath={.items[*].status.phase}'];
    expect(await kubectlOrThrow(plane, operator)).toBe('Running Running');
  });
});

const why = goToolsUnavailable();
if (why !== undefined) console.warn(why);

(why === undefined ? test : test.skip)(
  'without internet access: the image keeps its digest in the registry inside',
  async () => {
    const folder = temporaryFolder('kindred-air-gapped-');
    const registry = await startRegistry(join(folder, 'registry'));
    try {
      const lines = linesOf('Without internet access').map((line) =>
        line.replaceAll('registry.internal', registry.host),
      );
      expect(lines).toHaveLength(5);
      const [, image, manifests, unpack, push] = lines as [string, string, string, string, string];
      const result = await kindredBuild(['--base=local', ...wordsOf(image).slice(4)], { cwd: folder });
      expect(result).toMatchObject({ code: 0 });
      synth(wordsOf(manifests).slice(4), folder);
      expect(readFileSync(join(folder, 'dist/manifests/2-platform.yaml'), 'utf8')).toContain(
        `image: ${registry.host}/team/`,
      );
      mkdirSync(join(folder, 'operator'));
      expect(unpack).toBe('mkdir operator && tar -xf operator.tar -C operator');
      execFileSync('tar', ['-xf', 'operator.tar', '-C', 'operator'], { cwd: folder });
      const [, ...args] = wordsOf(push);
      const pushed = execFileSync(goTool('crane'), args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
      expect(pushed.trim()).toBe(`${registry.host}/team/kindred-operator@${result.stdout.trim()}`);
    } finally {
      await registry.end();
    }
  },
);

describe('only images that you trust', () => {
  const plane = useControlPlane({ components: 'api' });
  const create = (pod: object) => {
    const metadata = { name: 'p', namespace: 'kindred-system' };
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata, spec: pod });
    return kubectl(plane, ['create', '--dry-run=server', '-f', '-'], { input });
  };
  const trusted = `registry.example.com/team/kindred-operator@sha256:${'a'.repeat(64)}`;
  const container = (image: string): object => ({ name: 'c', image });

  test('the policy admits these images by digest, and no others', async () => {
    const { 'policy.yaml': input } = filesIn(codeBlocks(section('Only images that you trust')));
    await kubectlOrThrow(plane, ['create', 'namespace', 'kindred-system']);
    await kubectlOrThrow(plane, ['create', 'serviceaccount', 'default', '-n', 'kindred-system']);
    await kubectlOrThrow(plane, ['apply', '--server-side', '-f', '-'], input);
    const refused = async (pod: object): Promise<boolean> => {
      const { code, stderr } = await create(pod);
      if (code !== 0)
        expect(stderr).toContain(
          'the images of kindred-system are those of registry.example.com/team, by digest; not ',
        );
      return code !== 0;
    };
    // A policy comes into force a moment after it is made.
    const bad = { containers: [container('registry.example.com/team/kindred-operator:0.1.0')] };
    while (!(await refused(bad)));
    expect(await create({ containers: [container(trusted)] })).toMatchObject({ code: 0 });
    expect(await refused({ containers: [container(trusted)], initContainers: [{ name: 'i', image: 'busybox' }] })).toBe(
      true,
    );
    expect(await refused({ containers: [container(`evil.example.com/${trusted}`)] })).toBe(true);
  });
});

(why === undefined ? describeOnNodes : describe.skip)('with Helm', () => {
  const plane = useControlPlane({ nodes: 1 });
  const image = 'registry.example.com/team/kindred-operator:0.1.0';

  test.each(helmVersions)('the commands install an operator that works, with %s', async (version) => {
    const folder = temporaryFolder('kindred-helm-');
    const run = (args: readonly string[]): string => helmOrThrow(version, args, plane.adminKubeconfig);
    await build([`--archive=${join(folder, 'operator.tar')}`, `--tag=${image}`], folder);
    await plane.importImage(join(folder, 'operator.tar'));
    const [make, install, upgrade, ...more] = linesOf('With Helm').map((line) => wordsOf(line));
    expect(more).toEqual([]);
    synth(make!.slice(3), folder);
    const chart = (words: readonly string[]): readonly string[] =>
      words.slice(1).map((word) => (word === 'dist/chart' ? join(folder, word) : word));
    run(chart(install!));

    const object = { metadata: { name: 'hello', namespace: 'kindred-samples' }, spec: { image: serverImage } };
    const hello = JSON.stringify({ apiVersion: 'apps.anupam.com/v1', kind: 'HelloApp', ...object });
    await kubectlOrThrow(plane, ['apply', '-f', '-'], hello);
    const wait = ['-n', 'kindred-samples', 'wait', 'helloapp/hello', '--for=condition=Ready', '--timeout=60s'];
    await kubectlOrThrow(plane, wait);

    run(chart(upgrade!));
    const ready = ['-n', 'kindred-system', 'get', 'deployments', '-o', 'jsonpath={.items[*].status.readyReplicas}'];
    expect(await kubectlOrThrow(plane, ready)).toBe('3');
    run(['uninstall', 'kindred', '-n', 'kindred-system', '--wait']);
    await kubectlOrThrow(plane, wait);
    await kubectlOrThrow(plane, ['-n', 'kindred-samples', 'delete', 'helloapp', 'hello']);
  });
});
