import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/temporary-folder';
import { packKindred } from './consumer';

jest.setTimeout(300_000);

let tarball: string;
beforeAll(async () => (tarball = (await packKindred(temporaryFolder('kindred-packed-'))).file));

// Of ES modules and the rest of the day: test/e2e/docs/add-your-own-kind.slow.test.ts.
test.each(['commonjs', 'esm'])(
  'a new project of %s modules compiles, passes its test, and renders its sample',
  (modules) => {
    const folder = temporaryFolder('kindred-new-');
    const run = (cwd: string, command: string, ...args: readonly string[]): string =>
      execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
    const made = run(
      ...([folder, 'npx', '--yes', '--prefer-offline', `--package=${tarball}`, 'kindred', 'new', 'web-proxy'] as const),
      ...[`--modules=${modules}`, `--kindred=file:${tarball}`],
    );
    expect(made).toContain('cd web-proxy && npm install');
    const project = join(folder, 'web-proxy');
    run(project, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund');
    expect(run(project, 'npm', 'test')).toMatch(/^# pass 2$/m);
    run(project, 'npx', 'kindred', 'synth', '--image=x:1');
    expect(run(project, 'npx', 'kindred', 'render', 'dist/manifests/3-samples.yaml', '-o', 'tree')).toBe(
      'WebProxy web-proxy-samples/hello\n└─ Deployment hello\n',
    );
  },
);
