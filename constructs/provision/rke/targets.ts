import type { Source, StdinValue } from '../task';
import type { ClusterYmlFile, FileBastion, FileNode } from './file/read';
import { CLUSTER_KEY_PATH, WORK_FOLDER } from './layout';
import { sshFiles } from './ssh-config';
import type { SshTarget, SshTargets, UnknownHosts } from './ssh-config';

/** The machines by what the scripts do with them; `nodes` has all of them, in the order given. */
export function targetsOf<T extends SshTarget & Pick<FileNode, 'roles'>>(
  nodes: readonly T[],
  bastion: SshTarget | undefined,
): SshTargets & { readonly nodes: readonly T[] } {
  const isControlPlane = ({ roles }: T): boolean => roles.includes('controlplane');
  return {
    nodes,
    controlPlane: nodes.filter(isControlPlane),
    others: nodes.filter((node) => !isControlPlane(node)),
    bastion,
  };
}

/**
 * The machines of a cluster.yml, each with the SSH key that it names.
 *
 * @param hostKeys - public host keys by address
 */
export function fileTargets(
  { nodes, bastion }: Pick<ClusterYmlFile, 'bastion' | 'nodes'>,
  config: Readonly<Record<string, unknown>>,
  hostKeys: Readonly<Record<string, string>> = {},
): SshTargets & { readonly nodes: readonly (FileNode & SshTarget)[] } {
  const withKeys = <T extends FileBastion>(login: T, field: unknown): T & SshTarget => ({
    ...login,
    keyPath: keyPathOf(field, config),
    hostKey: hostKeys[login.address],
  });
  const entries = Array.isArray(config['nodes']) ? (config['nodes'] as readonly unknown[]) : [];
  return targetsOf(
    nodes.map((node, i) => withKeys(node, entries[i])),
    bastion && withKeys(bastion, config['bastion_host']),
  );
}

/** What a script reads to connect to the machines. None of it is a reason to run again. */
export function connectionValues(
  targets: SshTargets,
  { unknownHosts = 'refuse', hostKeys }: { readonly unknownHosts?: UnknownHosts; readonly hostKeys?: Source },
): readonly StdinValue[] {
  const { config, knownHosts, machines } = sshFiles(targets, WORK_FOLDER);
  return [
    { name: 'ssh_config', from: { text: config }, volatile: true },
    { name: 'known_hosts', from: { text: knownHosts }, volatile: true },
    { name: 'unknown_hosts', from: { text: unknownHosts }, volatile: true },
    { name: 'machines', from: { text: machines }, volatile: true },
    ...(hostKeys === undefined ? [] : [{ name: 'host_keys', from: hostKeys, volatile: true }]),
  ];
}

function keyPathOf(entry: unknown, config: Readonly<Record<string, unknown>>): string {
  const own = typeof entry === 'object' && entry !== null && 'ssh_key_path' in entry ? entry.ssh_key_path : undefined;
  const path = own ?? config['ssh_key_path'];
  return typeof path === 'string' ? path : CLUSTER_KEY_PATH;
}
