import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { synth } from '../../cli/synth';
import { parseArguments } from '../../cli/arguments';
import type { SynthArguments } from '../../cli/arguments';
import { parseObjects } from '../../cli/objects/read-objects';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'kindred-synth-test-'))));
afterEach(() => {
  jest.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

test('kindred synth writes the platform and the samples, and says where', async () => {
  const said = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
  const out = join(folder, 'a', 'b');
  await synth(parseArguments(['synth', `--out=${out}`, '--image=mine:1', '--namespace=sys']) as SynthArguments);
  const names = ['1-crds.yaml', '2-platform.yaml', '3-samples.yaml', 'argo-cd.yaml'];
  const files = names.map((name) => join(out, name));
  expect(said.mock.calls.map(([line]) => line)).toEqual(files.map((file) => `${file}\n`));
  const [crds = [], platform = [], samples = []] = files.map((file) => parseObjects(readFileSync(file, 'utf8'), file));
  expect(new Set(crds.map(({ object }) => object.kind))).toEqual(new Set(['CustomResourceDefinition']));
  const deployment = platform.find(({ object }) => object.kind === 'Deployment')?.object;
  expect(deployment?.metadata.namespace).toBe('sys');
  expect(JSON.stringify(deployment)).toContain('"image":"mine:1"');
  expect(samples.map(({ object }) => object.metadata.namespace)).toContain('kindred-samples');
});
