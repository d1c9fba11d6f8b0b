import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crdManifest } from '../../constructs/crd';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient } from '../../operator/client/api-client';
import { kubeconfigClient } from '../../testing';
import { useControlPlane } from '../support/use-control-plane';
import { kubectl } from '../../testing/kubectl';
import { waitFor } from '../../testing/wait-for';
import { Shop } from '../constructs/kind/versions-kind';
import { codeBlocks, commandsIn, wordsOf } from '../support/code-blocks';

// The steps of docs/operating.md, "Dropping a version of a kind".
const plane = useControlPlane({ components: 'api' });
const page = readFileSync(join(__dirname, '..', '..', 'docs', 'operating.md'), 'utf8');
const [, section = ''] = page.split('## Dropping a version of a kind\n', 2);
const [text = ''] = section.split(/^## /m, 1);
const blocks = codeBlocks(text);
const commands = commandsIn(blocks).map(({ line }) => line);
const CRD: ResourceType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
};

let client: ApiClient;
beforeAll(async () => {
  client = await kubeconfigClient(plane.adminKubeconfig);
});
afterAll(() => client.close());

/** The CRD with these versions, of which one is stored. Nothing converts: this is about what is stored. */
function crdWith(names: readonly string[], stored: string): string {
  const crd = crdManifest(Shop, { conversionWebhook: { service: { name: 'unused', namespace: 'unused' } } });
  const spec = crd.spec as { readonly versions: readonly { readonly name: string }[] };
  const versions = spec.versions
    .filter(({ name }) => names.includes(name))
    .map((version) => ({ ...version, storage: version.name === stored }));
  return JSON.stringify({ ...crd, spec: { ...spec, versions, conversion: { strategy: 'None' } } });
}

function install(names: readonly string[], stored: string): ReturnType<typeof kubectl> {
  return kubectl(plane, ['apply', '--server-side', '-f', '-'], { input: crdWith(names, stored) });
}

/** Runs one of the page's commands, which may have one pipe. */
async function run(line: string): Promise<string> {
  let input: string | undefined;
  for (const part of line.split(' | ')) {
    const result = await kubectl(plane, wordsOf(part).slice(1), input === undefined ? {} : { input });
    expect(result).toMatchObject({ code: 0 });
    input = result.stdout;
  }
  return input ?? '';
}

async function createStored(name: string, version: string): Promise<void> {
  await waitFor(async () => JSON.stringify(await client.get(CRD, { name: Shop.crdName })).includes('Established'));
  const type = { ...Shop.type, apiVersion: `${Shop.group}/${version}` };
  const metadata = { name, namespace: 'default' };
  const body = { apiVersion: type.apiVersion, kind: type.kind, metadata, spec: { image: 'a' } };
  await waitFor(() => client.create(type, body, { fieldManager: 'e2e' }), { describe: 'the version to be served' });
}

/** The names of all Shops, or why they cannot be read. */
async function shops(): Promise<string> {
  const { stdout, stderr } = await kubectl(plane, [
    'get',
    Shop.crdName,
    '-A',
    '-o',
    'jsonpath={.items[*].metadata.name}',
  ]);
  return stdout + stderr;
}

test('a version goes after the steps of the documentation, and not before', async () => {
  const [look = '', migrate = '', patch = ''] = commands;
  expect(commands).toHaveLength(3);
  expect(await install(['v1', 'v1beta1'], 'v1beta1')).toMatchObject({ code: 0 });
  await createStored('old', 'v1beta1');
  expect(await install(['v1', 'v1beta1'], 'v1')).toMatchObject({ code: 0 });
  expect(JSON.parse(await run(look))).toEqual(['v1beta1', 'v1']);

  const refused = await install(['v1'], 'v1');
  expect(refused.code).not.toBe(0);
  const words =
    blocks
      .find(({ language }) => language === '')
      ?.text.replace(/\s+/g, ' ')
      .trim() ?? 'no words';
  expect(refused.stderr).toContain(words);
  expect(await shops()).toBe('old');

  // The API server believes whoever patches first.
  await run(patch);
  expect(await install(['v1'], 'v1')).toMatchObject({ code: 0 });
  await waitFor(async () => (await shops()).includes('v1beta1'), { describe: 'the list to fail' });
  expect(await install(['v1', 'v1beta1'], 'v1')).toMatchObject({ code: 0 });
  await waitFor(async () => (await shops()) === 'old', { describe: 'the list to succeed' });

  await run(migrate);
  await run(patch);
  expect(JSON.parse(await run(look))).toEqual(['v1']);
  expect(await install(['v1'], 'v1')).toMatchObject({ code: 0 });
  await waitFor(async () => {
    const { stdout } = await kubectl(plane, ['get', '--raw', `/apis/${Shop.group}`]);
    return !stdout.includes('v1beta1');
  });
  expect(await shops()).toBe('old');
}, 120_000);
