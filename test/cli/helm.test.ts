import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { parseArguments } from '../../cli/arguments';
import { entryLines, lines, replaceText, templateText, value } from '../../cli/helm/template';
import { helmChart } from '../../cli/helm/chart';
import { projectPlatform } from '../../cli/project-platform';
import { synth } from '../../cli/synth';
import { Foo, HelloApp } from '../../constructs/kinds';
import { kindredPlatform, kindredProject, noChoices, projectOf } from '../support/kindred-project';
import { temporaryFolder } from '../support/temporary-folder';

const object = (spec: object) => ({ apiVersion: 'v1', kind: 'X', metadata: { name: 'x' }, spec });
const textOf = (spec: object): string => templateText([object(spec)]).split('spec:\n', 2)[1] ?? '';

describe('the text of a template', () => {
  test('has expressions in the place of values and of parts of them', () => {
    expect(textOf({ a: value('.Values.a | quote'), b: `--x=${value('.Values.b')} -y`, c: [value('.c')] })).toBe(
      '  a: {{ .Values.a | quote }}\n  b: --x={{ .Values.b }} -y\n  c:\n    - {{ .c }}\n',
    );
  });

  test('has lines in the place of entries and items, and counts their indentation', () => {
    const more = entryLines('{{- with .m }}', 'more:', '  {{- toYaml . | nindent +2 }}', '{{- end }}');
    expect(textOf({ list: ['a', lines('{{- range .l }}', '- {{ . }}', '{{- end }}')], deep: { x: 1, ...more } })).toBe(
      [
        '  list:',
        '    - a',
        '    {{- range .l }}',
        '    - {{ . }}',
        '    {{- end }}',
        '  deep:',
        '    x: 1',
        '    {{- with .m }}',
        '    more:',
        '      {{- toYaml . | nindent 6 }}',
        '    {{- end }}',
        '',
      ].join('\n'),
    );
  });

  test('does not evaluate braces of the object itself', () => {
    expect(textOf({ a: 'of {{ $labels.pod }}' })).toBe('  a: of {{ "{{" }} $labels.pod }}\n');
  });

  test('refuses lines that would stand within a line', () => {
    expect(() => textOf({ a: lines('{{- end }}') })).toThrow('these lines of a template do not stand alone');
  });

  test('separates objects', () => {
    expect(templateText([object({ a: 1 }), object({ a: 2 })]).split('---\n')).toHaveLength(2);
  });
});

test('a text is replaced in all strings of an object, and it is known whether it is the whole string', () => {
  const seen: boolean[] = [];
  const replaced = replaceText({ a: ['ns', 'x=ns,ns'], b: { c: 'ns' }, d: 1, e: null, ns: 'f' }, 'ns', (isWhole) => {
    seen.push(isWhole);
    return 'N';
  });
  expect(replaced).toEqual({ a: ['N', 'x=N,N'], b: { c: 'N' }, d: 1, e: null, ns: 'f' });
  expect(seen).toEqual([true, false, false, true]);
});

