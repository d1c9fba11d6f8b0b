import { Document, isMap, isScalar, type YAMLMap } from 'yaml';
import { z } from 'zod';
import { QUANTITY_PATTERN } from '../../constructs/kind/quantity';
import { MIN_MEMORY_MIB } from '../../constructs/operator/node-options';
import { operatorDefaults } from '../../constructs/operator/operator-props';

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

/** The values of the chart. Their descriptions are comments of values.yaml. */
const chartValues = z.strictObject({
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
  operator: z.strictObject(operatorValues),
  provisioner: z
    .strictObject({
      enabled: z.boolean(),
      ...operatorValues,
      configSecret: nameOrEmpty.describe(
        "Secret in the operator's namespace with the files that configPath of a Cluster may name. Empty: none.",
      ),
      configFiles: files
        .default({})
        .describe('These files by their paths, each with its key there. Empty: one file for each key.'),
    })
    .describe('The operator of the kinds Cluster and Kubeconfig, which makes clusters on machines.'),
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
});

/** Values of the chart. */
export type ChartValues = z.output<typeof chartValues>;

/** The values that are chosen when a chart is made. */
export interface ChartDefaults {
  /** Image of the operator. */
  readonly image: string;
  /** Image of the provisioner. */
  readonly provisionerImage: string;
  /** Whether the chart installs the provisioner. */
  readonly provisionerEnabled: boolean;
  /** `provisioner.configSecret`. @default none */
  readonly provisionerConfigSecret?: string | undefined;
  /** `provisioner.configFiles`. @default none */
  readonly provisionerConfigFiles?: Readonly<Record<string, string>> | undefined;
  /** Namespace that is created with guardrails. */
  readonly samplesNamespace: string;
}

/** The values that the chart has by default. */
export function defaultValues(defaults: ChartDefaults, provisionerMemoryLimitMiB: number): ChartValues {
  const { replicas, logLevel, cpuRequest, memoryRequestMiB, memoryLimitMiB } = operatorDefaults;
  const operator = {
    image: defaults.image,
    imagePullPolicy: 'IfNotPresent' as const,
    imagePullSecrets: [],
    ...{ replicas, logLevel },
    args: [],
    ...{ cpuRequest, memoryRequestMiB, memoryLimitMiB },
    priorityClassName: '',
    nodeSelector: {},
    tolerations: [],
    metricsFrom: [],
  };
  return {
    namespace: '',
    createNamespace: true,
    crds: { enabled: true },
    operator,
    provisioner: {
      enabled: defaults.provisionerEnabled,
      ...operator,
      image: defaults.provisionerImage,
      memoryLimitMiB: provisionerMemoryLimitMiB,
      configSecret: defaults.provisionerConfigSecret ?? '',
      configFiles: { ...defaults.provisionerConfigFiles },
    },
    guardedNamespaces: [{ name: defaults.samplesNamespace, create: true }],
    monitoring: { enabled: false, interval: '30s', labels: {} },
  };
}

/** The JSON Schema of the values, against which Helm checks them. */
export function valuesSchema(namespace: string): object {
  const schema = z.toJSONSchema(chartValues, { target: 'draft-7', io: 'input' });
  return JSON.parse(JSON.stringify(schema).replaceAll(NAMESPACE, namespace)) as object;
}

/** values.yaml: the values, each with its description. */
export function valuesText(values: ChartValues, namespace: string): string {
  const document = new Document(values, { aliasDuplicateObjects: false });
  if (isMap(document.contents)) describe(document.contents, chartValues);
  return document.toString({ lineWidth: 0 }).replaceAll(NAMESPACE, namespace);
}

/** Stands for the default namespace in descriptions. */
const NAMESPACE = 'NAMESPACE';

function describe(map: YAMLMap, schema: z.ZodObject): void {
  const shape: Readonly<Record<string, unknown>> = schema.shape;
  map.items.forEach(({ key, value }, index) => {
    if (!isScalar(key)) return;
    const field = shape[String(key.value)];
    if (!(field instanceof z.ZodType)) return;
    const { description } = field;
    if (description !== undefined) key.commentBefore = description.replaceAll(/^/gm, ' ');
    if (map.flow !== true && index > 0 && schema === chartValues) key.spaceBefore = true;
    if (isMap(value) && field instanceof z.ZodObject) describe(value, field);
  });
}
