import type { ObjectKeyRef } from '../../constructs/kind/reads';
import { loginOf, machineOf, type RkeInput } from '../cluster/cluster-input';
import { renderSource } from '../task/script-io';
import type { Machine, ValueSource, StdinValue, Task } from '../task/task';
import { BASTION_KEY_PATH, CLUSTER_KEY_PATH, clusterYml, withClusterKeyPath } from './cluster-yml';
import { preflightTask } from './preflight';
import { machinesOf, type ClusterYmlFile, type FileNode } from './read-cluster-yml';
import { hostKeyScanScript, removeScript, upScript } from './scripts/run-rke';
import {
  connectionStdin,
  fileTargets,
  groupTargets,
  type SshTarget,
  type SshTargets,
  type UnknownHosts,
} from './ssh-config';
import { lookupSources, yamlSource, type YamlObject } from './yaml';

/**
 * Id of the task that fetches host keys that were not given, where trust on first use is allowed.
 *
 * @testonly
 */
export const RKE_HOST_KEYS = 'rke/host-keys';
/** Id of the task that creates and changes the cluster. */
export const RKE_UP = 'rke/up';
/**
 * Id of the task that retries, if there is one.
 *
 * @testonly
 */
export const RKE_RETRY = 'rke/converged';

/** Options of RKE's tasks. They depend on the runner of the plan: the provisioner, or Pulumi. */
export interface RkeTaskOptions {
  /**
   * Where RKE's state comes from: `stdin` adds that in the outputs of {@link RKE_UP}'s previous run to those
   * on the machines, for a runner that has these outputs (and returns an empty text if there is none). The
   * newest wins.
   * @default 'machines'
   */
  readonly stateFrom?: 'stdin' | 'machines';
  /**
   * For a runner that drops the outputs of a failed task: {@link RKE_UP} then succeeds as long as there is a
   * state, and a second task retries, and fails if that fails.
   * @default false
   */
  readonly keepFailedRuns?: boolean;
  /** Whether to accept the first host key of a machine whose key is not known. @default 'refuse' */
  readonly unknownHosts?: UnknownHosts;
  /**
   * Source of the runner's known host keys, looked up for each run: lines of `[address]:port type base64`, or
   * `address type base64` for all ports; the first match counts. A task of its own ({@link RKE_HOST_KEYS})
   * then fetches unknown keys, and its output is stored before anything is sent to those machines.
   * @default those of the plan alone
   */
  readonly hostKeys?: ValueSource;
}

/**
 * The tasks for a typed input, which must have no problems: a preflight of each machine, then RKE for all of
 * them at once.
 *
 * Caveat: RKE itself checks no host key (`ssh.InsecureIgnoreHostKey` in hosts/tunnel.go), so each run checks
 * them just before it starts RKE. A machine that is replaced between the two is not noticed.
 */
export function rkeTasks(input: RkeInput, options: RkeTaskOptions = {}): readonly Task[] {
  const { name, nodes, sshKey } = input;
  const bastion = nodes[0]?.bastion;
  const keys: KeyFile[] = [{ path: CLUSTER_KEY_PATH, from: { secret: sshKey } }];
  if (bastion?.sshKeySecretRef !== undefined) {
    keys.push({ path: BASTION_KEY_PATH, from: { secret: bastion.sshKeySecretRef } });
  }
  const config = clusterYml(input);
  return buildTasks(
    {
      name,
      config,
      clusterYml: yamlSource(config),
      masks: linesOf(lookupSources(config)),
      keys,
      targets: groupTargets(
        nodes.map((node) => ({ ...node, keyPath: CLUSTER_KEY_PATH })),
        bastion && {
          ...bastion,
          keyPath: bastion.sshKeySecretRef === undefined ? CLUSTER_KEY_PATH : BASTION_KEY_PATH,
        },
      ),
      machines: nodes.map((node) => machineOf(node, sshKey)),
    },
    options,
  );
}

/** The input of {@link rkeTasksFromFile}: a user's cluster.yml that was read without problems. */
export interface RkeFileInput {
  /** Name of the Cluster. */
  readonly name: string;
  readonly file: ClusterYmlFile;
  /**
   * Source of the text of `rkeClusterYmlText(file)`, which contains secrets. It must not be the user's own
   * file.
   */
  readonly clusterYml: ValueSource;
  /** Source of `file.secretTexts`, as JSON strings, one per line. */
  readonly masks: ValueSource;
  /** Replaces all SSH keys that the file names. @default the files that it names */
  readonly sshKey?: ObjectKeyRef;
  /** Public host keys by address. @default none is known */
  readonly hostKeys?: Readonly<Record<string, string>>;
}

