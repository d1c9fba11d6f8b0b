import { isObject } from '../../../kube/kube-object';
import { CLUSTER_KEY_PATH } from '../layout';
import type { Document, DocumentObject } from '../yaml-text';

/** A configuration with the one key for everything in place of those that it names, or as it is. */
export function withKeyPaths(config: DocumentObject, sshKey: boolean): DocumentObject {
  if (!sshKey) return config;
  const { nodes, bastion_host: bastion } = config;
  return {
    ...without(config),
    ssh_key_path: CLUSTER_KEY_PATH,
    ...(Array.isArray(nodes) ? { nodes: (nodes as readonly Document[]).map(without) } : {}),
    ...(isObject(bastion) ? { bastion_host: without(bastion) } : {}),
  };
}

function without<T extends Document>(entry: T): T {
  if (!isObject(entry)) return entry;
  return Object.fromEntries(
    Object.entries(entry).filter(
      ([name]) => name !== 'ssh_key_path' && name !== 'ssh_cert_path' && name !== 'ssh_cert',
    ),
  ) as unknown as T;
}
