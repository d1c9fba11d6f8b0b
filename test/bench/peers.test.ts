import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kustomize, twins } from '../../bench/operators-under-test';

const root = join(__dirname, '..', '..');
const { PATH, KINDRED_CACHE } = process.env;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'peers-'));
  process.env['PATH'] = folder; // where nothing is
  process.env['KINDRED_CACHE'] = folder;
});

afterEach(async () => {
  process.env['PATH'] = PATH;
  if (KINDRED_CACHE === undefined) delete process.env['KINDRED_CACHE'];
  else process.env['KINDRED_CACHE'] = KINDRED_CACHE;
  await rm(folder, { recursive: true });
});

test('without Go, peers are missing, which one line says of each', async () => {
  const { signal } = new AbortController();
  const why = 'there is no `go` on PATH to build it';
  expect(await twins(root, signal)).toEqual({ missing: `controller-runtime: ${why}` });
  expect(await kustomize(signal)).toEqual({ missing: `kustomize: ${why}` });
});
