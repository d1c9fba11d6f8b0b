import { dirname, relative, resolve } from 'node:path';
import { load as loadYaml } from 'js-yaml';
import type { Problem } from '../../constructs/kube/errors';
import { withDefaults } from '../../constructs/kind/render';
import { Cluster } from '../../constructs/kinds/cluster';
import {
  clusterInput,
  clusterProblems,
  clusterTasks,
  kubeconfigOutput,
  type ClusterInput,
  type Node,
  type OutputRef,
  type Task,
} from '../../provision';
import {
  readClusterYml,
  rkeClusterYmlText,
  rkeKubeconfig,
  rkeTasksFromFile,
  type ClusterYmlFile,
  type FileNode,
  type RkeTaskOptions,
  type UnknownHosts,
} from '../../provision/rke';
import { sha256 } from '../../provision/task/sha256';
import { PlanError, type PlanRun } from '../../operator/effects/plan-runner';

/** What to execute for a Cluster, whether its spec has nodes or a cluster.yml. */
export interface DesiredCluster {
  readonly plan: readonly Task[];
  readonly kubeconfig: OutputRef;
  readonly nodes: readonly Pick<Node, 'address' | 'roles'>[];
  /** Version of Kubernetes. @default RKE's own */
  readonly version?: string;
  /** For `status.appliedConfig`. The text contains no secret. */
  readonly appliedConfig: { readonly text: string; readonly sha256: string };
  /**
   * Texts that the plan reads as files of these names, besides files of the configured directory. May be
   * secret.
   */
  readonly texts: Readonly<Record<string, string>>;
  /** Only for clusters with nodes in the spec: the next change is compared with it. */
  readonly input?: ClusterInput;
}

/** Names under which a plan reads texts that no file contains. No path below a directory looks like this. */
const CLUSTER_YML = '//cluster.yml';
const MASKS = '//masks';

/** Name under which a plan reads the host keys that are known when a task runs. */
export const HOST_KEYS = '//host-keys';

/** Options of RKE's plans: the provisioner stores each task's outputs, also those of failed runs. */
export const rkeOptions = (trustOnFirstUse: boolean) =>
  ({
    stateFrom: 'stdin',
    unknownHosts: trustOnFirstUse ? 'accept' : 'refuse',
    hostKeys: { file: HOST_KEYS },
  }) as const satisfies RkeTaskOptions;

/**
 * Reads the desired cluster from the spec, and from its cluster.yml if it names one.
 *
 * @throws PlanError `ErrInvalidConfig` with all problems; whatever `run.secret` and `run.file` throw
 */
export async function readDesiredCluster(
  run: PlanRun,
  previous: ClusterInput | undefined,
  { configDir, trustOnFirstUse }: { readonly configDir?: string; readonly trustOnFirstUse: boolean },
): Promise<DesiredCluster> {
  const rke = rkeOptions(trustOnFirstUse);
  const object = withDefaults(Cluster, run.object);
  const { name } = object.metadata;
  const { spec } = object;
  if (spec.nodes !== undefined) return desiredFromSpec(clusterInput(name, spec), previous, rke);
  const { configPath, configSecretRef, sshKeySecretRef } = spec;
  const hostKeys = Object.fromEntries((spec.hostKeys ?? []).map(({ address, hostKey }) => [address, hostKey]));
  const text = configSecretRef === undefined ? await run.file(configPath ?? '') : await run.secret(configSecretRef);
  const source = configSecretRef === undefined ? `the file "${configPath ?? ''}"` : 'the Secret of configSecretRef';
  const directory = configDir === undefined ? {} : { directory: resolve(configDir) };
  const folder = configPath === undefined ? '' : folderOf(configPath, configDir);
  const file = readClusterYml(parseYaml(text, source), {
    ...directory,
    folder,
    sshKey: sshKeySecretRef !== undefined,
  });
  const problems = [...file.problems, ...fileHostKeyProblems(file, hostKeys, trustOnFirstUse)];
  if (problems.length > 0) throw invalidConfigError(`the cluster.yml in ${source}`, problems);
  const plan = rkeTasksFromFile(
    {
      name,
      file,
      clusterYml: { file: CLUSTER_YML },
      masks: { file: MASKS },
      hostKeys,
      ...(sshKeySecretRef === undefined ? {} : { sshKey: sshKeySecretRef }),
    },
    rke,
  );
  const masks = file.secretTexts.map((secret) => JSON.stringify(secret)).join('\n');
  return {
    plan,
    kubeconfig: rkeKubeconfig(rke),
    nodes: file.nodes.map(nodeOfFile),
    ...(file.kubernetesVersion === undefined ? {} : { version: file.kubernetesVersion }),
    appliedConfig: { text: file.redactedClusterYml, sha256: sha256(text) },
    texts: { [CLUSTER_YML]: rkeClusterYmlText(file, sshKeySecretRef !== undefined), [MASKS]: masks },
  };
}

