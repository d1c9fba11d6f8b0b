import { Document, isMap, isScalar, type YAMLMap } from 'yaml';
import { z } from 'zod';
import { QUANTITY_PATTERN } from '../../constructs/kind/quantity';
import { MIN_MEMORY_MIB } from '../../constructs/operator/node-options';
import type { PlatformOperator } from '../../constructs/platform';
import type { ProjectPlatform } from '../project-platform';

const dnsLabel = z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
const name = z.string().regex(/^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/);
/** A quantity that is not negative, as the constructs demand. */
const quantity = z.union([z.number().min(0), z.string().regex(new RegExp(QUANTITY_PATTERN.replace('[+-]?', '[+]?')))]);
const nameOrEmpty = z.union([z.literal(''), name]).default('');
const texts = z.record(z.string(), z.string());

// A list or an object may be left out, since Helm removes a value that is set to null.

const toleration = z.strictObject({
  key: z.string().optional(),
  operator: z.string().optional(),
  value: z.string().optional(),
  effect: z.string().optional(),
  tolerationSeconds: z.int().optional(),
});

/**
 * Files by their paths in a directory, each with its key in a Secret. The template checks the paths, since
 * Helm reports a key that the schema refuses at another place.
 */
const files = z.record(z.string(), z.string().regex(/^[-._A-Za-z0-9]{1,253}$/));

/** Settings of an operator's pods: those of `OperatorSettings` that the user of a chart decides. */
const operatorValues = {
  image: z.string().regex(/^\S+$/).describe('The image. Prefer a digest.'),
  imagePullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).describe('Always, IfNotPresent or Never.'),
  imagePullSecrets: z
    .array(z.union([name, z.strictObject({ name })]))
    .default([])
    .describe('Names of Secrets with registry credentials, in the namespace of the operator; or objects with a name.'),
  replicas: z.int().min(0).max(10).describe('Pods: one leads, the others stand by.'),
  logLevel: z.enum(['trace', 'debug', 'info', 'warn', 'error']).describe('trace, debug, info, warn or error.'),
  args: z.array(z.string()).default([]).describe('Further arguments.'),
  cpuRequest: quantity.describe('There is no limit of CPU: throttling would delay the renewal of the Lease.'),
  memoryRequestMiB: z.int().min(1).max(65_536),
  memoryLimitMiB: z.int().min(MIN_MEMORY_MIB).max(65_536).describe('The size of the JavaScript heap follows from it.'),
  priorityClassName: nameOrEmpty.describe('Empty: the default priority.'),
  nodeSelector: texts.default({}),
  tolerations: z.array(toleration).default([]),
  metricsFrom: z
    .array(z.looseObject({}))
    .default([])
    .describe('Peers of a NetworkPolicy that may reach the metrics port. Empty: everyone in the cluster.'),
};

const amounts = z.strictObject({ cpu: quantity.optional(), memory: quantity.optional() });

const guardedNamespace = z.strictObject({
  name: dnsLabel,
  create: z.boolean().optional(),
  quota: z
    .strictObject({
      'requests.cpu': quantity.optional(),
      'limits.cpu': quantity.optional(),
      'requests.memory': quantity.optional(),
      'limits.memory': quantity.optional(),
    })
    .optional(),
  containers: z
    .strictObject({ default: amounts.optional(), defaultRequest: amounts.optional(), max: amounts.optional() })
    .optional(),
});

/** An operator of the chart, with the values that are chosen when the chart is made. */
export interface OperatorValues {
  /** The key of its values. */
  readonly key: string;
  readonly kinds: readonly string[];
  readonly image: string;
  /** Whether the chart installs it by default; undefined: always. */
  readonly isEnabled: boolean | undefined;
  /** It has the values `configSecret` and `configFiles`. */
  readonly hasConfig: boolean;
  readonly configSecretName: string | undefined;
  readonly configFiles: Readonly<Record<string, string>> | undefined;
  readonly settings: PlatformOperator &
    Required<Pick<PlatformOperator, 'replicas' | 'logLevel' | 'cpuRequest' | 'memoryRequestMiB' | 'memoryLimitMiB'>>;
}

const configValues = {
  configSecret: nameOrEmpty.describe(
    "Secret in the operator's namespace with the files that objects may name. Empty: none.",
  ),
  configFiles: files
    .default({})
    .describe('These files by their paths, each with its key there. Empty: one file for each key.'),
};

function operatorSchema({ kinds, isEnabled, hasConfig }: OperatorValues): z.ZodObject {
  return z
    .strictObject({
      ...(isEnabled === undefined ? {} : { enabled: z.boolean() }),
      ...operatorValues,
      ...(hasConfig ? configValues : {}),
    })
    .describe(`The operator of ${kinds.length === 1 ? 'the kind' : 'the kinds'} ${kinds.join(', ')}.`);
}

const namespaceValues = {
  namespace: z
    .union([z.literal(''), dnsLabel])
    .default('')
    .describe('Namespace of the operator. Empty: that of the release, or, if that is "default", NAMESPACE.'),
  createNamespace: z
    .boolean()
    .describe(
      'Create the namespace of the operator, under the Pod Security Standard "restricted", unless it is that of the release.\n' +
        'It stays when the release is uninstalled.',
    ),
  crds: z
    .strictObject({ enabled: z.boolean() })
    .describe('The CustomResourceDefinitions. They stay, with all objects, when the release is uninstalled.'),
};

