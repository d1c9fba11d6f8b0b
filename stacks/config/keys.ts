import { z } from 'zod';
import { nameProblem } from '../../constructs/core/names';
import type { NameRule } from '../../constructs/core/names';
import { kinds } from '../../constructs/kinds';
import { configFilesProblems } from '../../constructs/operator';
import { version } from '../../package.json';
import { kindName } from './kinds';

/** The types that `config` of a Pulumi.yaml knows. */
export type ConfigType = 'string' | 'integer' | 'boolean' | 'array' | 'object';

/** One key of the configuration. */
export interface ConfigKey<T = unknown> {
  readonly type: ConfigType;
  /** What it means, as `pulumi config` shows it. */
  readonly description: string;
  /** What it is when nobody sets it. An empty text, list or object stands for "not set". */
  readonly default: string | number | boolean | readonly string[] | Readonly<Record<string, never>>;
  /** Holds what nobody may read: refused in plain text, and never quoted in an error. @default false */
  readonly secret?: boolean;
  /** A list of more than one type, which a Pulumi.yaml cannot express: it declares no type then. @default false */
  readonly mixed?: boolean;
  /** What to write after `pulumi config set`, for people whose value is wrong. */
  readonly example: string;
  /** The checks of the value alone. */
  readonly schema: z.ZodType<T>;
}

const named = (rule: NameRule): z.ZodString =>
  z.string().superRefine((value, context) => {
    const message = nameProblem(value, rule);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });

const image = z.string().regex(/^\S+$/, { error: 'it is no image: give one such as registry/name@sha256:...' });

const configFiles = z.record(z.string(), z.string()).superRefine((files, context) => {
  for (const { message } of configFilesProblems('', files)) context.addIssue({ code: 'custom', message });
});

/** YAML reads 8 as a number, and so does `pulumi config set --path`. Whether it is a quantity is for the guardrails to see. */
const quantity = z
  .preprocess(
    (value) => (typeof value === 'number' ? String(value) : value),
    z.string({ error: 'it must be a quantity, such as 2, 400m or 8Gi' }),
  )
  .optional();

const quantities = z.strictObject({ cpu: quantity, memory: quantity });

const guardedNamespace = z.strictObject({
  name: named({ format: 'dns-label' }),
  create: z.boolean().optional(),
  quota: z
    .strictObject({
      'requests.cpu': quantity,
      'limits.cpu': quantity,
      'requests.memory': quantity,
      'limits.memory': quantity,
    })
    .optional(),
  containers: z
    .strictObject({ default: quantities.optional(), defaultRequest: quantities.optional(), max: quantities.optional() })
    .optional(),
});

const list = <T extends z.ZodType>(items: T) =>
  z.array(items).refine((values) => new Set(values.map((value) => JSON.stringify(value))).size === values.length, {
    error: 'an entry stands in it twice',
  });

function key<T>(definition: ConfigKey<T>): ConfigKey<T> {
  return definition;
}

