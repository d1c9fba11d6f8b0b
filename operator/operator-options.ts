import { hasEffects } from '../constructs/kind/kind';
import type { EffectArguments, OperatorArguments } from './arguments';
import type { ApiClient } from './client/api-client';
import type { OperatorOptions } from './manager';
import type { Logger } from './process/logger';
import type { EffectEngine } from './reconcile/context';

/** Makes the engine that executes the effects of an operator's kinds, when the operator starts. */
export type EffectEngineFactory = (settings: EffectSettings) => EffectEngine;

/** What the execution of effects is set up with. */
export interface EffectSettings {
  /** The operator's own access to the cluster. */
  readonly client: ApiClient;
  readonly logger: Logger;
  /** Namespace of the Secrets with the state of cluster-scoped objects. */
  readonly stateNamespace: string;
  /** Further namespaces whose Secrets objects may name. */
  readonly secretNamespaces: readonly string[];
  /** Directory whose files objects may name; undefined: none. */
  readonly configDir: string | undefined;
  /** Directory for key files while a step runs, best in memory; undefined: the system's temporary directory. */
  readonly keyDir: string | undefined;
  /** How many runs are under way at once. */
  readonly runs: number;
  /** How long steps under way may take to end after a stop, in seconds. */
  readonly drainSeconds: number;
}

/** What a program executes effects with, and what its command line says about them. */
export interface GivenEffects {
  readonly args: EffectArguments;
  readonly engine: EffectEngineFactory;
}

/** What the process gives the operator that runs in it. */
interface ProcessSettings {
  readonly client: ApiClient;
  readonly logger: Logger;
  /** The pod's namespace, or that of the kubeconfig's context. */
  readonly namespace: string;
}

/**
 * The options of `runOperator` that a command line decides, without those of the election and of its servers.
 *
 * It stands apart from `main`, so that what runs an operator in a process of its own choice need not load a kubeconfig as `main` does.
 */
export function optionsFromArguments(
  args: OperatorArguments,
  effects: GivenEffects | undefined,
  { client, logger, namespace }: ProcessSettings,
): Pick<OperatorOptions, 'client' | 'kinds' | 'logger' | 'namespaces' | 'concurrency' | 'auditMs' | 'effects'> {
  return {
    ...{ client, logger, kinds: args.kinds, namespaces: args.namespaces },
    ...{ concurrency: args.concurrency, auditMs: args.auditSeconds * 1000 },
    ...(effects !== undefined &&
      hasEffects(args.kinds) && {
        effects: effects.engine({
          ...{ client, logger, ...effects.args },
          stateNamespace: effects.args.stateNamespace ?? namespace,
        }),
      }),
  };
}