/**
 * The tasks for a user's cluster.yml. Without `sshKey` there is no preflight: a machine's key can only be one
 * of a Secret.
 *
 * @throws TypeError when the file has problems
 */
export function rkeTasksFromFile(input: RkeFileInput, options: RkeTaskOptions = {}): readonly Task[] {
  const { name, file, sshKey } = input;
  if (file.problems.length > 0) throw new TypeError(`${name}: its cluster.yml has problems; show them instead`);
  const config = withClusterKeyPath(file.config, sshKey !== undefined);
  const paths = [...new Set(file.files.map(({ path }) => path))];
  const keys: KeyFile[] = paths
    .filter((path) => sshKey === undefined || file.files.some((one) => one.path === path && one.purpose === 'addon'))
    .map((path) => ({ path, from: { file: path } }));
  if (sshKey !== undefined) keys.push({ path: CLUSTER_KEY_PATH, from: { secret: sshKey } });
  const targets = fileTargets(file, config, input.hostKeys);
  const { bastion } = targets;
  return buildTasks(
    {
      name,
      config,
      clusterYml: input.clusterYml,
      masks: input.masks,
      keys,
      targets,
      machines: sshKey === undefined ? [] : targets.nodes.map((node) => fileMachine(node, bastion, sshKey)),
    },
    options,
  );
}

/** The cluster.yml for RKE: only the accepted part of the user's file. **It contains secrets.** */
export function rkeClusterYmlText(file: ClusterYmlFile, sshKey: boolean): string {
  const source = yamlSource(withClusterKeyPath(file.config, sshKey));
  return 'text' in source ? source.text : '';
}

/** The task and output with the kubeconfig. */
export function rkeKubeconfig({ keepFailedRuns = false }: RkeTaskOptions = {}): { task: string; name: string } {
  return { task: keepFailedRuns ? RKE_RETRY : RKE_UP, name: 'kubeconfig' };
}

/**
 * A recorded task {@link RKE_UP} with the present removal, whatever version of this project recorded it: with
 * the present script, the host keys that are known now, and all machines of the cluster.yml that RKE last ran
 * with. Other tasks are returned unchanged.
 *
 * @param textOf - the text of a file that the task reads, or undefined if there is none
 */
export function refreshRkeRemoval<T extends Omit<Task, 'apply'>>(
  task: T,
  cluster: string,
  options: Pick<RkeTaskOptions, 'hostKeys' | 'unknownHosts'>,
  textOf: (file: string) => string | undefined,
): T {
  const { id, stdin = [] } = task;
  const yml = stdin.find(({ name }) => name === 'cluster_yml')?.from;
  if (id !== RKE_UP || yml === undefined) return task;
  // `yamlSource` wrote it, so it is JSON. Machines do not depend on the values of secrets, so these may be
  // empty.
  const text = renderSource(yml, (leaf) => ('file' in leaf ? (textOf(leaf.file) ?? '{}') : ''));
  const config = JSON.parse(text) as Readonly<Record<string, unknown>>;
  const values = connectionStdin(fileTargets(machinesOf(config, []), config), options)
    // The recorded known_hosts, with the same names of machines, are kept.
    .filter(({ name }) => name !== 'known_hosts');
  const names = new Set(values.map(({ name }) => name));
  return {
    ...task,
    remove: removeScript(cluster, RKE_UP),
    stdin: [...stdin.filter(({ name }) => !names.has(name)), ...values],
  };
}

interface KeyFile {
  /** Relative to RKE's working directory. */
  readonly path: string;
  readonly from: ValueSource;
}

interface RkeTaskInput {
  readonly name: string;
  readonly config: YamlObject;
  readonly clusterYml: ValueSource;
  readonly masks: ValueSource;
  readonly keys: readonly KeyFile[];
  readonly targets: SshTargets;
  readonly machines: readonly Machine[];
}

