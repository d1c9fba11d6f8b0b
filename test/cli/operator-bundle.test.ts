import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { compileOperator, operatorFor } from '../../cli/operator-bundle';
import type { ProjectOperator } from '../../cli/project';
import { Cluster, HelloApp, Kubeconfig } from '../../constructs/kinds';
import { kindredProject, projectOf } from '../support/kindred-project';
import { linkPackages } from '../support/project-folder';
import { temporaryFolder } from '../support/temporary-folder';

test.each([
  [[], 'operator'],
  [['--help'], 'operator'],
  [['--kinds'], 'operator'],
  [['--kinds=nonsense', '--unknown=1', 'positional'], 'operator'],
  [[`--kinds=${HelloApp.crdName}`, '--log-level', 'debug'], 'operator'],
  [[`--kinds=${Cluster.crdName}`], 'provisioner'],
  [['--kinds', `${HelloApp.crdName}, ${Kubeconfig.crdName}`, '--runs=1'], 'provisioner'],
])('kindred run %j becomes the %s', (args, name) => {
  expect(operatorFor(kindredProject, args).name).toBe(name);
});

describe('the program of an operator for dev', () => {
  const root = join(temporaryFolder('kindred-dev-program-'), 'shop');
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  };

  beforeAll(() => {
    mkdirSync(root);
    linkPackages(root);
    // As npm installs it: the library's entry points are in a package.
    write('node_modules/kindred/package.json', JSON.stringify({ name: 'kindred', exports: { './*': './library.js' } }));
    write('node_modules/kindred/library.js', "throw new Error('a second copy of the library');");
    write('node_modules/common/package.json', '{ "name": "common", "main": "index.js" }');
    write('node_modules/common/index.js', 'exports.common = "common";');
    write(
      'node_modules/esm/package.json',
      '{ "name": "esm", "type": "module", "exports": { "import": "./index.js" } }',
    );
    write('node_modules/esm/index.js', 'export default () => "esm";');
    write('node_modules/both/package.json', '{ "name": "both", "type": "module", "exports": "./index.js" }');
    write('node_modules/both/index.js', 'export default () => "both";');
    write('shared/package.json', '{ "name": "shared", "main": "index.ts" }');
    write('shared/index.ts', 'export const shared: string = "shared";');
    symlinkSync(join(root, 'shared'), join(root, 'node_modules/shared'));
  });

  const compile = async (program: string) => {
    write('operator.ts', program);
    return compileOperator(
      { ...projectOf('shop', {}), root },
      {
        ...(projectOf('shop', { program: join(root, 'operator.ts') }).operators[0] as ProjectOperator),
      },
    );
  };

  test('requires packages, and has in it what is linked, and ES modules as their importers expect them', async () => {
    const { file, code, sources } = await compile(`
      import { common } from 'common';
      import esm from 'esm';
      import both from 'both';
      import { shared } from 'shared';
      console.log(common, esm(), both(), shared, require.main === module);
    `);
    expect(execFileSync(process.execPath, [file], { encoding: 'utf8' })).toBe('common esm both shared true\n');
    expect(code).toContain(JSON.stringify(join(root, 'node_modules/common/index.js')));
    expect(sources.map((source) => source.slice(root.length + 1)).sort()).toEqual(['operator.ts', 'shared/index.ts']);
  });

  test('names what may be loaded before its own code: what Kindred uses, and none of the other packages', async () => {
    const { packages } = await compile(
      "import 'common'; import 'cdk8s-plus-27'; import { main } from 'kindred/operator'; main({ kinds: [] });",
    );
    const names = packages.map((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1]);
    expect(names).toEqual(expect.arrayContaining(['undici', 'prom-client', 'cdk8s', 'cdk8s-plus-27', 'zod']));
    expect(names).not.toContain('common');
  });

  test('has one copy of the library, that of the command', async () => {
    const { file } = await compile(`
      import { owned } from 'kindred/constructs';
      import { main } from 'kindred/operator';
      console.log(owned.ConfigMap.kind, typeof main);
    `);
    expect(execFileSync(process.execPath, [file], { encoding: 'utf8' })).toBe('ConfigMap function\n');
  });

  test('lacks a package that is missing', async () => {
    await expect(compile("import 'nowhere';")).rejects.toThrow('operator.ts:1:8: Could not resolve "nowhere"');
  });
});
