import { z } from 'zod';
import { isObject } from '../../constructs/kube/kube-object';
import { nameProblem, type NameRule } from '../../constructs/kube/names';
import { guardrailProblems } from '../../constructs/guardrails/namespace-guardrails';
import { kinds } from '../../constructs/kinds';
import { configFilesProblems } from '../../constructs/operator';
import type { GuardedNamespace } from '../../constructs/platform';
import { version } from '../../package.json';

/** One key of the configuration, for Pulumi.yaml, the documentation and the program. */
export interface ConfigKey<S extends z.ZodType = z.ZodType> {
  /** The form of a value, with an article: `a whole number from 0 to 10`. */
  readonly shape: string;
  /** What it is for. */
  readonly meaning: string;
  /** The value when the key is not set. An empty text, list or object means "not set". */
  readonly default: string | number | boolean | readonly string[] | Readonly<Record<string, never>>;
  /**
   * Arguments of `pulumi config set`, for an error message. The first mention of the key is the key itself.
   */
  readonly example: string;
  /** The value is a secret: rejected in plain text. @default false */
  readonly secret?: boolean;
  /** Parses Pulumi's value into the program's, with all checks that concern this value alone. */
  readonly schema: S;
}

const key = <S extends z.ZodType>(definition: ConfigKey<S>): ConfigKey<S> => definition;

const text = z.string({ error: ({ input }) => (input === undefined ? 'is required' : 'it must be a text') });

function checked<T extends z.ZodType<string>>(schema: T, problem: (value: string) => string | undefined) {
  return schema.superRefine((value, context) => {
    const message = problem(value);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });
}

const label = checked(text, (value) => nameProblem(value, { format: 'dns-label' } satisfies NameRule));
const image = text.regex(/^\S+$/, { error: 'it is no image: give one such as registry/name@sha256:...' });
const orNothing = (value: string): string | undefined => (value === '' ? undefined : value);
const isEmpty = (value: object): boolean => Object.keys(value).length === 0;

const list = <T extends z.ZodType>(items: T) =>
  z.array(items).refine((values) => new Set(values.map((value) => JSON.stringify(value))).size === values.length, {
    error: 'an entry stands in it twice',
  });

/** An object with these fields and no others. */
const fields = <T extends z.ZodRawShape>(shape: T, error: string) =>
  z.strictObject(shape, {
    error: ({ code, input }) => {
      if (code === 'unrecognized_keys') return `is no field of it; it has ${Object.keys(shape).join(', ')}`;
      return input === undefined ? 'is required' : error;
    },
  });

/** Finds a kind by its name or by the name of its CRD. */
const findKind = (name: string) => kinds.find(({ kind, crdName }) => name === kind || name === crdName);
const kindName = checked(text, (name) =>
  findKind(name) === undefined
    ? `"${name}" is no kind of the operator; there are ${kinds.map(({ kind }) => kind).join(', ')}`
    : undefined,
);

/**
 * YAML and `pulumi config set --path` read 8 as a number. `guardrailProblems` checks whether it is a
 * quantity.
 */
const quantity = z
  .preprocess(
    (value) => (typeof value === 'number' ? String(value) : value),
    z.string({ error: 'it must be a quantity, such as 2, 400m or 8Gi' }),
  )
  .optional();
const quantities = fields({ cpu: quantity, memory: quantity }, 'it must be an object of cpu and memory').optional();
const quota = {
  'requests.cpu': quantity,
  'limits.cpu': quantity,
  'requests.memory': quantity,
  'limits.memory': quantity,
};
const containers = { default: quantities, defaultRequest: quantities, max: quantities };
const guardedObject = fields(
  {
    name: label,
    create: z.boolean({ error: 'it must be true or false' }).optional(),
    quota: fields(quota, 'it must be an object of quantities').optional(),
    containers: fields(containers, 'it must be an object of quantities').optional(),
  },
  'it must be a name, or an object with a name',
).transform((entry, context) => {
  // Makes fields that were left out absent instead of undefined.
  const guarded = JSON.parse(JSON.stringify(entry)) as GuardedNamespace;
  for (const { path, message } of guardrailProblems(guarded)) {
    // The names of a quota's resources contain dots.
    const steps = path.startsWith('quota.') ? ['quota', path.slice('quota.'.length)] : path.split('.');
    context.addIssue({ code: 'custom', message, path: steps });
  }
  return guarded;
});

const configFiles = z.record(z.string(), text).superRefine((files, context) => {
  for (const { message } of configFilesProblems('', files)) context.addIssue({ code: 'custom', message });
});

const machines = z
  .array(z.string({ error: 'it must be the name or the address of a node' }), {
    error: 'it must be a list of names or addresses of nodes',
  })
  .optional();