function buildTasks(parts: RkeTaskInput, options: RkeTaskOptions): readonly Task[] {
  const { name: cluster, config, machines } = parts;
  const { keepFailedRuns = false } = options;
  const preflights = machines.map((machine, i) => preflightTask(machine, config, i));
  const meeting = hostKeyScanTask(parts, options, preflights);
  const before = [...preflights, ...meeting];
  const stdin = stdinOf(parts, options, meeting.length > 0);
  const outputs = ['state', 'serial', 'kubeconfig'];
  const common = { timeoutSeconds: 1800 + 180 * nodeCount(config) };
  const up: Task = {
    ...common,
    id: RKE_UP,
    description: `rke up of the cluster ${cluster}`,
    after: before.map(({ id }) => id),
    apply: upScript({ cluster, id: RKE_UP, keepFailedRuns }),
    remove: removeScript(cluster, RKE_UP),
    stdin: [...stdin, ...(options.stateFrom === 'stdin' ? previousOutputs(['state', 'serial']) : [])],
    outputs: keepFailedRuns ? [...outputs, 'outcome'] : outputs,
  };
  if (!keepFailedRuns) return [...before, up];
  return [
    ...before,
    up,
    {
      ...common,
      id: RKE_RETRY,
      description: `rke up of the cluster ${cluster} once more, if it failed`,
      after: [RKE_UP],
      apply: upScript({ cluster, id: RKE_RETRY, afterRun: true }),
      stdin: [...stdin, ...previousOutputs([...outputs, 'outcome'])],
      outputs,
    },
  ];
}

/** Only for a runner that stores its output, and only where a host key is missing. */
function hostKeyScanTask(parts: RkeTaskInput, options: RkeTaskOptions, after: readonly Task[]): readonly Task[] {
  const { controlPlane, others, bastion } = parts.targets;
  const isGiven = ({ hostKey }: SshTarget): boolean => hostKey !== undefined;
  if (options.hostKeys === undefined || options.unknownHosts !== 'accept') return [];
  if ([...controlPlane, ...others].every(isGiven) && (bastion === undefined || isGiven(bastion))) return [];
  return [
    {
      id: RKE_HOST_KEYS,
      description: `host keys of the machines of the cluster ${parts.name}`,
      after: after.map(({ id }) => id),
      apply: hostKeyScanScript(parts.name, RKE_HOST_KEYS),
      stdin: [...stdinOf(parts, options, false), SCANNED_KEYS],
      outputs: ['host_keys'],
      timeoutSeconds: 120 + 20 * nodeCount(parts.config),
    },
  ];
}

const SCANNED_KEYS: StdinValue = {
  name: 'met_keys',
  from: { output: { task: RKE_HOST_KEYS, name: 'host_keys' } },
  volatile: true,
};

/** @param met - a task of its own has fetched unknown host keys, so that none are accepted here */
function stdinOf({ keys, config, ...parts }: RkeTaskInput, options: RkeTaskOptions, met: boolean): StdinValue[] {
  const named = keys.map((key, i) => ({ ...key, name: `key_${i}` }));
  return [
    { name: 'cluster_yml', from: parts.clusterYml },
    { name: 'flags', from: { text: flagsOf(config) } },
    { name: 'layout', from: { text: named.map(({ name, path }) => `${name} ${path}\n`).join('') }, volatile: true },
    ...named.map(({ name, from }): StdinValue => ({ name, from, volatile: true })),
    { name: 'masks', from: parts.masks, volatile: true },
    ...connectionStdin(parts.targets, met ? { ...options, unknownHosts: 'refuse' } : options),
    ...(met ? [SCANNED_KEYS] : []),
  ];
}

const previousOutputs = (names: readonly string[]): StdinValue[] =>
  names.map((name) => ({ name, from: { output: { task: RKE_UP, name } }, volatile: true }));

/**
 * RKE replaces this field of the file by its flag, whether that is given or not. Source: setOptionsFromCLI of
 * RKE 1.6 (cmd/common.go).
 */
const flagsOf = (config: YamlObject): string =>
  config['ignore_docker_version'] === true ? '--ignore-docker-version' : '';

const nodeCount = (config: YamlObject): number => (Array.isArray(config['nodes']) ? config['nodes'].length : 0);

function linesOf(sources: readonly ValueSource[]): ValueSource {
  return sources.length === 0 ? { text: '' } : { template: sources.flatMap((source) => [source, '\n']) };
}

function fileMachine(node: FileNode & SshTarget, bastion: SshTarget | undefined, sshKey: ObjectKeyRef): Machine {
  return { ...loginOf(node), sshKey, ...(bastion === undefined ? {} : { bastion: { ...loginOf(bastion), sshKey } }) };
}
