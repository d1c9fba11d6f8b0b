import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CliError } from '../../cli/errors';
import { formatError } from '../../cli/format-error';
import type { ProjectOperator } from '../../cli/project';
import { projectPlatform } from '../../cli/project-platform';
import { manifests, synth } from '../../cli/synth';
import { parseArguments } from '../../cli/arguments';
import type { SynthArguments } from '../../cli/synth-arguments';
import { parseObjects } from '../../cli/objects';
import { Shop } from '../constructs/kind/versions-kind';
import { kindredProject, noChoices, projectOf } from '../support/kindred-project';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'kindred-synth-test-'))));
afterEach(() => {
  jest.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

test('kindred synth writes the platform and the samples, and says where', async () => {
  const said = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
  const out = join(folder, 'a', 'b');
  await synth(
    parseArguments(['synth', `--out=${out}`, '--image=mine:1', '--namespace=sys']) as SynthArguments,
    kindredProject,
  );
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

test('kindred synth says how to make the image that it names by default, and nothing of one that is given', async () => {
  jest.spyOn(process.stdout, 'write').mockReturnValue(true);
  const said = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  await synth(parseArguments(['synth', `--out=${folder}`, '--image=mine:1']) as SynthArguments, kindredProject);
  expect(said).not.toHaveBeenCalled();
  await synth(parseArguments(['synth', `--out=${folder}`]) as SynthArguments, kindredProject);
  expect(said.mock.calls.map(([line]) => line)).toEqual([
    expect.stringMatching(
      /^kindred: no registry has kindred-operator:.*npx kindred build --push=REF and name it with --image=REF, .*\n$/,
    ),
  ]);
});

test('a kind of several versions needs its operator, which converts', () => {
  const [operator] = projectOf('shop', { kinds: [Shop] }).operators as [ProjectOperator];
  const project = { ...kindredProject, operators: [...kindredProject.operators, { ...operator, optional: true }] };
  const choose = (...images: readonly string[]) =>
    projectPlatform(project, { ...noChoices, certManager: true, images });
  expect(() => manifests(choose())).toThrow(
    /^Shop has several versions, .* shop is installed on request only: name its image too, --image=shop=REF$/,
  );
  expect(manifests(choose('shop=x:1')).get('1-crds.yaml')).toContain('strategy: Webhook');
});

describe('a folder that cannot be written to is told to people, with the flag', () => {
  const told = async (out: string): Promise<string> => {
    jest.spyOn(process.stdout, 'write').mockReturnValue(true);
    const failure: unknown = await synth(
      parseArguments(['synth', `--out=${out}`]) as SynthArguments,
      kindredProject,
    ).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(CliError);
    return formatError(failure);
  };

  test('it lies below a file', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    expect(await told(join(file, 'below'))).toMatch(
      /^--out=\S+below cannot be written to: ENOTDIR: .*\. Name a folder that you may write to; .*\.$/,
    );
  });

  test('a folder lies where a file must go', async () => {
    mkdirSync(join(folder, '2-platform.yaml'));
    expect(await told(folder)).toMatch(/^--out=\S+ cannot be written to: EISDIR: .*2-platform\.yaml/);
  });
});
