import { z } from 'zod';
import { isObject } from '../../constructs/kube/kube-object';
import { nameProblem } from '../../constructs/kube/names';
import { kinds } from '../../constructs/kinds';
import { configFilesProblems } from '../../constructs/kube/secret-files';
import { defaultImage, type GuardedNamespace } from '../../constructs/platform';
import { version } from '../../package.json';
import { clusterConfig, text } from '../remote-cluster/validate';

/** One key of the configuration, for Pulumi.yaml, the documentation and the program. */
export interface ConfigKey<S extends z.ZodType = z.ZodType> {
  /** The form of a value, with an article: `a whole number from 0 to 10`. */
  readonly shape: string;
  /** What it is for. */
  readonly meaning: string;
  /** The value when the key is not set. An empty text, list or object means "not set". @default '' */
  readonly default?: string | number | boolean | readonly string[] | Readonly<Record<string, never>>;
  /**
   * A value as the shell reads it, for an error message. That of a secret is a file, since a value would get
   * into the shell's history. Of a list or an object: the path of an entry, below the key.
   * @default the default; `[0]` or `["KEY"]`
   */
  readonly example?: string;
  /** The value is a secret: rejected in plain text. @default false */
  readonly secret?: boolean;
  /** Parses Pulumi's value into the program's, with all checks that concern this value alone. */
  readonly schema: S;
}

const key = <S extends z.ZodType>(definition: ConfigKey<S>): ConfigKey<S> => definition;

const checked = (problem: (value: string) => string | undefined) =>
  text.superRefine((value, context) => {
    const message = problem(value);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });

const label = checked((value) => nameProblem(value, { format: 'dns-label' }));
const orNothing = (value: string): string | undefined => (value === '' ? undefined : value);
const isEmpty = (value: object): boolean => Object.keys(value).length === 0;

const list = <T extends z.ZodType>(items: T) =>
  z.array(items).refine((values) => new Set(values).size === values.length, { error: 'an entry stands in it twice' });

/** Finds a kind by its name or by the name of its CRD. */
const findKind = (name: string) => kinds.find(({ kind, crdName }) => name === kind || name === crdName);
const kindName = checked((name) =>
  findKind(name) === undefined
    ? `"${name}" is no kind of the operator; there are ${kinds.map(({ kind }) => kind).join(', ')}`
    : undefined,
);

const labelKey = (fallback: string, meaning: string) =>
  key({ shape: 'a DNS label', meaning, default: fallback, schema: label });

const imageKey = (operator: 'operator' | 'provisioner') =>
  key({
    shape: 'an image',
    meaning: `The ${operator}'s image. Prefer a digest.`,
    default: defaultImage(operator, version),
    schema: text.regex(/^\S+$/, 'it is no image: give one such as registry/name@sha256:...'),
  });

const flag = (fallback: boolean, meaning: string) =>
  key({ shape: 'true or false', meaning, default: fallback, schema: z.boolean() });

const namespaces = (meaning: string) =>
  key({ shape: 'a list of namespaces', meaning, default: [], schema: list(label) });

const whole = (from: number, to: number, fallback: number, meaning: string) =>
  key({
    shape: `a whole number from ${from} to ${to}`,
    meaning,
    default: fallback,
    schema: z.int().min(from).max(to),
  });

/**
 * Every key of the stack's configuration, without its namespace `kindred:`. `npm run config` writes
 * Pulumi.yaml and the documentation from it.
 */