const attempts = { error: 'it must be a whole number of at least 1' };
const object = (error: string) => ({
  error: ({ input }: { input?: unknown }) => (input === undefined ? 'is required' : error),
});

/** Checks only what the code here relies on. The schema of the Cluster kind checks the rest of the spec. */
const cluster = fields(
  {
    name: text,
    distribution: text,
    version: text,
    nodes: z.array(
      z.looseObject(
        { name: z.string({ error: 'it must be a text' }).optional() },
        object('it must be an object with address and roles'),
      ),
      object('it must be a list of objects with address and roles'),
    ),
    options: z.unknown().optional(),
    installer: z
      .looseObject(
        {},
        { error: 'it must be an object with url or path, sha256 and artifacts, as far as they are needed' },
      )
      .optional(),
    dialAttempts: z.int(attempts).min(1, attempts).optional(),
    removable: machines,
    lost: machines,
  },
  'it must be an object with name, distribution, version and nodes',
);

/** Fields of a cluster with the right types; their values are not checked yet. */
export type ClusterFields = z.output<typeof cluster>;

/**
 * Removes fields that are null, which are keys without a value: an empty `hostKey:` must not count as given.
 */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const given = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(given.map(([name, field]) => [name, withoutNulls(field)]));
}

const flag = (meaning: string, name: string, fallback: boolean) =>
  key({ shape: 'true or false', meaning, default: fallback, example: `${name} true`, schema: z.boolean() });

const namespaces = (meaning: string, name: string, example: string) =>
  key({
    shape: 'a list of namespaces',
    meaning,
    default: [],
    example: `--path '${name}[0]' ${example}`,
    schema: list(label),
  });

const whole = (from: number, to: number, rest: Pick<ConfigKey, 'meaning' | 'default' | 'example'>) =>
  key({ shape: `a whole number from ${from} to ${to}`, ...rest, schema: z.int().min(from).max(to) });

/**
 * Every key of the stack's configuration, without its namespace `kindred:`. `npm run config` writes
 * Pulumi.yaml and the documentation from it.
 */
