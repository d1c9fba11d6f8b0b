import { Cluster } from '../constructs/kinds/cluster';
import type { ApiClient } from '../operator/client/api-client';
import { noopStore } from '../operator/effects/effect-state';
import type { PlanRunner } from '../operator/effects/plan-runner';
import { StateStore } from '../operator/effects/state-store';
import type { EffectEngineOptions } from '../operator/effects/effect-engine';
import { systemClock } from '../operator/process/clock';
import type { Logger } from '../operator/process/logger';
import { removeCluster, applyCluster, isRetained, type ClusterPlanOptions } from './cluster/cluster-plans';
import { probeKubeconfig } from './cluster/kubeconfig-probe';
import { kubeconfigName, secretRefusal } from './cluster/secrets';

/** Options of the provisioner: the operator that also executes the effects of Cluster and Kubeconfig. */
export interface ProvisionerOptions {
  readonly client: ApiClient;
  readonly logger: Logger;
  /** Namespace of the Secrets with state and kubeconfigs. Specs may name its Secrets too. */
  readonly namespace: string;
  /** Further namespaces whose Secrets specs may name. @default none */
  readonly secretNamespaces?: readonly string[];
  /** Directory whose files specs may name. @default none */
  readonly configDir?: string | undefined;
  /** How many plans run at once. @default 4 */
  readonly runs?: number;
  /** How long running steps may take to end after a stop, in seconds. @default 3600 */
  readonly drainSeconds?: number;
  /** Trust the first host key of a machine whose spec gives none, and pin it. @default true */
  readonly trustOnFirstUse?: boolean;
  /** Directory for key files while a script runs. @default the system's temporary directory */
  readonly keyDir?: string | undefined;
}

/** The effect engine options that execute the effects of Cluster and Kubeconfig. */
export function provisionerEffects(options: ProvisionerOptions): EffectEngineOptions {
  const { client, logger, namespace, secretNamespaces = [], configDir, keyDir } = options;
  const cluster: ClusterPlanOptions = {
    ...{ client, namespace, trustOnFirstUse: options.trustOnFirstUse ?? true },
    ...(keyDir === undefined ? {} : { folder: keyDir }),
    ...(configDir === undefined ? {} : { configDir }),
    onWarning: (message) => logger.warn(message),
  };
  const up: PlanRunner = (run) => applyCluster(run, cluster);
  const remove: PlanRunner = (run) => removeCluster(run, cluster);
  const distributions = ['rke', 'rke2', 'k3s'];
  return {
    plans: {
      ...Object.fromEntries(
        distributions.flatMap((name) => [[`${name}.up`, up] as const, [`${name}.remove`, remove] as const]),
      ),
      'kubeconfig.probe': (run) => probeKubeconfig(run, { nowMs: () => systemClock.wallMs() }),
    },
    limit: options.runs ?? 4,
    reads: {
      namespacesFor: () => [...new Set([namespace, ...secretNamespaces])],
      denyReason: secretRefusal,
      ...(configDir === undefined ? {} : { directory: configDir }),
    },
    storeOf: (kind) => (kind.crdName === Cluster.crdName ? stateStore(options) : noopStore),
    drainMs: (options.drainSeconds ?? 3600) * 1000,
  };
}

function stateStore({ client, namespace, logger }: ProvisionerOptions): StateStore {
  return new StateStore({
    ...{ client, retain: isRetained, kind: Cluster },
    sizeAdvice: 'fewer nodes, or a cluster of its own for some of them',
    onWarning: (message) => logger.warn(message),
    refOf: ({ metadata }) => ({ namespace, name: `${metadata.name}-state` }),
    additionalSecrets: (owner) => [kubeconfigName(owner)],
  });
}
