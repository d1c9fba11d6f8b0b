import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { App } from 'cdk8s';
import fc from 'fast-check';
import { parse } from 'yaml';
import { parseArguments } from '../../cli/arguments';
import type { SynthArguments } from '../../cli/synth-arguments';
import type { CommonValues, ProgramValues } from '../../cli/helm/values';
import { helmChart } from '../../cli/helm/chart';
import { manifests, synth } from '../../cli/synth';
import { kinds, provisionerKinds } from '../../constructs/kinds';
import { crdManifest } from '../../constructs/crd';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { Platform, provisioner, type PlatformOperator } from '../../constructs/platform';
import { parseObjects } from '../../cli/objects';
import { goToolsUnavailable } from '../support/go-tools/build';
import { helm, helmOrThrow, helmTemplate, helmVersions } from '../support/helm';
import { kindredPlatform, kindredProject } from '../support/kindred-project';
import { temporaryFolder } from '../support/temporary-folder';

jest.setTimeout(600_000);

const KEEP = 'helm.sh/resource-policy';
const why = goToolsUnavailable();
if (why !== undefined) console.warn(why);

const idOf = ({ apiVersion, kind, metadata }: KubeObject): string =>
  [apiVersion, kind, metadata.namespace ?? '', metadata.name].join(' ');

const sorted = (objects: readonly KubeObject[]): readonly KubeObject[] =>
  [...objects].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));

/** The objects without the annotation that keeps some of them, which must be on these and on no others. */
function withoutKeep(objects: readonly KubeObject[]): readonly KubeObject[] {
  return objects.map((object) => {
    const { [KEEP]: keep, ...annotations } = object.metadata.annotations ?? {};
    expect([object.kind, keep]).toEqual([
      object.kind,
      ['CustomResourceDefinition', 'Namespace'].includes(object.kind) ? 'keep' : undefined,
    ]);
    const { annotations: _, ...metadata } = object.metadata;
    return {
      ...object,
      metadata: { ...metadata, ...(Object.keys(annotations).length === 0 ? {} : { annotations }) },
    };
  });
}

async function writeChart(...flags: readonly string[]): Promise<string> {
  const out = temporaryFolder('kindred-chart-');
  const streams = [process.stdout, process.stderr].map((stream) => jest.spyOn(stream, 'write').mockReturnValue(true));
  await synth(parseArguments(['synth', '--format=helm', `--out=${out}`, ...flags]) as SynthArguments, kindredProject);
  for (const stream of streams) stream.mockRestore();
  return out;
}

/** What `synth` writes for the same flags, without samples. */
function synthesized(...flags: readonly string[]): readonly KubeObject[] {
  const files = manifests(kindredPlatform(parseArguments(['synth', ...flags]) as SynthArguments));
  return ['1-crds.yaml', '2-platform.yaml'].flatMap((file) =>
    parseObjects(files.get(file) ?? '', file).map(({ object }) => object),
  );
}

