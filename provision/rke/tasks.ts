import type { ObjectKeyRef } from '../../constructs/kind/reads';
import type { Node, RkeInput } from '../cluster/cluster-input';
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

/** Id of the task that meets machines whose host keys nobody gave, where that is allowed. */
export const RKE_HOST_KEYS = 'rke/host-keys';
/** Id of the task that makes and changes the cluster. */
export const RKE_UP = 'rke/up';
/** Id of the task that tries once more, where there is one. */
export const RKE_RETRY = 'rke/converged';

/** How the tasks of RKE are to be carried out. */
export interface RkeTaskOptions {
  /**
   * Where RKE's state comes from besides the machines: `stdin` adds it as an output of {@link RKE_UP}'s previous run, for a carrier that has those
   * (and gives an empty text where there is none). The newest wins.
   * @default 'machines'
   */
  readonly stateFrom?: 'stdin' | 'machines';
  /**
   * For a carrier that forgets the outputs of a task that failed: {@link RKE_UP} then ends well as long as there is a state, and a second task tries
   * once more and fails.
   * @default false
   */
  readonly keepFailedRuns?: boolean;
  /** Machines without a host key: have the state kept there all the same, or refuse. @default 'refuse' */
  readonly unknownHosts?: UnknownHosts;
  /**
   * Where the carrier has the host keys that it knows, looked up for each run: lines of `[address]:port type base64`, or `address type base64` for
   * every port, of which the first that fits counts. Machines that nobody knows are then met in a task of their own ({@link RKE_HOST_KEYS}), whose
   * output is stored before anything is sent to them.
   * @default those of the plan alone
   */
  readonly hostKeys?: ValueSource;
}

/** Which task and output is the kubeconfig. */
export function rkeKubeconfig({ keepFailedRuns = false }: RkeTaskOptions = {}): { task: string; name: string } {
  return { task: keepFailedRuns ? RKE_RETRY : RKE_UP, name: 'kubeconfig' };
}

/**
 * The tasks for a typed input, which must have no problems: a preflight of each machine, then RKE for all of them at once.
 *
 * Caveat: RKE itself checks no host key (`ssh.InsecureIgnoreHostKey` in hosts/tunnel.go), so each run does, right before: whoever takes a machine's
 * place between the two is not noticed.
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

/** A user's cluster.yml that was read without problems, and what belongs to it. */
export interface RkeFileInput {
  /** Name of the Cluster. */
  readonly name: string;
  readonly file: ClusterYmlFile;
  /** Where the carrier has the text of `rkeClusterYmlText(file)`, which holds secrets. It must not take the user's own file. */
  readonly clusterYml: ValueSource;
  /** Where the carrier has `file.secretTexts`, as JSON strings, one a line. */
  readonly masks: ValueSource;
  /** Takes the place of all SSH keys that the file names. @default the files that it names */
  readonly sshKey?: ObjectKeyRef;
  /** Public host keys by address. @default none is known */
  readonly hostKeys?: Readonly<Record<string, string>>;
}

/** The text that RKE is to be given for a user's cluster.yml: only what was taken from it. **It holds secrets.** */
export function rkeClusterYmlText(file: ClusterYmlFile, sshKey: boolean): string {
  const source = yamlSource(withClusterKeyPath(file.config, sshKey));
  return 'text' in source ? source.text : '';
}

/**
 * The tasks for a user's cluster.yml. Without `sshKey` there is no preflight: a machine's key can only be one of a Secret.
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

/** Only for a carrier that keeps what it gives, and only where a key is missing. */
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

/** @param met - machines are met in a task of their own, so that here there are none that nobody knows */
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

/** RKE overrides this field of the file by its flag, whether that is given or not. Source: setOptionsFromCLI of RKE 1.6 (cmd/common.go). */
const flagsOf = (config: YamlObject): string =>
  config['ignore_docker_version'] === true ? '--ignore-docker-version' : '';

const nodeCount = (config: YamlObject): number => (Array.isArray(config['nodes']) ? config['nodes'].length : 0);

function linesOf(sources: readonly ValueSource[]): ValueSource {
  return sources.length === 0 ? { text: '' } : { template: sources.flatMap((source) => [source, '\n']) };
}

function machineOf({ address, port, user, hostKey, bastion }: Node, sshKey: ObjectKeyRef): Machine {
  return {
    ...login({ address, port, user, hostKey }),
    sshKey,
    ...(bastion === undefined ? {} : { bastion: { ...login(bastion), sshKey: bastion.sshKeySecretRef ?? sshKey } }),
  };
}

function fileMachine(node: FileNode & SshTarget, bastion: SshTarget | undefined, sshKey: ObjectKeyRef): Machine {
  return { ...login(node), sshKey, ...(bastion === undefined ? {} : { bastion: { ...login(bastion), sshKey } }) };
}

function login({ address, port, user, hostKey }: Omit<SshTarget, 'keyPath'>): Omit<Machine, 'bastion'> {
  return { address, port, user, ...(hostKey === undefined ? {} : { hostKey }) };
}

/**
 * The task that a carrier recorded, as it is taken away now, whatever version of this project it was recorded by: with the present script, the host
 * keys that are known now, and all machines of the cluster.yml that RKE last ran with. Other tasks than {@link RKE_UP} stay as they are.
 *
 * @param textOf - the text of a file that the task reads, or undefined where there is none
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
  // Written by yamlSource, and so JSON. A secret's value says nothing about a machine.
  const text = renderSource(yml, (leaf) => ('file' in leaf ? (textOf(leaf.file) ?? '{}') : ''));
  const config = JSON.parse(text) as Readonly<Record<string, unknown>>;
  const values = connectionStdin(fileTargets(machinesOf(config, []), config), options)
    // Those that the plan was made with, by the same names, stay.
    .filter(({ name }) => name !== 'known_hosts');
  const names = new Set(values.map(({ name }) => name));
  return {
    ...task,
    remove: removeScript(cluster, RKE_UP),
    stdin: [...stdin.filter(({ name }) => !names.has(name)), ...values],
  };
}
