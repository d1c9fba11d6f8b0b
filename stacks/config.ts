import * as pulumi from '@pulumi/pulumi';
import { parseConfig } from './config/parse';
import type { RawConfig, StackConfig } from './config/parse';
import { ConfigError } from './config/problems';

export { configKeys } from './config/keys';
export { parseConfig } from './config/parse';
export type { RawConfig, StackConfig } from './config/parse';
export { ConfigError } from './config/problems';
export type { ConfigProblem } from './config/problems';

/** The namespace of all keys, whatever the project is called. */
const NAMESPACE = 'kindred:';

/**
 * Reads the configuration of the stack that is running.
 *
 * @throws pulumi.RunError, which Pulumi shows without a stack trace, with everything that is wrong
 */
export function readConfig(): StackConfig {
  try {
    return parseConfig(rawConfig());
  } catch (error) {
    if (error instanceof ConfigError) throw new pulumi.RunError(error.message);
    throw error;
  }
}

/** Not declared in Pulumi's types, and there is no other way to know. */
interface SecretKeys {
  readonly isConfigSecret: (key: string) => boolean;
}

function rawConfig(): RawConfig {
  const { isConfigSecret } = pulumi.runtime as unknown as SecretKeys;
  const own = Object.entries(pulumi.runtime.allConfig()).filter(([key]) => key.startsWith(NAMESPACE));
  const name = (key: string): string => key.slice(NAMESPACE.length);
  return {
    values: Object.fromEntries(own.map(([key, value]) => [name(key), value])),
    secretKeys: new Set(own.filter(([key]) => isConfigSecret(key)).map(([key]) => name(key))),
  };
}