(why === undefined ? describe : describe.skip)('the Helm chart', () => {
  describe.each(helmVersions)('%s', (helmVersion) => {
    test('has nothing to complain of', async () => {
      helmOrThrow(helmVersion, ['lint', '--strict', await writeChart()]);
    });

    test.each([
      [[]],
      [
        [
          '--image=registry.example.com/op@sha256:abc',
          '--namespace=sys',
          '--samples-namespace=team',
          '--image=provisioner=prov:1',
          '--config-secret=files',
          '--config-file=a/b.yml=b.yml',
          '--config-file=c=c',
        ],
      ],
    ])('renders by default what synth writes: %j', async (flags) => {
      const rendered = helmTemplate(helmVersion, [await writeChart(...flags)]);
      expect(sorted(withoutKeep(rendered))).toEqual(sorted(synthesized(...flags)));
    });

    test('renders into the namespace of the release, which Helm makes', async () => {
      const chart = await writeChart();
      const rendered = helmTemplate(helmVersion, [
        chart,
        '-n',
        'team',
        '--set',
        'guardedNamespaces[0].name=team,guardedNamespaces[0].create=true',
      ]);
      expect(rendered.filter(({ kind }) => kind === 'Namespace')).toEqual([]);
      const namespaces = new Set(rendered.map(({ metadata }) => metadata.namespace));
      expect(namespaces).toEqual(new Set([undefined, 'team']));
    });
  });

  test('renders for any values what the constructs make of them', async () => {
    const chart = await writeChart();
    const file = join(chart, 'my-values.yaml');
    let run = 0;
    fc.assert(
      fc.property(valuesArbitrary, ({ values, release }) => {
        const written = JSON.stringify(values);
        writeFileSync(file, written);
        const helmVersion = helmVersions[run++ % helmVersions.length] ?? 'helm4';
        const rendered = helmTemplate(helmVersion, [chart, '-n', release, '-f', file]);
        expect(sorted(withoutKeep(rendered))).toEqual(sorted(constructed(JSON.parse(written) as ChartValues, release)));
      }),
      { numRuns: 300 },
    );
  });

  describe('wrong values', () => {
    let chart: string;
    beforeAll(async () => (chart = await writeChart()));

    test.each([
      ['operator.replicas=11', /operator[./]replicas.*(10|maximum)/s],
      ['operator.image=', /operator[./]image/],
      ['operator.image=a b', /operator[./]image/],
      ['operator.logLevel=loud', /operator[./]logLevel/],
      ['operator.cpuRequest=much', /operator[./]cpuRequest/],
      ['operator.memoryLimitMiB=100', /operator[./]memoryLimitMiB.*192/s],
      [
        'operator.memoryRequestMiB=300',
        /operator\.memoryRequestMiB: it exceeds operator\.memoryLimitMiB, which is 256/,
      ],
      ['provisioner.memoryLimitMiB=200', /provisioner\.memoryLimitMiB: it must be at least 256/],
      ['provisioner.configFiles.a=b', /provisioner\.configFiles: set provisioner\.configSecret too/],
      ['operator.repplicas=1', /repplicas/],
      ['operator.cpuRequest=-1', /operator[./]cpuRequest/],
      ['operator.priorityClassName=A B', /priorityClassName/],
      ['operator.tolerations[0].tolerationSecond=5', /tolerationSecond/],
      ['guardedNamespaces[0].name=a,guardedNamespaces[0].quota.limits\\.cpu=-5', /limits\.cpu/],
      [
        String.raw`provisioner.configSecret=s,provisioner.configFiles.\.\./x=k`,
        /provisioner\.configFiles: "\.\.\/x" must be a path that stays within the directory/,
      ],
      [
        'provisioner.args[0]=--state-namespace=other',
        /provisioner\.args: the chart itself sets --state-namespace=other/,
      ],
      ['operator.args[0]=--kinds=a', /operator\.args: the chart itself sets --kinds=a/],
      ['enabled=false', /enabled: it is for the condition of a chart that depends on this one/],
      ['operator.imagePullSecrets[0].nam=a', /imagePullSecrets/],
      [String.raw`monitoring.labels.app\.kubernetes\.io/name=a`, /monitoring\.labels: the chart itself sets app/],
      ['namespace=Team', /namespace/],
      ['guardedNamespaces[0].name=a,guardedNamespaces[1].name=a', /guardedNamespaces: "a" is listed twice/],
      ['guardedNamespaces[0].quota.pods=1,guardedNamespaces[0].name=a', /pods/],
    ])('end in one error that names the value: %s', (setting, message) => {
      for (const helmVersion of helmVersions) {
        const { code, stderr } = helm(helmVersion, ['template', 'kindred', chart, '--set', setting]);
        expect([helmVersion, code]).toEqual([helmVersion, 1]);
        expect(stderr).toMatch(message);
      }
    });

    test('are none: lists and objects that are removed', () => {
      const removed = [
        'namespace',
        'operator.priorityClassName',
        'operator.nodeSelector',
        'operator.args',
        'provisioner.configFiles',
        'guardedNamespaces',
      ];
      const settings = removed.flatMap((name) => ['--set', `${name}=null`]);
      for (const helmVersion of helmVersions) {
        const kindsOf = new Set(helmTemplate(helmVersion, [chart, ...settings]).map(({ kind }) => kind));
        expect([kindsOf.has('Deployment'), kindsOf.has('ResourceQuota')]).toEqual([true, false]);
      }
    });

    test('are none: what a chart that depends on this one gives', () => {
      const rendered = helmTemplate('helm4', [chart, '--set', 'global.region=eu,enabled=true']);
      expect(rendered.length).toBeGreaterThan(10);
    });
  });
});