test('values.yaml has the default values, each described, and values.schema.json describes the same', () => {
  const files = helmChart(
    kindredPlatform({
      ...{ images: ['o:1', 'provisioner=p:1'], configSecret: 's', configFiles: { a: 'b' } },
      ...{ namespace: 'sys', samplesNamespace: 'team' },
    }),
  );
  const text = files.get('values.yaml') ?? '';
  const values = parse(text) as Readonly<Record<string, object>>;
  expect(values).toMatchObject({
    operator: { image: 'o:1' },
    provisioner: { enabled: true, image: 'p:1', memoryLimitMiB: 512, configSecret: 's', configFiles: { a: 'b' } },
    guardedNamespaces: [{ name: 'team', create: true }],
  });
  expect(text).not.toMatch(/[&*]a\d/);
  expect(text).toMatch(/^# .*\bsys\.\nnamespace: ""\n/);
  expect(text).toMatch(/\n\n# The operator of the kinds Cluster, .*\nprovisioner:\n {2}enabled: true\n {2}# The image/);
  const schema = JSON.parse(files.get('values.schema.json') ?? '') as {
    properties: Record<string, { properties?: object }>;
  };
  expect(schema).toMatchObject({ $schema: 'http://json-schema.org/draft-07/schema#', additionalProperties: false });
  expect(Object.keys(schema.properties)).toEqual([...Object.keys(values), 'enabled', 'global']);
  expect(Object.keys(schema.properties['provisioner']?.properties ?? {}).sort()).toEqual(
    Object.keys(values['provisioner'] ?? {}).sort(),
  );
});

test("the chart of another project is named after it, and its one operator's values are called operator", () => {
  const project = projectOf('web-shop', { kinds: [HelloApp], optional: false });
  const files = helmChart(projectPlatform(project, { ...noChoices, images: ['shop:1'] }));
  expect(parse(files.get('Chart.yaml') ?? '')).toMatchObject({ name: 'web-shop', version: '1.2.3' });
  expect(Object.keys(parse(files.get('values.yaml') ?? '') as object)).toEqual([
    ...['namespace', 'createNamespace', 'crds', 'operator', 'guardedNamespaces', 'monitoring'],
  ]);
  expect([...files.keys()]).toContain('templates/operator.yaml');
  const all = [...files.values()].join('\n');
  expect(all).not.toMatch(/provisioner|kindred-(system|samples)|"kindred\./);
  expect(all).toContain('{{- define "web-shop.namespace" -}}');
  expect(all).toContain('rollout status deployment/kindred-web-shop');
});

test("the project's settings of an operator are the default values, and stand in no template", () => {
  const settings = {
    logLevel: 'debug',
    imagePullPolicy: 'Always',
    nodeSelector: { disk: 'ssd' },
    replicas: 1,
  } as const;
  const files = helmChart(projectPlatform(projectOf('shop', { kinds: [HelloApp], settings }), noChoices));
  expect(parse(files.get('values.yaml') ?? '')).toMatchObject({ operator: settings });
  const template = files.get('templates/operator.yaml') ?? '';
  expect(template).not.toMatch(/debug|imagePullPolicy: "?Always|ssd/);
  expect(template.match(/nodeSelector:/g)).toHaveLength(1);
  expect(template).toContain('--log-level={{ .Values.operator.logLevel }}');
});

test('two operators whose values would have one name cannot be in a chart', () => {
  const [one] = projectOf('web-2', { kinds: [HelloApp] }).operators;
  const [two] = projectOf('web2', { kinds: [Foo] }).operators;
  const project = { ...projectOf('shop', {}), operators: [one!, two!] };
  expect(() => helmChart(projectPlatform(project, noChoices))).toThrow(
    "--format=helm: the values of web2 would have the name of another operator's",
  );
});

test.each(['crds', 'global', 'create-namespace'])('an operator called %s cannot be in a chart', (name) => {
  const [one] = projectOf('a', { kinds: [HelloApp] }).operators;
  const [two] = projectOf(name, { kinds: [Foo] }).operators;
  const project = { ...projectOf('shop', {}), operators: [one!, two!] };
  expect(() => helmChart(projectPlatform(project, noChoices))).toThrow(
    `--format=helm: an operator cannot be called ${name}, since the chart has a value`,
  );
});

test('synth --format=helm writes a chart', async () => {
  const said = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
  const out = join(temporaryFolder('kindred-helm-'), 'chart');
  const args = parseArguments(['synth', '--format=helm', '--image=mine:1', '--namespace=sys', `--out=${out}`]);
  if (args.command !== 'synth') throw new Error(`it is ${args.command}`);
  await synth(args, kindredProject);
  const written = said.mock.calls.map(([line]) => String(line).trim());
  said.mockRestore();
  expect(written.filter((file) => !existsSync(file))).toEqual([]);
  expect(readdirSync(args.out).sort()).toEqual(['Chart.yaml', 'templates', 'values.schema.json', 'values.yaml']);
  const read = (name: string): string => readFileSync(join(args.out, name), 'utf8');
  expect(parse(read('values.yaml'))).toMatchObject({
    operator: { image: 'mine:1' },
    provisioner: { enabled: false },
    guardedNamespaces: [{ name: 'kindred-samples', create: true }],
  });
  expect(read('templates/_helpers.tpl')).toContain('"default" }}sys\n');
  // Nothing that stood for a value while the platform was rendered is left.
  for (const name of readdirSync(join(args.out, 'templates')))
    expect(read(`templates/${name}`)).not.toMatch(/helm-[a-z]+-|HELM/);

  // Helm would install it as well.
  const old = join(args.out, 'templates', 'old.yaml');
  writeFileSync(old, '');
  writeFileSync(join(args.out, 'values.yaml'), 'untouched');
  await expect(synth(args, kindredProject)).rejects.toThrow(
    /its templates\/ has old\.yaml, which .* Remove it, .* or name another folder/,
  );
  expect(read('values.yaml')).toBe('untouched');
});
