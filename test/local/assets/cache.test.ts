import { readdirSync, readFileSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { cacheFolder, PartCache } from '../../../local/assets/cache';
import { parts } from '../../../local/assets/parts';
import { temporaryFolder } from '../../support/temporary-folder';

const part = parts.etcd;
let cache: PartCache;

const store = (content = 'a program'): Promise<string> =>
  cache.store(part, 'a test', async (file) => {
    await writeFile(file, content);
  });

beforeEach(() => {
  cache = new PartCache(temporaryFolder('kindred-cache-'), { os: 'linux', arch: 'amd64' });
});

test('the folder: KINDRED_CACHE, then XDG_CACHE_HOME, then ~/.cache', () => {
  expect(cacheFolder({ KINDRED_CACHE: '/a', XDG_CACHE_HOME: '/b' })).toBe('/a');
  expect(cacheFolder({ XDG_CACHE_HOME: '/b' })).toBe('/b/kindred');
  expect(cacheFolder({})).toMatch(/\/\.cache\/kindred$/);
});

test('an entry lies by part, version and platform, and is executable', async () => {
  const file = await store();
  expect(path.relative(cache.folder, file)).toBe(`parts/etcd/${part.version}/linux-amd64/etcd`);
  expect(statSync(file).mode & 0o111).toBe(0o111);
  expect(await cache.check(part)).toEqual({ state: 'valid', file });
  expect(readdirSync(path.dirname(file)).sort()).toEqual(['etcd', 'etcd.sha256.json']);
});

test('what is not there is missing, not broken', async () => {
  expect(await cache.check(part)).toEqual({ state: 'missing' });
});

test('a file that was touched but not changed is valid, and not hashed a second time', async () => {
  const file = await store();
  utimesSync(file, 1_600_000_000, 1_600_000_000);
  expect(await cache.check(part)).toEqual({ state: 'valid', file });
  expect(JSON.parse(readFileSync(`${file}.sha256.json`, 'utf8'))).toMatchObject({ modified: 1_600_000_000_000 });
});

describe('an entry is broken', () => {
  const cases: [string, (file: string) => void, RegExp][] = [
    ['cut short', (file) => truncateSync(file, 3), /has 3 bytes, not the 9/],
    [
      'changed',
      (file) => writeFileSync(file, 'A program'),
      /sha256 [0-9a-f]{64}, not the [0-9a-f]{64} it was stored with/,
    ],
    ['never finished', (file) => rmSync(`${file}.sha256.json`), /never finished/],
    ['with a seal cut short', (file) => truncateSync(`${file}.sha256.json`, 5), /never finished/],
    ['gone', (file) => rmSync(file), /is gone/],
  ];
  test.each(cases)('when it is %s, and storing it again mends it', async (_name, harm, reason) => {
    const file = await store();
    harm(file);
    expect(await cache.check(part)).toEqual({ state: 'broken', reason: expect.stringMatching(reason) as string });
    await store();
    expect(await cache.check(part)).toEqual({ state: 'valid', file });
  });

  test('by a change that keeps size and time, for a thorough look', async () => {
    const file = await store();
    const { atime, mtime } = statSync(file);
    writeFileSync(file, 'A program');
    utimesSync(file, atime, mtime);
    expect(await cache.check(part, true)).toMatchObject({ state: 'broken' });
  });
});

test('a producer that fails leaves the old entry as it was, and no draft', async () => {
  const file = await store();
  const failing = cache.store(part, 'a test', (draft) => {
    writeFileSync(draft, 'half');
    throw new Error('power cut');
  });
  await expect(failing).rejects.toThrow('power cut');
  expect(await cache.check(part)).toEqual({ state: 'valid', file });
  expect(readdirSync(path.dirname(file)).sort()).toEqual(['etcd', 'etcd.sha256.json']);
});

test('a full disk: what, where and what to do', async () => {
  const full = cache.store(part, 'a test', () => Promise.reject(Object.assign(new Error('write'), { code: 'ENOSPC' })));
  await expect(full).rejects.toThrow(
    `the disk ran full while writing etcd under ${cache.folder}. Nothing half-written is used. Free some space there, ` +
      `or point KINDRED_CACHE at a folder on a larger disk`,
  );
});