/** The objects that the constructs make of values. */
function constructed(values: ChartValues, release: string): readonly KubeObject[] {
  const namespace = values.namespace || (release === 'default' ? 'kindred-system' : release);
  const { crds, guardedNamespaces, monitoring } = values;
  const createNamespace = values.createNamespace && namespace !== release;
  const { enabled, ...monitoringProps } = monitoring;
  const { configSecret, configFiles, enabled: withProvisioner, ...provisionerValues } = values.provisioner;
  const operators: readonly PlatformOperator[] = [
    { name: 'operator', kinds, ...settings(values.operator) },
    ...(withProvisioner
      ? [
          provisioner({
            ...{ kinds: provisionerKinds, namespace, ...settings(provisionerValues) },
            ...(configSecret === '' ? {} : { configSecretName: configSecret }),
            ...(Object.keys(configFiles).length === 0 ? {} : { configFiles }),
          }),
        ]
      : []),
  ];
  const platform = new Platform(new App(), 'kindred', {
    namespace,
    createNamespace,
    operators,
    guardedNamespaces: guardedNamespaces.map(({ create = false, ...guarded }) => ({
      ...(guarded as { name: string }),
      create: create && guarded.name !== release && !(createNamespace && guarded.name === namespace),
    })),
    ...(enabled ? { monitoring: monitoringProps } : {}),
  });
  const unserved = withProvisioner ? [] : provisionerKinds.map((kind) => crdManifest(kind));
  const objects = [...(platform.toJson() as KubeObject[]), ...unserved];
  return objects.filter(({ kind }) => crds.enabled || kind !== 'CustomResourceDefinition');
}

interface ChartValues extends CommonValues {
  readonly operator: ProgramValues;
  readonly provisioner: ProgramValues & {
    readonly enabled: boolean;
    readonly configSecret: string;
    readonly configFiles: Readonly<Record<string, string>>;
  };
}

/** The values of an operator as settings: what is empty is left out. */
function settings(values: ProgramValues): Omit<PlatformOperator, 'name' | 'kinds'> {
  const { imagePullSecrets, args, priorityClassName, nodeSelector, tolerations, metricsFrom, ...rest } = values;
  return {
    ...rest,
    cpuRequest: String(rest.cpuRequest),
    ...(imagePullSecrets.length === 0
      ? {}
      : { imagePullSecrets: imagePullSecrets.map((secret) => (typeof secret === 'string' ? secret : secret.name)) }),
    ...(args.length === 0 ? {} : { args }),
    ...(priorityClassName === '' ? {} : { priorityClassName }),
    ...(Object.keys(nodeSelector).length === 0 ? {} : { nodeSelector }),
    ...(tolerations.length === 0 ? {} : { tolerations }),
    ...(metricsFrom.length === 0 ? {} : { metricsFrom }),
  };
}

