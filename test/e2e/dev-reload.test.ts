import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { owned } from '../../constructs/kube/resource-type';
import type { ApiClient } from '../../operator/client/api-client';
import { leaseType, recordOf } from '../../operator/leader/lease';
import { kubeconfigClient } from '../../testing';
import { waitFor } from '../../testing/wait-for';
import { installKindred } from '../support/project-folder';
import { Start, expectNothingLeft, folder, startTimeoutMs } from './dev-process';

jest.setTimeout(startTimeoutMs);

const source = (note: string, more = ''): string => `import { k8s } from 'cdk8s-plus-27';
import { defineKind, owned } from 'kindred/constructs';
import { z } from 'zod';

export const Note = defineKind({
  group: 'notes.example.com', version: 'v1', kind: 'Note', plural: 'notes', scope: 'Namespaced',
  description: 'A note.',
  spec: z.object({ text: z.string().max(99).describe('The text.')${more} }),
  owns: [owned.ConfigMap],
  samples: [{ name: 'hello', spec: { text: 'hi' } }],
  children(scope, { metadata: { name }, spec }) {
    new k8s.KubeConfigMap(scope, 'note', { metadata: { name: name + '-note' }, data: { note: ${note} } });
  },
});
`;

let project: string;
let start: Start;
let client: ApiClient;
const save = (text: string): void => writeFileSync(join(project, 'note.ts'), text);
const note = { namespace: 'notes-samples', name: 'hello-note' };
const lease = async () =>
  recordOf((await client.get(leaseType, { namespace: 'notes-system', name: 'kindred-notes' })) as KubeObject);

/** Waits until the child has this text. */
async function reads(text: string): Promise<void> {
  await waitFor(
    async () => {
      const child = await client.get(owned.ConfigMap, note);
      return child !== undefined && JSON.stringify(child).includes(`"note":${JSON.stringify(text)}`);
    },
    {
      describe: `the child to say ${text}`,
      timeout: 30_000,
      interval: 20,
    },
  );
}

beforeAll(async () => {
  project = mkdtempSync(join(folder, 'notes-'));
  installKindred(project);
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'notes', kindred: { kinds: 'note.ts' } }));
  save(source('spec.text'));
  start = new Start({ project });
  await start.says(/export KUBECONFIG=(\S+)/);
  client = await kubeconfigClient(/export KUBECONFIG=(\S+)/.exec(start.stdout)?.[1] ?? '');
});
afterAll(async () => {
  await client.close();
  start.signal('SIGINT');
  await start.ended;
});

test('a saved file is what the operator runs, by another process that has got the Lease from the one before', async () => {
  await reads('hi');
  const before = await lease();
  save(source('`${spec.text}!`'));
  await reads('hi!');
  const after = await lease();
  expect(after.holderIdentity).not.toBe(before.holderIdentity);
  expect(after.leaseTransitions).toBe(before.leaseTransitions + 1);
  await start.says(/^Loaded anew in .*: operator notes\.$/m);
});

test('a mistake is told with its line, and what ran before goes on', async () => {
  const { holderIdentity } = await lease();
  save(source('spec.text +'));
  await start.says(/^note\.ts:12:\d+: Unexpected "}"\nWhat ran before goes on\.$/m);
  save(
    source("(() => { throw new Error('no luck') })()").replace(
      'export const',
      "throw new Error('at import');\nexport const",
    ),
  );
  await start.says(/^note\.ts:5:7: at import\nWhat ran before goes on\.$/m);
  await client.delete(owned.ConfigMap, note, {});
  await reads('hi!');
  expect((await lease()).holderIdentity).toBe(holderIdentity);
});

test('a mistake in a file of a new folder is told, and is gone when that file is mended', async () => {
  mkdirSync(join(project, 'lib'));
  const lib = (text: string): void => writeFileSync(join(project, 'lib/end.ts'), text);
  lib('export const end = ;');
  save(source('spec.text + end').replace('import { z }', "import { end } from './lib/end';\nimport { z }"));
  await start.says(/^lib\/end\.ts:1:20: Unexpected ";"\nWhat ran before goes on\.$/m);
  lib("export const end = ' END';");
  await reads('hi END');
});

test('a field that is added is in the CRD before the operator reads it, and goes again', async () => {
  save(source('spec.text + spec.end', ", end: z.string().max(9).default('?').describe('The end.')"));
  await reads('hi?');
  await start.says(/^Loaded anew in .*: CRD notes\.notes\.example\.com, operator notes\.$/m);
  save(source('spec.text'));
  await reads('hi');
});

test('a sample that is changed is applied', async () => {
  save(source('spec.text').replace("text: 'hi'", "text: 'bye'"));
  await reads('bye');
});

test('Ctrl-C amid a reload ends it, and leaves nothing behind', async () => {
  save(source('`${spec.text}?`'));
  await new Promise((resolve) => setTimeout(resolve, 300));
  start.signal('SIGINT');
  expect(await start.ended).toMatchObject({ code: 0, stderr: '' });
  expectNothingLeft(start);
});
