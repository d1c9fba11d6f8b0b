import { z } from 'zod';
import type { Problem } from '../../constructs';
import { isObject } from '../../constructs/kube/kube-object';
import { nameProblem } from '../../constructs/kube/names';
import { isDeferred, pathsOverlap, propertyPath, type PathStep } from '../bridge';
import { givenSecret, nodeLabel, replaceOutputs, type NodeArgs, type RemoteClusterArgs } from './args';
import { planOutline, unresolvedSecretProblems, type OutlineResult } from './plan';

/** A schema of texts. */
export const text = z.string({ error: ({ input }) => (input === undefined ? 'is required' : 'it must be a text') });

/** A schema of objects with these fields and no others. */
const fields = <T extends z.ZodRawShape>(shape: T, error: string) =>
  z.strictObject(shape, {
    error: ({ code, input }) => {
      if (code === 'unrecognized_keys') return `is no field of it; it has ${Object.keys(shape).join(', ')}`;
      return input === undefined ? 'is required' : error;
    },
  });

const required = (error: string) => ({
  error: ({ input }: { input?: unknown }) => (input === undefined ? 'is required' : error),
});
const machines = z
  .array(z.string('it must be the name or the address of a node'), 'it must be a list of names or addresses of nodes')
  .optional();
const attempts = 'it must be a whole number of at least 1';

/**
 * The types of the arguments that describe a cluster, as far as the code here relies on them. The schema of
 * the Cluster kind checks the rest.
 */
const clusterFields = {
  distribution: z.enum(['rke', 'rke2', 'k3s'], required('it must be rke, rke2 or k3s')),
  version: text,
  nodes: z.array(
    z.looseObject(
      { name: text.optional(), bastion: z.looseObject({}, 'it must be an object with address and user').optional() },
      required('it must be an object with address and roles'),
    ),
    required('it must be a list of objects with address and roles'),
  ),
  options: z.looseObject({}, 'it must be an object').optional(),
  installer: fields(
    { url: text.optional(), path: text.optional(), sha256: text.optional(), artifacts: text.optional() },
    'it must be an object with url or path, sha256 and artifacts, as far as they are needed',
  ).optional(),
  dialAttempts: z.int(attempts).min(1, attempts).optional(),
  removable: machines,
  lost: machines,
};

const componentFields = fields(
  {
    ...clusterFields,
    sshKey: z.unknown().optional(),
    sshKeyPassphrase: z.unknown().optional(),
    secrets: z
      .record(z.string(), z.record(z.string(), z.unknown()), 'it must be an object of objects of texts')
      .optional(),
    clusterName: text.optional(),
    hostKeyChecking: z.enum(['pinned', 'skip-insecure'], 'it must be pinned or skip-insecure').optional(),
    protect: z.boolean('it must be true or false').optional(),
  },
  'it must be an object with distribution, version, nodes and sshKey',
);

/** A cluster as a configuration describes it: a name, and the arguments that are no secrets. */
export type ClusterConfig = WithoutSecrets<RemoteClusterArgs> & { readonly name: string };

type ConfiguredElsewhere = 'clusterName' | 'hostKeyChecking' | 'protect' | 'secrets' | 'sshKey' | 'sshKeyPassphrase';
type WithoutSecrets<T> = T extends unknown ? Omit<T, ConfiguredElsewhere> : never;

/** Parses a {@link ClusterConfig}, as far as types go; {@link checkedOutline} checks the values. */
export const clusterConfig: z.ZodType<ClusterConfig> = z.preprocess(
  withoutNulls,
  fields({ name: text, ...clusterFields }, 'it must be an object with name, distribution, version and nodes')
    .superRefine(({ nodes }, context) => {
      // An argument of the component, but a configuration keeps keys encrypted, apart from the cluster.
      const message = 'is no place for a key: name a Secret in sshKeySecretRef, and give its value in clusterSecrets';
      nodes.forEach(({ bastion }, i) => {
        if (bastion?.['sshKey'] === undefined) return;
        const path = ['nodes', i, 'bastion'];
        context.addIssue({ code: 'unrecognized_keys', keys: ['sshKey'], path, message, input: undefined });
      });
    })
    // The type is inferred from the schemas that check the rest.
    .transform((given) => given as unknown as ClusterConfig),
);

/**
 * Removes fields that are null, which are keys without a value: an empty `hostKey:` must not count as given.
 */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const given = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(given.map(([name, field]) => [name, withoutNulls(field)]));
}