function desiredFromSpec(
  input: ClusterInput,
  previous: ClusterInput | undefined,
  rke: ReturnType<typeof rkeOptions>,
): DesiredCluster {
  const problems = [...clusterProblems(input, previous), ...typedHostKeyProblems(input, rke.unknownHosts)];
  if (problems.length > 0) throw invalidConfigError('the spec', problems);
  const { distribution, version, nodes, options } = input;
  const text = `${JSON.stringify({ distribution, version, nodes, [distribution]: options }, null, 2)}\n`;
  return {
    plan: clusterTasks(input, { rke }),
    kubeconfig: kubeconfigOutput(input, { rke }),
    nodes,
    version,
    appliedConfig: { text, sha256: sha256(text) },
    texts: {},
    input,
  };
}

const NO_HOST_KEY = 'the provisioner runs with --require-host-keys, and no host key is given of';

/** Checked here, since a preflight that has succeeded does not run again. */
function typedHostKeyProblems({ distribution, nodes }: ClusterInput, unknownHosts: UnknownHosts): readonly Problem[] {
  if (distribution !== 'rke' || unknownHosts === 'accept') return [];
  return nodes.flatMap(({ address, hostKey, bastion }, i) => [
    ...(hostKey === undefined ? [{ path: `nodes[${i}].hostKey`, message: `${NO_HOST_KEY} ${address}` }] : []),
    ...(bastion === undefined || bastion.hostKey !== undefined
      ? []
      : [{ path: `nodes[${i}].bastion.hostKey`, message: `${NO_HOST_KEY} ${bastion.address}` }]),
  ]);
}

function fileHostKeyProblems(
  { nodes, bastion }: ClusterYmlFile,
  hostKeys: Readonly<Record<string, string>>,
  trustOnFirstUse: boolean,
): readonly Problem[] {
  if (trustOnFirstUse) return [];
  const login = [
    ...nodes.map(({ address }, i) => ({ path: `nodes[${i}]`, address })),
    ...(bastion === undefined ? [] : [{ path: 'bastion_host', address: bastion.address }]),
  ];
  return login
    .filter(({ address }) => hostKeys[address] === undefined)
    .map(({ path, address }) => ({ path, message: `${NO_HOST_KEY} ${address}: give it in spec.hostKeys` }));
}

/** The directory of a file, relative to the configured directory. */
function folderOf(path: string, configDir = '/'): string {
  return dirname(relative(resolve(configDir), resolve(configDir, path)));
}

function nodeOfFile({ address, roles }: FileNode): Pick<Node, 'address' | 'roles'> {
  return { address, roles: roles as Node['roles'] };
}

function parseYaml(text: string, source: string): unknown {
  try {
    return loadYaml(text);
  } catch {
    // The parser's message quotes the text, which may contain keys.
    throw invalidConfigError(`the cluster.yml in ${source}`, [
      { path: '', message: 'it is no YAML, or a key stands twice in it' },
    ]);
  }
}

function invalidConfigError(what: string, problems: ClusterYmlFile['problems']): PlanError {
  const list = problems.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ');
  return new PlanError('ErrInvalidConfig', `${what} cannot be used: ${list}`, { isTerminal: true });
}
