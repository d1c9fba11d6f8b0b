import { k8s } from 'cdk8s-plus-27';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { defineKind, owned } from '../../constructs';
import type { ResourceType } from '../../constructs/kube/resource-type';
import { runPlans } from '../../operator/run-plans';
import { TestEnvironment, faults, when } from '../../testing/public';

jest.setTimeout(180_000);

const ROLES: ResourceType = {
  ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', plural: 'roles', scope: 'Namespaced' },
};

const Note = defineKind({
  ...{ group: 'notes.example.com', version: 'v1', kind: 'Note', plural: 'notes', scope: 'Namespaced' },
  description: 'A note.',
  spec: z.object({ text: z.string().min(1).max(99).describe('The text.') }),
  // Secrets are owned in vain.
  owns: [owned.ConfigMap, owned.Secret],
  children(scope, { metadata: { name }, spec: { text } }) {
    new k8s.KubeConfigMap(scope, 'note', { metadata: { name }, data: { text } });
  },
});

/** Its effect reads a file that the object names. */
const Letter = defineKind({
  ...{ group: 'notes.example.com', version: 'v1', kind: 'Letter', plural: 'letters', scope: 'Namespaced' },
  description: 'A letter.',
  spec: z.object({ file: z.string().min(1).max(99).describe('File with the text.') }),
  status: z.object({ text: z.string().optional().describe('The text.') }),
  conditionTypes: [{ type: 'Sent', description: 'It is sent.' }],
  ...{ owns: [], children: () => undefined },
  effects: [
    {
      ...{ name: 'send', phase: 'apply', plan: 'letter.send', condition: 'Sent', timeoutSeconds: 30 },
      ...{ input: ({ spec: { file } }) => ({ file }), maxAttempts: () => 1 },
    },
  ],
});

/** A kind of two versions. */
const Page = defineKind({
  ...{ group: 'notes.example.com', version: 'v2', kind: 'Page', plural: 'pages', scope: 'Namespaced' },
  description: 'A page.',
  spec: z.object({ lines: z.array(z.string().max(99)).max(9).describe('The text, by line.') }),
  owns: [owned.ConfigMap],
  versions: [
    {
      version: 'v1',
      spec: z.object({ text: z.string().max(99).describe('The text.') }),
      toCurrent({ text }) {
        if (text === 'torn') throw new Error('it is torn');
        return { lines: text.split('/') };
      },
      fromCurrent: ({ lines }) => ({ text: lines.join('/') }),
    },
  ],
  children(scope, { metadata: { name }, spec: { lines } }) {
    new k8s.KubeConfigMap(scope, 'page', { metadata: { name }, data: { count: String(lines.length) } });
  },
});

test('kinds that cannot be run are told, and nothing is left running', async () => {
  const lines: string[] = [];
  const twice = TestEnvironment.start({ kinds: [Note, Note], onProgress: (line) => lines.push(line) });
  await expect(twice).rejects.toThrow(/notes\.notes\.example\.com/);
  const [, port] = /127\.0\.0\.1:(\d+)/.exec(lines.join('\n')) ?? [];
  await expect(fetch(`https://127.0.0.1:${port ?? ''}`)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
});

describe('an environment', () => {
  let env: TestEnvironment;
  beforeAll(async () => {
    env = await TestEnvironment.start({ kinds: [Note, Page] });
  });
  afterAll(async () => {
    await env.stop();
    expect(existsSync(env.plane.dataDir)).toBe(false);
  });

  test('has an operator that works with its own permissions, of which it tells those that were not needed', async () => {
    const ref = { namespace: await env.namespace(), name: 'mine' };
    await env.createOfKind(Note, ref, { text: 'hello' });
    await env.waitUntil(owned.ConfigMap, ref, 'to exist', () => true);
    await env.waitUntil(Note.type, ref, 'to have a status', ({ status }) => status !== undefined);
    expect(await env.permissions()).toEqual({ refused: [], unused: ['pages/status.notes.example.com', 'secrets'] });
    expect(env.operator.log.errors()).toEqual([]);
    expect(await env.operator.readyz()).toMatchObject({ status: 200 });
    const metrics = await env.operator.metrics();
    expect(metrics.sum('kindred_writes_total')).toBeGreaterThan(1);
  });

  test('has an operator that can be stopped and started, which writes nothing that is there', async () => {
    await env.operator.stop();
    const before = (await env.auditLog()).writes().length;
    await env.startOperator();
    expect((await env.auditLog()).writes().slice(before)).toEqual([]);
  });

  test('converts between the versions of a kind, also while no operator runs, and tells what cannot be converted', async () => {
    const ref = { namespace: await env.namespace(), name: 'old' };
    const old: ResourceType = { ...Page.type, apiVersion: 'notes.example.com/v1' };
    await env.create(old, ref, { spec: { text: 'a/b' } });
    await env.waitUntil(owned.ConfigMap, ref, 'to be of two lines', ({ data }) =>
      isDeepStrictEqual(data, { count: '2' }),
    );
    await expect(env.create(old, { ...ref, name: 'torn' }, { spec: { text: 'torn' } })).rejects.toThrow('it is torn');
    expect(env.operator.log.all).toContainEqual(expect.objectContaining({ msg: 'an object cannot be converted' }));
    await env.operator.stop();
    expect(await env.get(old, ref)).toMatchObject({ spec: { text: 'a/b' } });
    await env.startOperator();
  });

  test('executes effects, has namespaces for the roles of its operator elsewhere, and says why a wait is in vain', async () => {
    const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] as const }];
    const other = await TestEnvironment.start({
      ...{ kinds: [Note, Letter], faults: true },
      effects: runPlans({
        'letter.send': async ({ object, file }) => {
          const text = await file((object.spec as { file: string }).file);
          return { message: 'It is sent.', status: { text } };
        },
      }),
      operator: { extraRules: { shop: rules } },
    });
    try {
      await writeFile(join(other.configDir, 'first.txt'), 'Dear all');
      const letter = { namespace: await other.namespace(), name: 'first' };
      await other.createOfKind(Letter, letter, { file: 'first.txt' });
      await other.waitUntil(
        Letter.type,
        letter,
        'sent',
        ({ status }) => (status as { text?: string } | undefined)?.text === 'Dear all',
      );
      expect(await other.client.list(ROLES, { namespace: 'shop' })).toMatchObject({ items: [{ rules }] });
      other.setFault(when(({ verb }) => verb !== 'watch', faults.internalError));
      const ref = { namespace: await other.namespace(), name: 'late' };
      await other.createOfKind(Note, ref, { text: 'late' });
      await other.eventually('a refused reconcile', () => other.operator.log.errors().length > 0 || undefined);
      await expect(other.eventually('what never comes', () => undefined, 100)).rejects.toThrow('what never comes');
    } finally {
      // With the fault still there.
      await other.stop();
    }
  });

  test('has faults only where it was started with them', () => {
    expect(() => env.setFault(faults.internalError)).toThrow('start the environment with `faults: true`');
  });
});