export const configKeys = {
  kubeconfig: key({
    shape: 'the text of a kubeconfig, set with --secret',
    meaning: 'The cluster to install on.',
    example: '< ~/.kube/config',
    secret: true,
    schema: text
      .refine((value) => value === '' || /[\n{]/.test(value), 'it looks like the path of a file: give the text in it')
      .transform(orNothing),
  }),
  context: key({
    shape: 'the name of a context',
    meaning:
      'Of kubeconfig, or without one of the kubeconfig file of whoever runs pulumi. One of the two, or cluster, must be set.',
    example: '"$(kubectl config current-context)"',
    schema: text.transform(orNothing),
  }),
  namespace: labelKey(
    'kindred-system',
    'Namespace of the operator. It is created, or taken over if it stands, and stays when the stack goes.',
  ),
  operatorImage: imageKey('operator'),
  provisioner: flag(false, 'Install the provisioner too, which makes clusters for the kinds Cluster and Kubeconfig.'),
  provisionerImage: imageKey('provisioner'),
  provisionerSecretNamespaces: namespaces(
    "Further namespaces whose Secrets a Cluster may name, besides the operator's own. They must stand already.",
  ),
  provisionerConfigSecret: key({
    shape: 'the name of a Secret',
    meaning: "Secret in the operator's namespace with the files that `configPath` of a Cluster may name. Empty: none.",
    schema: checked((value) => (value === '' ? undefined : nameProblem(value, { format: 'dns-subdomain' }))).transform(
      orNothing,
    ),
  }),
  provisionerConfigFiles: key({
    shape: 'an object of texts',
    meaning:
      'The files of provisionerConfigSecret by their paths, each with its key there. Empty: a file for each key, under its name.',
    default: {},
    schema: z
      .record(z.string(), text)
      .superRefine((files, context) => {
        for (const { message } of configFilesProblems('', files)) context.addIssue({ code: 'custom', message });
      })
      .transform((files) => (isEmpty(files) ? undefined : files)),
  }),
  replicas: whole(0, 10, 2, 'Pods of each operator: one leads, the others stand by.'),
  kinds: key({
    shape: 'a list of kinds',
    meaning: 'The kinds to install, such as HelloApp or helloapps.apps.anupam.com. Empty: all that the operator runs.',
    default: [],
    schema: list(kindName).transform((names) =>
      names.length === 0 ? kinds : kinds.filter((kind) => names.map(findKind).includes(kind)),
    ),
  }),
  watchNamespaces: namespaces(
    'The namespaces that the operators are confined to, their permissions too. Empty: the whole cluster.',
  ),
  guardedNamespaces: key({
    shape: 'a list of names, or of objects {name, create, quota, containers}',
    meaning: 'Namespaces with a quota and limits.',
    default: [],
    // The platform itself checks them.
    schema: z.array(z.custom<GuardedNamespace | string>()),
  }),
  samples: flag(false, 'Create one sample of each kind.'),
  samplesNamespace: labelKey(
    'kindred-samples',
    'Namespace of the samples. Created with guardrails when samples is true.',
  ),
  monitoring: flag(
    false,
    'Create a PodMonitor and a PrometheusRule. The cluster must have the CRDs of the Prometheus operator: a preview fails and names the one that is missing.',
  ),
  monitoringLabels: key({
    shape: 'an object of texts',
    meaning: 'Labels by which a Prometheus selects its monitors and rules, such as {release: prometheus}.',
    default: {},
    schema: z.record(z.string(), text),
  }),
  timeoutSeconds: whole(
    1,
    86_400,
    600,
    'How many seconds to wait until an operator is available and a sample is Ready, and until they are gone.',
  ),
  protect: flag(
    false,
    'Refuse to delete the CRDs: destroy then fails until it is false. They stay in the cluster anyway.',
  ),
  protectMachines: flag(
    true,
    'Refuse to take anything off the machines of cluster: destroy then fails until it is false.',
  ),
  cluster: key({
    shape: 'an object {name, distribution: rke | rke2 | k3s, version, nodes: [{address, roles, ...}], options}',
    meaning: 'A cluster to make first.',
    default: {},
    schema: z.preprocess((value) => (isObject(value) && isEmpty(value) ? undefined : value), clusterConfig.optional()),
  }),
  sshKey: key({
    shape: 'a private key in PEM, set with --secret',
    meaning: 'Private SSH key for the machines of cluster.',
    example: '< ~/.ssh/id_ed25519',
    secret: true,
    schema: text
      .refine(
        (value) => value === '' || /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(value),
        'it is no private key in PEM: give the text of the file, not its path, and not that of the .pub',
      )
      // `pulumi config set` removes the final line break, without which OpenSSH cannot read the key.
      .transform((value) => (value.trim() === '' ? undefined : `${value.trimEnd()}\n`)),
  }),
  sshKeyPassphrase: key({
    shape: 'a text, set with --secret',
    meaning: 'Passphrase of sshKey.',
    example: '< FILE',
    secret: true,
    schema: text.transform(orNothing),
  }),
  clusterSecrets: key({
    shape: 'an object {<namespace>/<name>: {<key>: <text>}}, set with --secret',
    meaning: 'What the refs in the options of cluster mean.',
    default: {},
    example: '["NAMESPACE/NAME"].KEY',
    secret: true,
    schema: z.record(
      z.string().regex(/^[a-z0-9.-]+\/[a-z0-9.-]+$/, 'each key must be <namespace>/<name> of a ref'),
      z.record(z.string(), text, 'it must be an object of texts'),
    ),
  }),
  hostKeyChecking: flag(
    true,
    'Refuse machines whose host key is not in cluster. false trusts whatever answers, with a warning.',
  ),
} as const;

/** Name of a key. */
export type ConfigKeyName = keyof typeof configKeys;

/** The values of all keys. */
export type ConfigValues = { readonly [K in ConfigKeyName]: z.output<(typeof configKeys)[K]['schema']> };
