import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { owned, type ResourceType } from '../../constructs/kube/resource-type';
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

test.each([50, 400])('what is saved %d ms after another change is what runs, and nothing else is said', async (ms) => {
  const from = start.stdout.length;
  save(source(`'first ' + spec.text`, `, at${ms}: z.string().max(9).optional().describe('A field.')`));
  await new Promise((resolve) => setTimeout(resolve, ms));
  save(source(`'after ${ms} ' + spec.text`));
  await reads(`after ${ms} hi`);
  await start.says(new RegExp(`^Loaded anew in .*: .*operator notes`, 'm'));
  expect(start.stdout.slice(from)).not.toMatch(/should not happen|What ran before goes on/);
  save(source('`${spec.text}!`'));
  await reads('hi!');
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

describe('a kind that gets a second version', () => {
  /** Version v2, whose `body` is the `text` of v1. */
  const second = (toBody = 'text', rest = ''): string =>
    source('spec.body')
      .replace("version: 'v1'", "version: 'v2'")
      .replace(
        "text: z.string().max(99).describe('The text.')",
        `body: z.string()${rest}.max(99).describe('The body.')`,
      )
      .replace("spec: { text: 'hi' }", "spec: { body: 'second' }")
      .replace(
        'owns:',
        `versions: [{
    version: 'v1',
    spec: z.object({ text: z.string().max(99).describe('The text.') }),
    toCurrent: ({ text }) => ({ body: ${toBody} }),
    fromCurrent: ({ body }) => ({ text: body }),
  }],
  owns:`,
      );
  const type = (version: string): ResourceType => ({
    ...{ apiVersion: `notes.example.com/${version}`, kind: 'Note', plural: 'notes', scope: 'Namespaced' },
  });
  const ref = (name: string) => ({ namespace: note.namespace, name });
  const createOld = (name: string, text: string) =>
    client.create(
      type('v1'),
      { apiVersion: 'notes.example.com/v1', kind: 'Note', metadata: ref(name), spec: { text } },
      { fieldManager: 'test' },
    );

  test('is converted on this machine, by what was saved last', async () => {
    await createOld('early', 'early');
    save(second());
    await reads('second');
    // It is stored in v1.
    expect(await client.get(type('v2'), ref('early'))).toMatchObject({ spec: { body: 'early' } });
    save(second('`${text}!`'));
    await waitFor(
      async () => isDeepStrictEqual((await client.get(type('v2'), ref('early')))?.spec, { body: 'early!' }),
      {
        describe: 'the new conversion',
      },
    );
  });

  test('keeps its conversion when the API server refuses the next CRD', async () => {
    save(source('spec.text'));
    await start.says(
      /storedVersions.*\nObjects may be stored in that version\. Keep it .*\nWhat ran before goes on\.$/m,
    );
    expect(await client.get(type('v2'), ref('early'))).toMatchObject({ spec: { body: 'early!' } });
  });

  test('is told what breaks', async () => {
    save(second('text', '.min(3)'));
    await start.says(
      /^Breaking changes of the CRD notes\.notes\.example\.com, for objects and clients that are there already:\n {2}v2 spec\.body: minLength 3 is new$/m,
    );
  });

  test('is loaded anew when what keeps its objects from being converted is mended', async () => {
    const third = (toBody: string, sample: string): string =>
      second()
        .replace("version: 'v2'", "version: 'v3'")
        .replace("body: 'second'", `body: '${sample}'`)
        .replace(
          'versions: [{',
          `versions: [{
    version: 'v2',
    spec: z.object({ body: z.string().max(99).describe('The body.') }),
    toCurrent: ({ body }) => ({ body: ${toBody} }),
    fromCurrent: ({ body }) => ({ body }),
  }, {`,
        );
    // The first object of a list can be converted, the second cannot. Its error has the line of the source, whatever was collected.
    save(third('(globalThis.gc?.(), new Date(body === "second" ? body : 0).toISOString())', 'third'));
    await start.says(
      /^Conversion webhook: .* Note notes-samples\/hello .*\n.* Invalid time value \(note\.ts:\d+:\d+\)$/m,
    );
    save(third('body', 'mended'));
    await reads('mended');
    // However often it was tried.
    expect(start.stdout.match(/^Conversion webhook: .* Note notes-samples\/hello .*v3:\n/gm)).toHaveLength(1);
  });
});

test('Ctrl-C amid a reload ends it, and leaves nothing behind', async () => {
  save(source('`${spec.text}?`'));
  await new Promise((resolve) => setTimeout(resolve, 300));
  start.signal('SIGINT');
  expect(await start.ended).toMatchObject({ code: 0, stderr: '' });
  expectNothingLeft(start);
});