/** Texts that YAML, or a template, takes for something else unless they are quoted. */
const text = fc.oneof(
  fc.constantFrom(
    'true',
    '1e3',
    '123',
    'null',
    '~',
    '- a',
    'a: b',
    '# c',
    '{{ .Values }}',
    '"',
    "'",
    '\\',
    'a\nb',
    ' a ',
    '%',
    '@x',
    '&a',
    '*',
    'ä€',
    '{}',
    '[]',
    '|',
    '>',
  ),
  fc.string({ minLength: 1, maxLength: 8 }),
);
const label = fc.constantFrom('a', 'kindred-system', 'kindred-samples', 'default', '123', 'null', '1e3', 'x-1', 'true');
const dictionary = fc.dictionary(fc.constantFrom('a', 'b.example.com/c', '1', 'true', 'x_y'), text, { maxKeys: 3 });
const amount = fc.constantFrom('1', '100m', '2Gi', '0.5', '500Mi', '1e3');

const defaults = parse(helmChart(kindredPlatform()).get('values.yaml') ?? '') as ChartValues;

const operatorArbitrary: fc.Arbitrary<ProgramValues> = fc.record({
  image: fc.constantFrom('a', 'registry.example.com:5000/a/b@sha256:abc', '123', 'a:b'),
  imagePullPolicy: fc.constantFrom('Always', 'IfNotPresent', 'Never'),
  imagePullSecrets: fc.array(fc.oneof(label, fc.record({ name: label })), { maxLength: 2 }),
  replicas: fc.nat({ max: 10 }),
  logLevel: fc.constantFrom('trace', 'debug', 'info', 'warn', 'error'),
  args: fc.array(text, { maxLength: 2 }),
  cpuRequest: amount,
  memoryRequestMiB: fc.integer({ min: 1, max: 256 }),
  memoryLimitMiB: fc.integer({ min: 256, max: 65_536 }),
  priorityClassName: fc.constantFrom('', 'system-cluster-critical', '1'),
  nodeSelector: dictionary,
  tolerations: fc.array(
    fc.record({ key: text, operator: fc.constant('Exists'), tolerationSeconds: fc.nat({ max: 999_999 }) }),
    { maxLength: 2 },
  ),
  metricsFrom: fc.array(
    fc.record({ podSelector: fc.record({ matchLabels: fc.constantFrom({ a: 'b' }, { a: 'true', '1': '1e3' }) }) }),
    { maxLength: 2 },
  ),
});

const valuesArbitrary: fc.Arbitrary<{ readonly values: ChartValues; readonly release: string }> = fc.record({
  release: label,
  values: fc.record({
    namespace: fc.oneof(fc.constant(''), label),
    createNamespace: fc.boolean(),
    crds: fc.record({ enabled: fc.boolean() }),
    operator: fc.oneof(fc.constant(defaults.operator), operatorArbitrary),
    provisioner: fc
      .record({
        enabled: fc.boolean(),
        program: operatorArbitrary,
        config: fc.oneof(
          fc.constant({ configSecret: '', configFiles: {} }),
          fc.record({
            configSecret: label,
            configFiles: fc.constantFrom<Record<string, string>>({}, { '1': 'true', 'a b': '1.0', 'a/b.yml': 'k' }),
          }),
        ),
      })
      .map(({ enabled, program, config }) => ({ enabled, ...program, ...config })),
    guardedNamespaces: fc.uniqueArray(
      fc.record(
        {
          name: label,
          create: fc.boolean(),
          quota: fc.record({ 'requests.cpu': amount, 'limits.memory': amount }, { requiredKeys: [] }),
          containers: fc.constantFrom<object>(
            {},
            { max: { cpu: '4' } },
            { default: { memory: '3Gi' }, max: { memory: '9Gi' } },
          ),
        },
        { requiredKeys: ['name'] },
      ),
      { maxLength: 3, selector: ({ name }) => name },
    ),
    monitoring: fc.record({
      enabled: fc.boolean(),
      interval: fc.constantFrom('30s', '1m30s'),
      labels: fc.constantFrom<Record<string, string>>({}, { release: 'prometheus', x: 'true' }),
    }),
  }),
}) as fc.Arbitrary<{ readonly values: ChartValues; readonly release: string }>;
