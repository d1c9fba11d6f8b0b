import type { ConfigValues } from '../../../stacks/config/keys';
import { ConfigError, parseConfig } from '../../../stacks/config/parse';

/** Values as Pulumi hands them over: texts, or JSON. */
export function config(values: Readonly<Record<string, unknown>>, secretKeys: readonly string[] = []): ConfigValues {
  const texts = Object.entries(values).map(([key, value]) => [
    key,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  return parseConfig({ values: Object.fromEntries(texts) as Record<string, string>, secretKeys: new Set(secretKeys) });
}

/** What is wrong, as `key: message` each. */
export function problems(
  values: Readonly<Record<string, unknown>>,
  secretKeys: readonly string[] = [],
): readonly string[] {
  try {
    config(values, secretKeys);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ path, message }) => `${path}: ${message}`);
    throw error;
  }
  return [];
}

/** A private key in form only. */
export const SSH_KEY = '-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n';
const HOST_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0';
/** A cluster of K3s on one machine. */
export const cluster = {
  name: 'prod',
  distribution: 'k3s',
  version: 'v1.30.4+k3s1',
  nodes: [{ address: '10.0.0.1', user: 'root', roles: ['controlplane', 'etcd', 'worker'], hostKey: HOST_KEY }],
};
