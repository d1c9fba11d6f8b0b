import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { useControlPlane } from '../../support/use-control-plane';
import { waitFor } from '../../../testing/wait-for';
import { name, version } from '../../../package.json';
import { packKindred } from '../package/consumer';
import { codeBlocks, commandsIn, type CodeBlock } from '../../support/code-blocks';
import { temporaryFolder } from '../../support/temporary-folder';

jest.setTimeout(590_000);

const page = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'add-your-own-kind.md'), 'utf8');
const plane = useControlPlane({ components: 'full' });
const tarball = `${name}-${version}.tgz`;
const background: ChildProcess[] = [];
let cwd = temporaryFolder('kindred-page-');

beforeAll(async () => copyFileSync((await packKindred(temporaryFolder('kindred-packed-'))).file, join(cwd, tarball)));

afterAll(() => {
  for (const { pid } of background) if (pid !== undefined) process.kill(-pid, 'SIGKILL');
});

const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  ...{ KUBECONFIG: plane.adminKubeconfig, npm_config_prefer_offline: 'true', npm_config_audit: 'false' },
});

/** Runs one command as a shell does. @returns what it printed; a failing one rejects */
async function run(line: string): Promise<string> {
  if (line === `npm pack ../${name}`) return ''; // done, with the package of this working tree
  const [, folder] = /^cd (\S+)$/.exec(line) ?? [];
  if (folder !== undefined) {
    cwd = join(cwd, folder);
    return '';
  }
  if (!line.endsWith('&')) return (await promisify(execFile)('sh', ['-c', line], { cwd, env: environment() })).stdout;
  // A process group of its own, so that what npx starts ends with it.
  const stdio = ['ignore', 'ignore', 'inherit'] as const;
  background.push(
    spawn('sh', ['-c', line.slice(0, -1)], { cwd, env: environment(), detached: true, stdio: [...stdio] }),
  );
  return '';
}

/** Follows the page: writes its files and runs its commands, in their order. @returns what was printed, by command */
async function follow(blocks: readonly CodeBlock[]): Promise<ReadonlyMap<string, string>> {
  const printed = new Map<string, string>();
  for (const block of blocks) {
    const [, file] = /^file=(\S+)$/.exec(block.note) ?? [];
    if (file !== undefined) writeFileSync(join(cwd, file), block.text);
    for (const { line, fails } of commandsIn([block])) {
      if (fails) await expect(run(line)).rejects.toThrow('spec.page');
      else printed.set(line, await run(line));
    }
  }
  return printed;
}

test('every command of the page does what it says', async () => {
  const printed = await follow(codeBlocks(page));
  expect(printed.get('npx kindred dev --once')).toMatch(/^Website website-samples\/hello Ready=True/m);
  expect(printed.get('npx kindred dev --once --file=site.yaml')).toMatch(/^Website website-samples\/mine Ready=True/m);
  const tree = printed.get('npx kindred render site.yaml -o tree');
  expect(tree).toContain('ConfigMap mine');
  expect(page).toContain(`\`\`\`\n${tree}\`\`\`\n`);
  expect(printed.get('npm test')).toMatch(/^# pass 2$/m);
  expect(printed.get('kubectl get site')).toMatch(/^NAME +PODS +READY +AGE\nmine +1 +True /);
  expect(printed.get('npx kindred build --base=local')).toMatch(/^sha256:[0-9a-f]{64}\n$/);
  for (const file of [
    'dist/operator.tar',
    'dist/manifests/2-platform.yaml',
    'dist/chart/Chart.yaml',
    'docs/kinds/README.md',
  ])
    expect(existsSync(join(cwd, file))).toBe(true);
  expect(printed.get('npx tsx bucket-operator.ts --help')).toContain('(default: all of buckets.storage.example.com)');
  expect(printed.get('npx tsx versions.ts')).toBe('nothing is lost\n');
});

test('its operator ends in good order', async () => {
  const [operator] = background.splice(0);
  const group = -operator!.pid!;
  process.kill(group, 'SIGTERM');
  // npx ends at once, and what it has run a moment later.
  await waitFor(
    () => {
      try {
        return !process.kill(group, 0);
      } catch {
        return true;
      }
    },
    { describe: 'all processes of the command to end', timeout: 30_000 },
  );
});
