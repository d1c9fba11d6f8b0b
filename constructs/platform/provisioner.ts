import { InvalidPropsError, SHUTDOWN_GRACE_SECONDS, type OperatorSettings } from '../operator';
import type { PolicyRule } from '../rbac';
import { DEFAULT_NAMESPACE, type PlatformOperator } from './platform-props';

/** Props of {@link provisioner}, besides those that every operator has. */
export interface ProvisionerProps extends Omit<OperatorSettings, 'scratch' | 'configDirectory'> {
  /** Its name; its objects are called `kindred-<name>`. @default 'provisioner' */
  readonly name?: string;
  /**
   * The platform's namespace: Secrets with state and kubeconfigs are kept there. A platform rejects a
   * provisioner of another one.
   * @default 'kindred-system', as the platform's
   */
  readonly namespace?: string;
  /** Further namespaces whose Secrets objects may name. @default none */
  readonly secretNamespaces?: readonly string[];
  /** Secret in the platform's namespace whose values are the files that objects may name. @default none */
  readonly configSecretName?: string;
  /**
   * The files of `configSecretName` by the paths that objects name, each with its key in the Secret, such as
   * `{'clusters/aws.yml': 'aws.yml'}`: keys contain no `/`.
   * @default one file for each key, under the key's name
   */
  readonly configFiles?: Readonly<Record<string, string>>;
  /**
   * How long a running step may take to end when a pod stops, in seconds: 1 to 86340 (a day less a minute).
   * @default 3600
   */
  readonly drainSeconds?: number;
}

/**
 * An operator for kinds that act on machines: with a ServiceAccount, a Lease, an image and permissions of its
 * own, since it alone reads keys to machines.
 *
 * Guarantees: it may write Secrets in the platform's namespace only, and read them there and in the
 * configured ones; keys are kept in memory.
 *
 * Caveat: a user who may create a Cluster can name any Secret of those namespaces in it. Keep other Secrets
 * out of them.
 *
 * @throws InvalidPropsError for `drainSeconds` that the operator would not accept; the platform checks the
 * other props
 */
export function provisioner(props: ProvisionerProps): PlatformOperator {
  const { name = 'provisioner', namespace = DEFAULT_NAMESPACE, ...rest } = props;
  const { secretNamespaces = [], configSecretName, configFiles, drainSeconds = 3600, args = [], ...settings } = rest;
  if (!Number.isInteger(drainSeconds) || drainSeconds < 1 || drainSeconds > MAX_DRAIN_SECONDS) {
    const message = `${drainSeconds} must be an integer from 1 to ${MAX_DRAIN_SECONDS}`;
    throw new InvalidPropsError(`provisioner ${name}`, [{ path: 'drainSeconds', message }]);
  }
  const others = [...new Set(secretNamespaces)].filter((other) => other !== namespace).sort();
  return {
    memoryLimitMiB: 512,
    terminationGracePeriodSeconds: drainSeconds + SHUTDOWN_GRACE_SECONDS,
    ...settings,
    name,
    args: [
      `${STATE_NAMESPACE_FLAG}${namespace}`,
      ...(others.length === 0 ? [] : [`--secret-namespaces=${others.join()}`]),
      ...(configSecretName === undefined ? [] : [`--config-dir=${CONFIG_DIRECTORY}`]),
      `--key-dir=${KEY_DIRECTORY}`,
      `--drain-seconds=${drainSeconds}`,
      ...args,
    ],
    scratch: { path: KEY_DIRECTORY, sizeMiB: 64 },
    ...(configSecretName === undefined
      ? {}
      : {
          configDirectory: {
            ...{ path: CONFIG_DIRECTORY, secretName: configSecretName },
            ...(configFiles === undefined ? {} : { files: configFiles }),
          },
        }),
    extraRules: {
      // Only a client that may delete an object may change its owners (OwnerReferencesPermissionEnforcement).
      [namespace]: [secrets('get', 'create', 'update', 'delete')],
      ...Object.fromEntries(others.map((other) => [other, [secrets('get')]])),
    },
  };
}

/** The option that names the namespace in which an operator keeps its state. */
export const STATE_NAMESPACE_FLAG = '--state-namespace=';

/** The directory of key files, in memory. */
const KEY_DIRECTORY = '/run/kindred';
/** The directory of the files that objects may name. */
const CONFIG_DIRECTORY = '/etc/kindred/config';
/** With `SHUTDOWN_GRACE_SECONDS`, less than the day that a pod may take to stop at most. */
const MAX_DRAIN_SECONDS = 86_340;

function secrets(...verbs: PolicyRule['verbs']): PolicyRule {
  return { apiGroups: [''], resources: ['secrets'], verbs };
}
