import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { versions } from '../../../local';

const goMod = (module: string): string =>
  readFileSync(path.join(__dirname, '../../../local/parts', module, 'go.mod'), 'utf8');

test('the Go modules pin the versions that the code names', () => {
  expect(goMod('kubernetes')).toContain(`require k8s.io/kubernetes ${versions.kubernetes}\n`);
  expect(goMod('etcd')).toContain(`require go.etcd.io/etcd/server/v3 ${versions.etcd}\n`);
  expect(goMod('kwok')).toContain(`require sigs.k8s.io/kwok ${versions.kwok}\n`);
});

test('the version of our own program is raised with its sources, since the cache keeps programs by version', () => {
  const folder = path.join(__dirname, '../../../local/parts/node');
  const sources = ['go.mod', 'main.go', 'serve.go'].map((file) => readFileSync(path.join(folder, file)));
  const digest = createHash('sha256').update(Buffer.concat(sources)).digest('hex').slice(0, 12);
  expect(`${versions.pod} ${digest}`).toBe('v1 b398efb7f5f7');
});

test('every staging module is replaced by the tag of the same release', () => {
  const staged = versions.kubernetes.replace(/^v1/, 'v0');
  const replaced = [...goMod('kubernetes').matchAll(/^\tk8s\.io\/\S+ => k8s\.io\/\S+ (\S+)$/gm)].map(([, tag]) => tag);
  expect(replaced.length).toBeGreaterThan(30);
  expect(new Set(replaced)).toEqual(new Set([staged]));
});
