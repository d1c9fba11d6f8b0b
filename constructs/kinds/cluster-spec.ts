import { z } from 'zod';
import { immutable, listMap, withRule } from '../kind/fields';
import { cel } from '../kind/schema/cel';
import { filePath, secretKeyRef, sshKeyRef } from './cluster-fields';
import { MAX_NODES, hostKeys, nodeRole, nodes } from './cluster-node';
import { installer, k3sOptions, rke2Options, rkeOptions } from './cluster-options';

/** Versions as the distributions name them: `v1.24.8-rancher1-1`, `v1.30.4+rke2r1`, `v1.30.4+k3s1`; the latter two also `-rc1`. */
const VERSION_PATTERN =
  /^v1\.[0-9]{1,2}\.[0-9]{1,2}(-rancher[0-9]{1,2}-[0-9]{1,2}|(-rc[0-9]{1,2})?\+(rke2r|k3s)[0-9]{1,2})$/;

const fields = z.object({
  configPath: filePath()
    .optional()
    .describe(
      "Path of an RKE cluster.yml inside the provisioner's configured directory; an absolute path must lie in it too.",
    ),
  configSecretRef: secretKeyRef.optional().describe('An RKE cluster.yml in a Secret.'),
  hostKeys: hostKeys
    .optional()
    .describe(
      'Host keys of the machines of a cluster.yml, by address. Default: those seen first, which are held from then on.',
    ),
  nodes: nodes.optional().describe('The machines. Goes with distribution and version.'),
  distribution: immutable(z.enum(['rke', 'rke2', 'k3s']), 'cannot be changed: make a new Cluster')
    .optional()
    .describe('Which Kubernetes to install on the nodes. Cannot be changed.'),
  version: z
    .string()
    .max(32)
    .regex(VERSION_PATTERN, { error: 'must look like v1.24.8-rancher1-1, v1.30.4+rke2r1 or v1.30.4+k3s1' })
    .optional()
    .describe('Version to install, as the distribution names it.'),
  rke: rkeOptions.optional().describe('Options of the distribution rke.'),
  rke2: rke2Options.optional().describe('Options of the distribution rke2.'),
  k3s: k3sOptions.optional().describe('Options of the distribution k3s.'),
  installer: installer
    .optional()
    .describe("Where the installation script of rke2 or k3s comes from. Default: the distribution's own."),
  sshKeySecretRef: sshKeyRef
    .optional()
    .describe(
      'Private SSH key for the machines. Required with nodes; with a cluster.yml it takes the place of its keys.',
    ),
  deletionPolicy: z
    .enum(['Delete', 'Retain'])
    .default('Delete')
    .describe('When this object is deleted: take the cluster down, or leave it, its state and its kubeconfig alone.'),
  maxAttempts: z
    .int()
    .min(1)
    .max(100)
    .default(5)
    .describe('How often provisioning a generation, or the removal, is tried before a person is asked.'),
});

type Fields = z.output<typeof fields>;
type Node = NonNullable<Fields['nodes']>[number];

interface Rule {
  readonly rule: string;
  readonly message: string;
  readonly check: (spec: Fields) => boolean;
}

const someNodeHasRole = ({ nodes }: Fields, role: Node['roles'][number]): boolean =>
  nodes === undefined || nodes.some(({ roles }) => roles.includes(role));

const datastoreType = ({ k3s }: Fields): string => k3s?.datastore?.type ?? 'etcd';

const optionsRule = (distribution: 'rke' | 'rke2' | 'k3s'): Rule => ({
  rule: `!has(self.${distribution}) || (has(self.distribution) && self.distribution == "${distribution}")`,
  message: `the options ${distribution} go with the distribution ${distribution}`,
  check: (spec) => spec[distribution] === undefined || spec.distribution === distribution,
});

export const VERSION_MARKERS = { rke: '-rancher', rke2: '+rke2r', k3s: '+k3s' } as const;

const versionRule = (distribution: keyof typeof VERSION_MARKERS): Rule => ({
  rule: `!has(self.version) || !has(self.distribution) || self.distribution != "${distribution}" || self.version.contains("${VERSION_MARKERS[distribution]}")`,
  message: `a version of ${distribution} has "${VERSION_MARKERS[distribution]}" in it`,
  check: ({ distribution: chosen, version }) =>
    chosen !== distribution || version === undefined || version.includes(VERSION_MARKERS[distribution]),
});

