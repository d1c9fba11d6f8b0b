import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import type { Read } from '../../../constructs/kind/reads';
import { EffectInputReader } from '../../../operator/effects/effect-input-reader';
import { PlanError } from '../../../operator/effects/plan-runner';
import { temporaryFolder } from '../../support/temporary-folder';
import { MemoryApiServer } from '../../../testing/api-server/memory-api-server';

const server = new MemoryApiServer();
const top = temporaryFolder('kindred-reads-');
const root = join(top, 'config');
const outside = join(top, 'outside');

beforeAll(() => {
  mkdirSync(join(root, 'a'), { recursive: true });
  writeFileSync(outside, 'SECRET');
  writeFileSync(join(root, 'file'), 'text');
  writeFileSync(join(root, '..data'), 'hidden');
  symlinkSync('../file', join(root, 'a', 'inside'));
  symlinkSync(outside, join(root, 'link'));
  symlinkSync(top, join(root, 'folder'));
  symlinkSync('loop', join(root, 'loop'));
  execFileSync('mkfifo', [join(root, 'pipe')]);
  writeFileSync(join(root, 'full'), Buffer.alloc(1_048_576));
  writeFileSync(join(root, 'large'), Buffer.alloc(1_048_577));
  // The sibling has the directory's name in front of its own.
  mkdirSync(`${root}-more`);
  writeFileSync(join(`${root}-more`, 'file'), 'SECRET');
  symlinkSync(root, join(top, 'linked'));
});

const reads = (directory?: string): EffectInputReader =>
  new EffectInputReader(server, { namespacesFor: () => ['here'], ...(directory === undefined ? {} : { directory }) });

/** Who names what is read. */
const by: KubeObject = { apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name: 'a', uid: 'u-1' } };

async function refusal(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => new Error('it was read'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof PlanError)) throw error;
  return error.message;
}

describe('a file', () => {
  test.each(['file', 'a/../file', join(root, 'file'), 'a/inside', './/file'])(
    'below the directory is read: %s',
    async (path) => {
      expect(await reads(root).file(path)).toBe('text');
    },
  );

  test('is read by either name of a directory that is a link', async () => {
    const linked = join(top, 'linked');
    for (const path of ['file', join(linked, 'file'), join(root, 'file')]) {
      expect(await reads(linked).file(path)).toBe('text');
    }
  });

  test.each([
    ...['../outside', 'a/../../outside', outside, 'link', 'folder/outside', '..', '.', '', '/', `${root}-more/file`],
    ...['../missing', '/etc/shadow', '/missing'],
  ])('elsewhere is refused in the same words, whether it is there or not: %s', async (path) => {
    expect(await refusal(reads(root).file(path))).toContain('it leads out of the configured directory');
  });

  test.each([
    ['pipe', 'it is no regular file'],
    ['a', 'it is no regular file'],
    ['large', 'it has 1048577 bytes; at most 1048576 are read'],
    ['loop', 'it cannot be found'],
    ['missing', 'it cannot be found'],
    ['file\0', 'it cannot be found'],
  ])('%s is refused', async (path, why) => {
    expect(await refusal(reads(root).file(path))).toContain(why);
  });

  test('as large as a Secret is taken', async () => {
    expect(await reads(root).file('full')).toHaveLength(1_048_576);
  });

  test('is not looked for without a directory, or when that is gone', async () => {
    expect(await refusal(reads().file('file'))).toContain('--config-dir');
    expect(await refusal(reads(join(top, 'none')).file('file'))).toContain('the configured directory cannot be read');
  });
});

describe('a Secret', () => {
  const ref = { namespace: 'here', name: 's', key: 'k' };
  const read: Read<object>[] = [{ name: 'secret', type: owned.Secret, refs: () => [ref] }];
  const put = (values: object) =>
    server.create(
      owned.Secret,
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'here' }, data: values },
      { fieldManager: 'kubectl' },
    );

  test('of another namespace causes no request', async () => {
    server.takeRequests();
    const message = await refusal(reads().secret({ ...ref, namespace: 'there' }, by));
    expect(message).toBe(
      'Secret there/s is not read: the namespaces to read from are here. Move it there, or configure its namespace too.',
    );
  });

  test('that is missing is told, and passed over where it is optional', async () => {
    expect(await refusal(reads().secret(ref, by))).toContain('Secret here/s does not exist');
    expect(await refusal(reads().reader(read, by, []))).toContain('Secret here/s does not exist');
    const { contentHash: seen } = await reads().reader(read, by, [], { optional: true });
    expect(seen).toMatch(/^[0-9a-f]{64}$/);
  });

  test('counts by all that it holds, and shows by its digest only', async () => {
    const before = await reads().reader(read, by, [], { optional: true });
    await put({ k: Buffer.from('SECRET').toString('base64') });
    expect(await reads().secret(ref, by)).toBe('SECRET');
    const reader = await reads().reader(read, by, []);
    expect(reader.contentHash).not.toBe(before.contentHash);
    expect(reader.digest(owned.Secret, ref)).toMatch(/^[0-9a-f]{64}$/);
    expect(await refusal(reads().secret({ ...ref, key: 'other' }, by))).toBe(
      'Secret here/s has no key "other". Add it, or correct the reference.',
    );
    expect(() => reader.digest(owned.Secret, { ...ref, name: 'x' })).toThrow(TypeError);
  });
});