/** The arguments from which a plan is computed: with a wrong type there, nothing further can be checked. */
const PLANNED: ReadonlySet<string> = new Set([
  ...['', 'clusterName', 'distribution', 'installer', 'lost', 'nodes', 'options', 'removable', 'secrets', 'version'],
]);

/**
 * The tasks of a cluster, or what is wrong with the arguments: everything at once, unless a wrong type hides
 * the rest. Missing secrets are known only once there is a plan. Reads no machine.
 */
export function checkedOutline(name: string, args: RemoteClusterArgs): OutlineResult {
  const types = typeProblems(args);
  const deferred = deferredProblems(args).filter(
    ({ path }) => !types.some((other) => other.path === path && other.remedy === 'remove'),
  );
  // An Output is of the wrong type as well, with all its fields, which would be the less helpful messages.
  const others = types.filter(({ path }) => !deferred.some((output) => pathsOverlap(path, output.path)));
  const hidesOthers = types.some(({ path }) => PLANNED.has(/^\w*/.exec(path)?.[0] ?? ''));
  if (hidesOthers || deferred.length > 0) return { problems: [...deferred, ...others] };
  const problems = [...others, ...argumentProblems(args)];
  const planned = planOutline(name, args);
  if ('problems' in planned) return { problems: [...problems, ...planned.problems] };
  const unresolved = unresolvedSecretProblems(planned.outline, (ref) => isGiven(givenSecret(args, ref)));
  return problems.length + unresolved.length === 0 ? planned : { problems: [...problems, ...unresolved] };
}

/** An empty key would let SSH go on and try the keys of an agent. */
const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== '';

/** Arguments of a wrong type, which TypeScript does not see in a spread or in JavaScript. */
function typeProblems(args: RemoteClusterArgs): readonly Problem[] {
  const { issues = [] } = componentFields.safeParse(args).error ?? {};
  return issues.flatMap((issue) => issueProblems(issue));
}

/** The problems that a schema reports as one issue. @param base path of the value that was parsed */
export function issueProblems(issue: z.core.$ZodIssue, base: readonly PathStep[] = []): readonly Problem[] {
  const path = [...base, ...(issue.path as PathStep[])];
  // The message about an invalid key of an object is that of the key's own schema.
  const { message } = (issue.code === 'invalid_key' ? issue.issues[0] : undefined) ?? issue;
  if (issue.code !== 'unrecognized_keys') return [{ path: propertyPath(path), message }];
  return issue.keys.map((key) => ({ path: propertyPath([...path, key]), message, remedy: 'remove' }));
}

/**
 * Problems with the values of the arguments themselves, besides those that the schema and the plans find.
 *
 * @testonly
 */
export function argumentProblems(args: RemoteClusterArgs): readonly Problem[] {
  return [
    ...(args.hostKeyChecking === 'skip-insecure' ? [] : unpinnedHosts(args).map(missingHostKeyProblem)),
    ...labelProblems(args.nodes),
    ...machineReferenceProblems(args, 'removable'),
    ...machineReferenceProblems(args, 'lost'),
    ...passphraseProblems(args),
  ];
}

/**
 * The fields that may be Outputs. All others decide which tasks there are, so they must be known for a plan.
 */
const DEFERRABLE_PATHS = [
  /^nodes\[\d+\]\.(address|internalAddress|hostKey)$/,
  /^nodes\[\d+\]\.bastion\.(address|hostKey|sshKey)$/,
  /^options\.registrationAddress$/,
  /^options\.tlsSans\[\d+\]$/,
];

function deferredProblems(args: RemoteClusterArgs): readonly Problem[] {
  const paths: string[] = [];
  const secrets = { sshKey: undefined, sshKeyPassphrase: undefined, secrets: undefined };
  replaceOutputs({ ...args, ...secrets }, '', (path) => paths.push(path));
  return paths
    .filter((path) => !DEFERRABLE_PATHS.some((allowed) => allowed.test(path)))
    .map((path) => ({ path, message: 'cannot be an Output: which tasks there are depends on it; give a plain value' }));
}