export const configKeys = {
  kubeconfig: key({
    shape: 'the text of a kubeconfig, set with --secret',
    meaning: 'The cluster to install on.',
    default: '',
    secret: true,
    example: '--secret kubeconfig < ~/.kube/config',
    schema: text
      .refine((value) => value === '' || /[\n{]/.test(value), {
        error: 'it looks like the path of a file: give the text in it',
      })
      .transform(orNothing),
  }),
  context: key({
    shape: 'the name of a context',
    meaning:
      'Of kubeconfig, or without one of the kubeconfig file of whoever runs pulumi. One of the two, or cluster, must be set.',
    default: '',
    example: 'context prod',
    schema: text.transform(orNothing),
  }),
  namespace: key({
    shape: 'a DNS label',
    meaning: 'Namespace of the operator. It is created, or taken over if it stands, and stays when the stack goes.',
    default: 'kindred-system',
    example: 'namespace kindred-system',
    schema: label,
  }),
  operatorImage: key({
    shape: 'an image',
    meaning: "The operator's image. Prefer a digest.",
    default: `kindred-operator:${version}`,
    example: 'operatorImage registry.example.com/kindred-operator@sha256:...',
    schema: image,
  }),
  provisioner: flag(
    'Install the provisioner too, which makes clusters for the kinds Cluster and Kubeconfig.',
    'provisioner',
    false,
  ),
  provisionerImage: key({
    shape: 'an image',
    meaning: "The provisioner's image. Prefer a digest.",
    default: `kindred-provisioner:${version}`,
    example: 'provisionerImage registry.example.com/kindred-provisioner@sha256:...',
    schema: image,
  }),
  provisionerSecretNamespaces: namespaces(
    "Further namespaces whose Secrets a Cluster may name, besides the operator's own. They must stand already.",
    'provisionerSecretNamespaces',
    'machines',
  ),
  provisionerConfigSecret: key({
    shape: 'the name of a Secret',
    meaning: "Secret in the operator's namespace with the files that `configPath` of a Cluster may name. Empty: none.",
    default: '',
    example: 'provisionerConfigSecret cluster-files',
    schema: checked(text, (value) =>
      value === '' ? undefined : nameProblem(value, { format: 'dns-subdomain' }),
    ).transform(orNothing),
  }),
  provisionerConfigFiles: key({
    shape: 'an object of texts',
    meaning:
      'The files of provisionerConfigSecret by their paths, each with its key there. Empty: a file for each key, under its name.',
    default: {},
    example: `--path 'provisionerConfigFiles["clusters/aws.yml"]' aws.yml`,
    schema: configFiles.transform((files) => (isEmpty(files) ? undefined : files)),
  }),
  replicas: whole(0, 10, {
    meaning: 'Pods of each operator: one leads, the others stand by.',
    default: 2,
    example: 'replicas 2',
  }),
  kinds: key({
    shape: 'a list of kinds',
    meaning: 'The kinds to install, such as HelloApp or helloapps.apps.anupam.com. Empty: all that the operator runs.',
    default: [],
    example: "--path 'kinds[0]' HelloApp",
    schema: list(kindName).transform((names) =>
      names.length === 0 ? kinds : kinds.filter((kind) => names.map(findKind).includes(kind)),
    ),
  }),
  watchNamespaces: key({
    ...namespaces(
      'The namespaces that the operators are confined to, their permissions too. Empty: the whole cluster.',
      'watchNamespaces',
      'shop',
    ),
    schema: list(label).transform((names) => (names.length === 0 ? undefined : names)),
  }),
  guardedNamespaces: key({
    shape: 'a list of names, or of objects {name, create, quota, containers}',
    meaning: 'Namespaces with a quota and limits.',
    default: [],
    example: "--path 'guardedNamespaces[0]' shop",
    schema: list(z.union([label, guardedObject])),
  }),
  samples: flag('Create one sample of each kind.', 'samples', false),
  samplesNamespace: key({
    shape: 'a DNS label',
    meaning: 'Namespace of the samples. Created with guardrails when samples is true.',
    default: 'kindred-samples',
    example: 'samplesNamespace kindred-samples',
    schema: label,
  }),
  monitoring: flag(
    'Create a PodMonitor and a PrometheusRule. The cluster must have the CRDs of the Prometheus operator: a preview fails and names the one that is missing.',
    'monitoring',
    false,
  ),
  monitoringLabels: key({
    shape: 'an object of texts',
    meaning: 'Labels by which a Prometheus selects its monitors and rules, such as {release: prometheus}.',
    default: {},
    example: "--path 'monitoringLabels.release' prometheus",
    schema: z.record(z.string(), text),
  }),
  timeoutSeconds: whole(1, 86_400, {
    meaning: 'How many seconds to wait until an operator is available and a sample is Ready, and until they are gone.',
    default: 600,
    example: 'timeoutSeconds 600',
  }),
  protect: flag(
    'Refuse to delete the CRDs: destroy then fails until it is false. They stay in the cluster anyway.',
    'protect',
    false,
  ),
  protectMachines: flag(
    'Refuse to take anything off the machines of cluster: destroy then fails until it is false.',
    'protectMachines',
    true,
  ),
  cluster: key({
    shape: 'an object {name, distribution: rke | rke2 | k3s, version, nodes: [{address, roles, ...}], options}',
    meaning: 'A cluster to make first.',
    default: {},
    example: "--path 'cluster.distribution' k3s",
    schema: z.preprocess(
      (value) => (isObject(value) && isEmpty(value) ? undefined : withoutNulls(value)),
      cluster.optional(),
    ),
  }),
  sshKey: key({
    shape: 'a private key in PEM, set with --secret',
    meaning: 'Private SSH key for the machines of cluster.',
    default: '',
    secret: true,
    example: '--secret sshKey < ~/.ssh/id_ed25519',
    schema: text
      .refine((value) => value === '' || /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(value), {
        error: 'it is no private key in PEM: give the text of the file, not its path, and not that of the .pub',
      })
      // `pulumi config set` removes the final line break, without which OpenSSH cannot read the key.
      .transform((value) => (value.trim() === '' ? undefined : `${value.trimEnd()}\n`)),
  }),
  sshKeyPassphrase: key({
    shape: 'a text, set with --secret',
    meaning: 'Passphrase of sshKey.',
    default: '',
    secret: true,
    example: '--secret sshKeyPassphrase',
    schema: text.transform(orNothing),
  }),
  clusterSecrets: key({
    shape: 'an object {<namespace>/<name>: {<key>: <text>}}, set with --secret',
    meaning: 'What the refs in the options of cluster mean.',
    default: {},
    secret: true,
    example: `--secret --path 'clusterSecrets["backups/s3"].secretKey'`,
    schema: z.record(
      z.string().regex(/^[a-z0-9.-]+\/[a-z0-9.-]+$/, { error: 'each key must be <namespace>/<name> of a ref' }),
      z.record(z.string(), text, { error: 'it must be an object of texts' }),
    ),
  }),
  hostKeyChecking: flag(
    'Refuse machines whose host key is not in cluster. false trusts whatever answers, with a warning.',
    'hostKeyChecking',
    true,
  ),
} as const;

/** Name of a key. */
export type ConfigKeyName = keyof typeof configKeys;

/** The values of all keys, before the checks that span several of them. */
export type ConfigValues = { readonly [K in ConfigKeyName]: z.output<(typeof configKeys)[K]['schema']> };