/** Rules across fields. The preflight checks the machines. */
const rules: readonly Rule[] = [
  {
    rule: '[has(self.configPath), has(self.configSecretRef), has(self.nodes)].exists_one(given, given)',
    message: 'give exactly one of configPath, configSecretRef and nodes',
    check: (spec) =>
      [spec.configPath, spec.configSecretRef, spec.nodes].filter((given) => given !== undefined).length === 1,
  },
  {
    rule: 'has(self.nodes) == has(self.distribution) && has(self.nodes) == has(self.version)',
    message: 'nodes, distribution and version go together: give all or none',
    check: (spec) =>
      (spec.nodes === undefined) === (spec.distribution === undefined) &&
      (spec.nodes === undefined) === (spec.version === undefined),
  },
  {
    rule: '!has(self.hostKeys) || !has(self.nodes)',
    message: 'hostKeys goes with a cluster.yml; each of the nodes has a hostKey of its own',
    check: (spec) => spec.hostKeys === undefined || spec.nodes === undefined,
  },
  {
    rule: '!has(self.nodes) || has(self.sshKeySecretRef)',
    message: 'nodes need sshKeySecretRef',
    check: (spec) => spec.nodes === undefined || spec.sshKeySecretRef !== undefined,
  },
  ...(['rke', 'rke2', 'k3s'] as const).flatMap((distribution) => [
    optionsRule(distribution),
    versionRule(distribution),
  ]),
  {
    rule: '!has(self.installer) || (has(self.distribution) && self.distribution != "rke")',
    message: 'installer goes with the distributions rke2 and k3s',
    check: ({ installer: given, distribution }) =>
      given === undefined || (distribution !== undefined && distribution !== 'rke'),
  },
  {
    rule: '!has(self.nodes) || self.nodes.exists(node, "controlplane" in node.roles)',
    message: 'at least one node must have the role controlplane',
    check: (spec) => someNodeHasRole(spec, 'controlplane'),
  },
  {
    rule:
      '!has(self.nodes) || self.nodes.exists(node, "etcd" in node.roles) || ' +
      '(has(self.k3s) && has(self.k3s.datastore) && self.k3s.datastore.type != "etcd")',
    message: 'at least one node must have the role etcd, unless K3s has another datastore',
    check: (spec) => someNodeHasRole(spec, 'etcd') || datastoreType(spec) !== 'etcd',
  },
  {
    rule:
      '!has(self.nodes) || !has(self.distribution) || self.distribution != "rke" || ' +
      'self.nodes.exists(node, "worker" in node.roles)',
    message: 'with rke at least one node must have the role worker',
    check: (spec) => spec.distribution !== 'rke' || someNodeHasRole(spec, 'worker'),
  },
  {
    rule:
      '!has(self.nodes) || !has(self.k3s) || !has(self.k3s.datastore) || self.k3s.datastore.type != "sqlite" || ' +
      'self.nodes.exists_one(node, "controlplane" in node.roles)',
    message: 'with the datastore sqlite exactly one node has the role controlplane',
    check: (spec) =>
      datastoreType(spec) !== 'sqlite' ||
      spec.nodes === undefined ||
      spec.nodes.filter(({ roles }) => roles.includes('controlplane')).length === 1,
  },
];

/** The spec of a Cluster. */
export const clusterSpec = rules.reduce(
  (schema, { rule, message, check }) => withRule(schema, cel(rule, message), check),
  fields,
);

const appliedConfig = z.object({
  text: z.string().max(524288).optional().describe('The configuration, with everything secret taken out.'),
  sha256: z
    .string()
    .max(64)
    .regex(/^[0-9a-f]{64}$/)
    .optional()
    .describe('SHA-256 of the configuration as it was applied, in hex.'),
});

const node = z.object({
  address: z.string().max(253).describe('Address of the machine, as in the spec.'),
  roles: z.array(nodeRole).max(3).optional().describe('What the machine does.'),
  state: z
    .enum(['Pending', 'Provisioning', 'Ready', 'Failed', 'Removing', 'Removed'])
    .optional()
    .describe('How far the machine is.'),
  version: z.string().max(64).optional().describe('Version that runs on it.'),
  message: z.string().max(4096).optional().describe('What went wrong, or is being done.'),
});

/** The status of a Cluster. */
export const clusterStatus = z.object({
  appliedConfig: appliedConfig.optional().describe('What was applied last.'),
  nodes: listMap(node, ['address'], { maxItems: MAX_NODES }).optional().describe('The machines, one by one.'),
  attempts: z
    .int32()
    .min(0)
    .optional()
    .describe('Runs begun for this generation or, once the object is being deleted, for its removal.'),
  kubeconfigRef: secretKeyRef.optional().describe("The cluster's kubeconfig, once it is provisioned."),
});