function labelProblems(nodes: readonly NodeArgs[]): readonly Problem[] {
  return nodes.flatMap((node, i): Problem[] => {
    const { name, address } = node;
    const path = `nodes[${i}].name`;
    if (name === undefined && isDeferred(address)) {
      return [{ path, message: 'is required, because the address is an Output: the resources are named by it' }];
    }
    const problem = name === undefined ? undefined : nameProblem(name, { format: 'dns-label' });
    if (problem !== undefined) return [{ path, message: problem }];
    return ambiguousNameProblems(nodes, node, i).map((message) => ({ path, message }));
  });
}

/** A machine's label must be unique, in Pulumi's state and wherever machines are given by name or address. */
function ambiguousNameProblems(nodes: readonly NodeArgs[], { name, address }: NodeArgs, i: number): readonly string[] {
  const find = (means: (other: NodeArgs, j: number) => boolean): number =>
    nodes.findIndex((other, j) => j !== i && means(other, j));
  if (name === undefined) {
    // The schema reports two nodes without names that have the same address.
    const named = find((other, j) => j < i && other.name === address);
    return named < 0
      ? []
      : [`"${nodes[named]?.name ?? ''}", the address, is also the name of nodes[${named}]; each node needs its own`];
  }
  const same = find((other, j) => j < i && nodeLabel(other) === name);
  if (same >= 0) return [`"${name}" is also that of nodes[${same}]; each node needs its own`];
  const addressed = find((other) => other.name !== undefined && other.address === name);
  return addressed < 0
    ? []
    : [`"${name}" is also the address of nodes[${addressed}]; each node needs a name of its own`];
}

/** A machine without a host key, whose identity cannot be checked. */
export interface UnpinnedHost {
  readonly path: string;
  /** Its name for the user. */
  readonly machine: string;
  /** The command that prints its host key. */
  readonly scan: string;
}

/** How SSH reaches a machine. */
type Login = Partial<Pick<NodeArgs, 'address' | 'port' | 'user'>>;

/** The machines without a host key, bastions included. */
export function unpinnedHosts({ nodes }: Pick<RemoteClusterArgs, 'nodes'>): readonly UnpinnedHost[] {
  return nodes.flatMap((node, i) => {
    const { hostKey, bastion } = node;
    const machine = nodeLabel(node) ?? `nodes[${i}]`;
    const own =
      hostKey === undefined ? [{ path: `nodes[${i}].hostKey`, machine, scan: scanCommand(node, bastion) }] : [];
    if (bastion === undefined || bastion.hostKey !== undefined) return own;
    const address = typeof bastion.address === 'string' ? bastion.address : `the bastion of ${machine}`;
    return [...own, { path: `nodes[${i}].bastion.hostKey`, machine: address, scan: scanCommand(bastion) }];
  });
}

function scanCommand(machine: Login, bastion?: Login): string {
  const address = (login: Login): string => (typeof login.address === 'string' ? login.address : 'ADDRESS');
  const port = ({ port: number = 22 }: Login): string => (number === 22 ? '' : `-p ${number} `);
  const through = bastion === undefined ? '' : `ssh ${port(bastion)}${bastion.user ?? 'USER'}@${address(bastion)} `;
  return `${through}ssh-keyscan -t ed25519 ${port(machine)}${address(machine)} | cut -d' ' -f2-`;
}

const missingHostKeyProblem = ({ path, machine, scan }: UnpinnedHost): Problem => ({
  path,
  message:
    `is required: without it, anyone on the network in between can pose as "${machine}". Give what "${scan}" prints, after ` +
    'comparing it with /etc/ssh/ssh_host_ed25519_key.pub on the machine; hostKeyChecking can turn this check off',
});

function machineReferenceProblems(args: RemoteClusterArgs, field: 'lost' | 'removable'): readonly Problem[] {
  const known = new Set(args.nodes.flatMap((node) => [nodeLabel(node), node.address]));
  const problems = (args[field] ?? []).flatMap((machine, i): readonly Problem[] => {
    if (known.has(machine)) return [];
    const message = `"${machine}" is none of the nodes; take it out of here once it is out of nodes`;
    return [{ path: `${field}[${i}]`, message, remedy: 'remove' }];
  });
  // Removing an entry moves those behind it.
  return problems.reverse();
}

function passphraseProblems({ distribution, sshKeyPassphrase }: RemoteClusterArgs): readonly Problem[] {
  if (distribution !== 'rke' || sshKeyPassphrase === undefined) return [];
  const message = 'cannot be used with rke, which reads the key itself: give a key without a passphrase';
  return [{ path: 'sshKeyPassphrase', message, remedy: 'remove' }];
}
