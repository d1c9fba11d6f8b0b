import type { z } from 'zod';
import type { Problem } from '../../../kube/errors';
import { isObject } from '../../../kube/kube-object';
import { host, ipAddress, linuxUser, nodeName } from '../../../kinds/cluster-fields';
import { MAX_NODES, nodeRole } from '../../../kinds/cluster-node';
import type { NodeRole } from '../../cluster-input';

/** A machine that a cluster.yml names. */
export interface FileNode {
  readonly address: string;
  readonly port: number;
  readonly user: string;
  readonly roles: readonly NodeRole[];
  readonly internalAddress?: string;
  readonly hostnameOverride?: string;
}

/** The bastion that a cluster.yml names. */
export type FileBastion = Pick<FileNode, 'address' | 'port' | 'user'>;

/**
 * The machines of a configuration that has passed the rules. What of them goes into scripts and logins must have the form that the typed fields
 * have.
 */
export function machinesOf(
  config: Readonly<Record<string, unknown>>,
  problems: Problem[],
): { nodes: FileNode[]; bastion?: FileBastion } {
  const list: readonly unknown[] = Array.isArray(config['nodes']) ? config['nodes'] : [];
  if (list.length === 0) problems.push({ path: 'nodes', message: 'names no machine; add at least one' });
  if (list.length > MAX_NODES) {
    problems.push({ path: 'nodes', message: `names ${list.length} machines; ${MAX_NODES} are taken` });
  }
  const nodes = list.slice(0, MAX_NODES).flatMap((node, i) => nodeOf(node, `nodes[${i}]`, problems) ?? []);
  const found = config['bastion_host'];
  const wanted = isObject(found) && !isMissing(found['address']);
  const bastion = wanted ? loginOf(found, 'bastion_host', problems) : undefined;
  return bastion === undefined ? { nodes } : { nodes, bastion };
}

function nodeOf(node: unknown, path: string, problems: Problem[]): FileNode | undefined {
  if (!isObject(node)) return undefined;
  const login = loginOf(node, path, problems);
  const roles = rolesOf(node['role'], path, problems);
  const internalAddress = optional(node, 'internal_address', ipAddress(), path, problems);
  const hostnameOverride = optional(node, 'hostname_override', nodeName(), path, problems);
  if (login === undefined || roles === undefined) return undefined;
  return {
    ...login,
    roles,
    ...(internalAddress === undefined ? {} : { internalAddress }),
    ...(hostnameOverride === undefined ? {} : { hostnameOverride }),
  };
}

function loginOf(fields: Record<string, unknown>, path: string, problems: Problem[]): FileBastion | undefined {
  const address = optional(fields, 'address', host(), path, problems);
  const user = optional(fields, 'user', linuxUser(), path, problems);
  const port = portOf(fields['port'], path, problems);
  for (const [name, value] of Object.entries({ address, user })) {
    if (value === undefined && isMissing(fields[name]))
      problems.push({ path: `${path}.${name}`, message: 'is missing' });
  }
  return address === undefined || user === undefined || port === undefined ? undefined : { address, port, user };
}

function optional(
  fields: Record<string, unknown>,
  name: string,
  schema: z.ZodString,
  path: string,
  problems: Problem[],
): string | undefined {
  const value = fields[name];
  if (isMissing(value)) return undefined;
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const why = result.error.issues.map(({ message }) => message).join('; ');
  problems.push({ path: `${path}.${name}`, message: why });
  return undefined;
}

function portOf(value: unknown, path: string, problems: Problem[]): number | undefined {
  if (isMissing(value)) return 22;
  const port = typeof value === 'string' && /^[1-9][0-9]{0,4}$/.test(value) ? Number(value) : 0;
  if (port >= 1 && port <= 65535) return port;
  problems.push({ path: `${path}.port`, message: 'must be a port, 1 to 65535' });
  return undefined;
}

function rolesOf(value: unknown, path: string, problems: Problem[]): readonly NodeRole[] | undefined {
  const roles = nodeRole.array().min(1).safeParse(value);
  if (roles.success) return roles.data;
  problems.push({ path: `${path}.role`, message: 'must be a list of controlplane, etcd and worker, at least one' });
  return undefined;
}

const isMissing = (value: unknown): boolean => value === undefined || value === '';
