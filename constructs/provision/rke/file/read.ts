import type { Problem } from '../../../kube/errors';
import type { Document, DocumentObject } from '../yaml-text';
import { configProblems, configWarnings } from './checks';
import { clusterRules } from './cluster-rules';
import { machinesOf, type FileBastion, type FileNode } from './nodes';
import type { PathOptions } from './paths';
import { Walk, type FoundSecret, type ReferencedFile } from './walk';

/** How a cluster.yml is read. */
export interface ReadOptions extends PathOptions {
  /** A key from a Secret takes the place of all SSH keys in the file. @default false */
  readonly sshKey?: boolean;
}

/** What was found in a user's cluster.yml. */
export interface ClusterYmlFile {
  /** All that is wrong with it. Anything here, and it must not be given to RKE. No message holds a value of the file. */
  readonly problems: readonly Problem[];
  /** What is worth a person's look. */
  readonly warnings: readonly string[];
  /**
   * The file, with only what is taken, without private SSH keys, and with every path relative to the configured directory. **Other secrets
   * stand in it.**
   */
  readonly config: DocumentObject;
  /** The same for people to read: no secret in it. */
  readonly redactedClusterYml: string;
  /** Files that RKE is to read. Each must be opened below the configured directory, with no link leading out of it. */
  readonly files: readonly ReferencedFile[];
  /** Which fields hold secrets. */
  readonly secrets: readonly FoundSecret[];
  /** The texts of those secrets that stand in `config`: **secret**, and what logs must be cleared of. */
  readonly secretTexts: readonly string[];
  readonly nodes: readonly FileNode[];
  /** @default none */
  readonly bastion?: FileBastion;
  /** @default RKE's own */
  readonly kubernetesVersion?: string;
}

/**
 * Reads a parsed cluster.yml against the fields that are taken; it never throws.
 *
 * Assumptions: the parser refuses keys that stand twice in one mapping, more than one document, and custom tags; whether it resolves aliases does
 * not matter, since what they blow up to is bounded here. Merge keys (`<<`) must be resolved by it, or are refused here as unknown fields.
 */
export function readClusterYml(value: unknown, options: ReadOptions = {}): ClusterYmlFile {
  const { sshKey = false } = options;
  const walk = new Walk(options);
  const taken = walk.fields(value, clusterRules, '');
  const config = (taken?.value ?? {}) as DocumentObject;
  const problems = [...walk.problems];
  const machines = machinesOf(config, problems);
  const keys = walk.secrets.filter(({ kind }) => kind === 'sshKey');
  problems.push(
    ...configProblems(config, machines.nodes, sshKey || keys.length > 0),
    ...(sshKey ? [] : keys.map(({ field }) => ({ path: field, message: KEY_IN_FILE }))),
  );
  const version = config['kubernetes_version'];
  return {
    problems,
    warnings: configWarnings(config),
    config,
    redactedClusterYml: pretty(taken?.redacted ?? {}),
    files: sshKey ? walk.files.filter(({ purpose }) => purpose === 'addon') : walk.files,
    secrets: walk.secrets,
    secretTexts: [...walk.secretTexts],
    ...machines,
    ...(typeof version === 'string' ? { kubernetesVersion: version } : {}),
  };
}

const KEY_IN_FILE =
  'holds a private key; put it into a Secret, name that as sshKeySecretRef, take the key out of the file, and replace it on the ' +
  'machines, since it has been read by whoever could read the file';

const pretty = (document: Document): string => `${JSON.stringify(document, null, 2)}\n`;

export type { FileBastion, FileNode } from './nodes';