/** Every key of the stack's configuration, without its namespace `kindred:`. Pulumi.yaml says the same; a test holds them together. */
export const configKeys = {
  kubeconfig: key({
    type: 'string',
    secret: true,
    description: 'Text of the kubeconfig of the cluster to install on. Set it with --secret.',
    default: '',
    example: '--secret kubeconfig < ~/.kube/config',
    schema: z.string().refine((text) => text === '' || /[\n{]/.test(text), {
      error: 'it looks like the path of a file: give the text in it',
    }),
  }),
  context: key({
    type: 'string',
    description: 'Context to use: of kubeconfig, or without one of the kubeconfig file of whoever runs pulumi.',
    default: '',
    example: 'context prod',
    schema: z.string(),
  }),
  namespace: key({
    type: 'string',
    description: 'Namespace of the operator. Created with the stack, and deleted with it.',
    default: 'kindred-system',
    example: 'namespace kindred-system',
    schema: named({ format: 'dns-label' }),
  }),
  operatorImage: key({
    type: 'string',
    description: "The operator's image. Prefer a digest.",
    default: `kindred-operator:${version}`,
    example: 'operatorImage registry.example.com/kindred-operator@sha256:...',
    schema: image,
  }),
  provisioner: key({
    type: 'boolean',
    description: 'Install the provisioner too, which makes clusters for the kinds Cluster and Kubeconfig.',
    default: false,
    example: 'provisioner true',
    schema: z.boolean(),
  }),
  provisionerImage: key({
    type: 'string',
    description: "The provisioner's image. Prefer a digest.",
    default: `kindred-provisioner:${version}`,
    example: 'provisionerImage registry.example.com/kindred-provisioner@sha256:...',
    schema: image,
  }),
  provisionerSecretNamespaces: key({
    type: 'array',
    description:
      "Further namespaces whose Secrets a Cluster may name, besides the operator's own. They must stand already.",
    default: [],
    example: "--path 'provisionerSecretNamespaces[0]' machines",
    schema: list(named({ format: 'dns-label' })),
  }),
  provisionerConfigSecret: key({
    type: 'string',
    description:
      "Secret in the operator's namespace with the files that `configPath` of a Cluster may name. Empty: none.",
    default: '',
    example: 'provisionerConfigSecret cluster-files',
    schema: z.union([z.literal(''), named({ format: 'dns-subdomain' })]),
  }),
  provisionerConfigFiles: key({
    type: 'object',
    description:
      'The files of provisionerConfigSecret by their paths, each with its key there. Empty: a file for each key, under its name.',
    default: {},
    example: `--path 'provisionerConfigFiles["clusters/aws.yml"]' aws.yml`,
    schema: configFiles,
  }),
  replicas: key({
    type: 'integer',
    description: 'Pods of each operator: one leads, the others stand by. 0 to 10.',
    default: 2,
    example: 'replicas 2',
    schema: z.int().min(0).max(10),
  }),
  kinds: key({
    type: 'array',
    description:
      'The kinds to install, such as HelloApp or helloapps.apps.anupam.com. Empty: all that the operator runs.',
    default: [],
    example: "--path 'kinds[0]' HelloApp",
    schema: list(kindName(kinds)),
  }),
  watchNamespaces: key({
    type: 'array',
    description: 'The namespaces that the operators are confined to, their permissions too. Empty: the whole cluster.',
    default: [],
    example: "--path 'watchNamespaces[0]' shop",
    schema: list(named({ format: 'dns-label' })),
  }),
  guardedNamespaces: key({
    type: 'array',
    mixed: true,
    description: 'Namespaces with a quota and limits: names, or objects {name, create, quota, containers}.',
    default: [],
    example: "--path 'guardedNamespaces[0]' shop",
    schema: list(z.union([named({ format: 'dns-label' }), guardedNamespace])),
  }),
  samples: key({
    type: 'boolean',
    description: 'Create one sample of each kind.',
    default: false,
    example: 'samples true',
    schema: z.boolean(),
  }),
  samplesNamespace: key({
    type: 'string',
    description: 'Namespace of the samples. Created with guardrails when samples is true.',
    default: 'kindred-samples',
    example: 'samplesNamespace kindred-samples',
    schema: named({ format: 'dns-label' }),
  }),
  monitoring: key({
    type: 'boolean',
    description:
      'Create a PodMonitor and a PrometheusRule. The CRDs of the Prometheus operator must stand in the cluster.',
    default: false,
    example: 'monitoring true',
    schema: z.boolean(),
  }),
  monitoringLabels: key({
    type: 'object',
    description: 'Labels by which a Prometheus selects its monitors and rules, such as {release: prometheus}.',
    default: {},
    example: "--path 'monitoringLabels.release' prometheus",
    schema: z.record(z.string(), z.string()),
  }),
  timeoutSeconds: key({
    type: 'integer',
    description:
      'How long to wait until an operator is available and a sample is Ready, and until they are gone, in seconds. 1 to 86400.',
    default: 600,
    example: 'timeoutSeconds 600',
    schema: z.int().min(1).max(86_400),
  }),
  protect: key({
    type: 'boolean',
    description: 'Refuse to delete the CRDs: destroy then fails until it is false. They stay in the cluster anyway.',
    default: false,
    example: 'protect true',
    schema: z.boolean(),
  }),
  protectMachines: key({
    type: 'boolean',
    description: 'Refuse to take anything off the machines of cluster: destroy then fails until it is false.',
    default: true,
    example: 'protectMachines true',
    schema: z.boolean(),
  }),
  cluster: key({
    type: 'object',
    description:
      'A cluster to make first: {name, distribution: rke | rke2 | k3s, version, nodes: [{address, roles, ...}], options}.',
    default: {},
    example: "--path 'cluster.distribution' k3s",
    schema: z.record(z.string(), z.unknown()),
  }),
  sshKey: key({
    type: 'string',
    secret: true,
    description: 'Private SSH key for the machines of cluster, in PEM. Set it with --secret.',
    default: '',
    example: '--secret sshKey < ~/.ssh/id_ed25519',
    schema: z.string().refine((text) => text === '' || /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text), {
      error: 'it is no private key in PEM: give the text of the file, not its path, and not that of the .pub',
    }),
  }),
  sshKeyPassphrase: key({
    type: 'string',
    secret: true,
    description: 'Passphrase of sshKey. Set it with --secret.',
    default: '',
    example: '--secret sshKeyPassphrase',
    schema: z.string(),
  }),
  clusterSecrets: key({
    type: 'object',
    secret: true,
    description:
      'What the refs in the options of cluster mean: {<namespace>/<name>: {<key>: <text>}}. Set it with --secret.',
    default: {},
    example: `--secret --path 'clusterSecrets["backups/s3"].secretKey'`,
    schema: z.record(
      z.string().regex(/^[a-z0-9.-]+\/[a-z0-9.-]+$/, { error: 'each key must be <namespace>/<name> of a ref' }),
      z.record(z.string(), z.string()),
    ),
  }),
  hostKeyChecking: key({
    type: 'boolean',
    description: 'Refuse machines whose host key is not in cluster. false trusts whatever answers, with a warning.',
    default: true,
    example: 'hostKeyChecking true',
    schema: z.boolean(),
  }),
} as const;

/** Name of a key. */
export type ConfigKeyName = keyof typeof configKeys;

/** The values of all keys, before the rules that span several. */
export type ConfigValues = {
  readonly [K in ConfigKeyName]: (typeof configKeys)[K] extends ConfigKey<infer T> ? T : never;
};

/** The command that mends a key. */
export function remedyOf(name: ConfigKeyName): { readonly remedy: string } {
  const { example } = configKeys[name];
  // The first mention is the key; after it comes the value.
  return { remedy: `pulumi config set ${example.replace(new RegExp(`\\b${name}\\b`), `kindred:${name}`)}` };
}
