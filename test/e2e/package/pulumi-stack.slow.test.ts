import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Consumer } from './consumer';

jest.setTimeout(300_000);

let app: Consumer;

beforeAll(async () => {
  app = await Consumer.of('examples/pulumi-stack');
});

afterAll(() => app.remove());

const TOKEN = 'CANARY-5d1f';
const KUBECONFIG = JSON.stringify({
  ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'a' },
  contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
  clusters: [{ name: 'a', cluster: { server: 'https://127.0.0.1:1' } }],
  users: [{ name: 'a', user: { token: 'none' } }],
});

/** Runs the program against mocks, as Pulumi's documentation has it for tests. `load` gets the program. */
function underMocks(load: string): string {
  return `
    const seen = [];
    pulumi.runtime.setAllConfig({ 'shop:kubeconfig': ${JSON.stringify(KUBECONFIG)}, 'shop:image': 'nginx:1', 'shop:token': '${TOKEN}' });
    await pulumi.runtime.setMocks({
      newResource: ({ name, type, inputs }) => { seen.push([type, name, inputs]); return { id: name, state: inputs }; },
      call: () => ({}),
    }, 'shop', 'dev');
    const program = await ${load};
    await pulumi.runtime.disconnect();
    const { installedKinds } = program;
    const kinds = await new Promise((resolve) => installedKinds.apply(resolve));
    console.log(JSON.stringify({ kinds, resources: [...program.resources], seen: seen.map(([type, name]) => type + ' ' + name).sort(), inputs: seen.map(([,, inputs]) => inputs) }));
  `;
}

interface Seen {
  readonly kinds: readonly string[];
  readonly resources: readonly string[];
  readonly seen: readonly string[];
  readonly inputs: readonly unknown[];
}

test('a foreign stack compiles with the package and registers the same, as CommonJS and as an ES module', async () => {
  await app.tsc('-p', 'tsconfig.json');
  await app.tsc('-p', 'tsconfig.esm.json');
  await app.tsc('-p', 'tsconfig.json', '--noEmit', '--module', 'esnext', '--moduleResolution', 'bundler');

  const common = await app.node(
    '-e',
    `const pulumi = require('@pulumi/pulumi'); (async () => {${underMocks("require('./index.js')")}})()`,
  );
  const module = await app.node(
    ...['--input-type=module', '-e'],
    `import * as pulumi from '@pulumi/pulumi'; ${underMocks("import('./index.mjs')")}`,
  );
  const ran = JSON.parse(common) as Seen;
  expect((JSON.parse(module) as Seen).seen).toEqual(ran.seen);
  expect(ran.kinds).toEqual(['helloapps.apps.anupam.com']);
  expect(ran.seen).toEqual(
    expect.arrayContaining([
      'kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition platform/crds/helloapps.apps.anupam.com',
      'kubernetes:apps.anupam.com/v1:HelloApp web',
      'kubernetes:apps/v1:Deployment orders/Deployment-orders-v1',
      'kubernetes:core/v1:Secret settings/token',
    ]),
  );
  expect(ran.seen.filter((one) => one.includes('MicroServiceDeploy'))).toEqual([]);
  // The secret arrives where it was put: in the arguments of the component, the ConfigMap of its children, and the Secret.
  expect(JSON.stringify(ran.inputs).split(TOKEN).length - 1).toBe(3);
});

test("a compiler with its own defaults, which also looks into declarations, finds nothing wrong in the package's", async () => {
  const program = `
    import * as constructs from 'kindred/constructs';
    import * as operator from 'kindred/operator';
    import * as stacks from 'kindred/stacks';
    export const names: number = [constructs, operator, stacks].map((all) => Object.keys(all));
  `;
  writeFileSync(join(app.folder, 'plain.ts'), program);
  const said = await app.tsc('--noEmit', 'plain.ts').catch((error: unknown) => (error as Error).message);
  // What other packages declare is theirs to mend; the program's own mistake shows that the compiler got this far.
  const errors = said.split('\n').filter((line) => /^(plain\.ts|node_modules\/kindred\/).*: error TS/.test(line));
  expect(errors).toEqual([expect.stringMatching(/^plain\.ts\(5,\d+\): error TS2322: /)]);
});

test('every export of kindred/stacks can be imported by name', async () => {
  const required = await app.node('-p', "Object.keys(require('kindred/stacks')).sort().join()");
  const imported = await app.node(
    ...['--input-type=module', '-e'],
    `import * as all from 'kindred/stacks'; console.log(Object.keys(all).filter((key) => !/^(default|module\\.exports|__esModule)$/.test(key)).sort().join())`,
  );
  expect(imported).toBe(required);
  for (const name of ['ConstructResources', 'KindComponent', 'PlatformComponent', 'RemoteCluster']) {
    expect(required.trim().split(',')).toContain(name);
  }
});

test('without @pulumi/command all but a RemoteCluster works, and that says what to install', async () => {
  rmSync(join(app.folder, 'node_modules', '@pulumi', 'command'), { recursive: true });
  const program = `
    const pulumi = require('@pulumi/pulumi');
    (async () => {
      const seen = [];
      await pulumi.runtime.setMocks({
        newResource: ({ name, inputs }) => { seen.push(name); return { id: name, state: inputs }; },
        call: () => ({}),
      });
      const { ConstructResources, RemoteCluster } = require('kindred/stacks');
      new ConstructResources('tree', { build: () => undefined });
      const nodes = [{ address: '10.0.0.1', user: 'root', roles: ['controlplane', 'etcd'], hostKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0' }];
      let failure;
      try {
        new RemoteCluster('prod', { distribution: 'k3s', version: 'v1.30.4+k3s1', sshKey: 'key', nodes });
      } catch (error) { failure = error; }
      await pulumi.runtime.disconnect();
      console.log(JSON.stringify({ seen, message: failure?.message, isForPeople: pulumi.RunError.isInstance(failure) }));
    })();`;
  expect(JSON.parse(await app.node('-e', program))).toEqual({
    seen: ['tree'],
    message: expect.stringMatching(/needs the package @pulumi\/command, .* npm install @pulumi\/command$/) as string,
    isForPeople: true,
  });
  writeFileSync(join(app.folder, 'plain.ts'), "import 'kindred/stacks';");
  const said = await app.tsc('--noEmit', 'plain.ts').catch((error: unknown) => (error as Error).message);
  expect(said.split('\n').filter((line) => line.startsWith('node_modules/kindred/'))).toEqual([]);
});