const furtherValues = {
  guardedNamespaces: z
    .array(guardedNamespace)
    .default([])
    .describe(
      'Namespaces that get a ResourceQuota and a LimitRange: name, create, and numbers of their own under quota and containers.\n' +
        'A list of yours replaces this one; [] is none. ' +
        'Those that are created stay when the release is uninstalled.',
    ),
  monitoring: z
    .strictObject({
      enabled: z.boolean(),
      interval: z.string().regex(/^([0-9]+(ms|[smhdwy]))+$/),
      labels: texts
        .default({})
        .describe('Labels by which a Prometheus selects its monitors and rules, such as release: prometheus.'),
    })
    .describe('A PodMonitor and a PrometheusRule. The CRDs of the Prometheus operator must be there.'),
  enabled: z.boolean().optional().describe('For the condition of a chart that depends on this one.'),
  global: z.looseObject({}).optional().describe('What Helm gives to every chart.'),
};

/**
 * The values of one operator.
 *
 * @testonly
 */
export type ProgramValues = z.output<z.ZodObject<typeof operatorValues>>;

/**
 * The values besides those of operators.
 *
 * @testonly
 */
export type CommonValues = z.output<z.ZodObject<typeof namespaceValues & typeof furtherValues>>;

/** Whether the chart has a value of this name that is no operator's. */
export function isReservedKey(key: string): boolean {
  return Object.hasOwn(namespaceValues, key) || Object.hasOwn(furtherValues, key);
}

/** The values of the chart. Their descriptions are comments of values.yaml. */
function chartValues(operators: readonly OperatorValues[]): z.ZodObject {
  return z.strictObject({
    ...namespaceValues,
    ...Object.fromEntries(operators.map((operator) => [operator.key, operatorSchema(operator)])),
    ...furtherValues,
  });
}

/** The values that the chart has by default. */
export function defaultValues(
  { samplesNamespace }: Pick<ProjectPlatform, 'samplesNamespace'>,
  operators: readonly OperatorValues[],
): ChartValues {
  const ofOperators = operators.map((operator): readonly [string, unknown] => {
    const { key, image, isEnabled, hasConfig, configSecretName, configFiles, settings } = operator;
    const { replicas, logLevel, cpuRequest, memoryRequestMiB, memoryLimitMiB } = settings;
    const { imagePullPolicy = 'IfNotPresent', imagePullSecrets = [], priorityClassName = '' } = settings;
    const { nodeSelector = {}, tolerations = [], metricsFrom = [] } = settings;
    return [
      key,
      {
        ...(isEnabled === undefined ? {} : { enabled: isEnabled }),
        image,
        imagePullPolicy,
        imagePullSecrets,
        ...{ replicas, logLevel },
        args: [],
        ...{ cpuRequest, memoryRequestMiB, memoryLimitMiB },
        ...{ priorityClassName, nodeSelector, tolerations, metricsFrom },
        ...(hasConfig ? { configSecret: configSecretName ?? '', configFiles: { ...configFiles } } : {}),
      },
    ];
  });
  const values: Readonly<Record<string, unknown>> = {
    namespace: '',
    createNamespace: true,
    crds: { enabled: true },
    ...Object.fromEntries(ofOperators),
    guardedNamespaces: [{ name: samplesNamespace, create: true }],
    monitoring: { enabled: false, interval: '30s', labels: {} },
  };
  return { values, schema: chartValues(operators) };
}

/** Values of the chart, and their schema. */
interface ChartValues {
  readonly values: Readonly<Record<string, unknown>>;
  readonly schema: z.ZodObject;
}

/** The JSON Schema of the values, against which Helm checks them. */
export function valuesSchema({ schema: chart }: ChartValues, namespace: string): object {
  const schema = z.toJSONSchema(chart, { target: 'draft-7', io: 'input' });
  return JSON.parse(JSON.stringify(schema).replaceAll(NAMESPACE, namespace)) as object;
}

/** values.yaml: the values, each with its description. */
export function valuesText({ values, schema }: ChartValues, namespace: string): string {
  const document = new Document(values, { aliasDuplicateObjects: false });
  if (isMap(document.contents)) {
    describe(document.contents, schema);
    for (const { key } of document.contents.items.slice(1)) if (isScalar(key)) key.spaceBefore = true;
  }
  return document.toString({ lineWidth: 0 }).replaceAll(NAMESPACE, namespace);
}

/** Stands for the default namespace in descriptions. */
const NAMESPACE = 'NAMESPACE';

function describe(map: YAMLMap, schema: z.ZodObject): void {
  const shape: Readonly<Record<string, unknown>> = schema.shape;
  for (const { key, value } of map.items) {
    if (!isScalar(key)) continue;
    const field = shape[String(key.value)];
    if (!(field instanceof z.ZodType)) continue;
    const { description } = field;
    if (description !== undefined) key.commentBefore = description.replaceAll(/^/gm, ' ');
    if (isMap(value) && field instanceof z.ZodObject) describe(value, field);
  }
}
