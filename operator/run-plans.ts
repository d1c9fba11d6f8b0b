import { createHash } from 'node:crypto';
import { storesState } from '../constructs/kind/effects';
import type { AnyKind } from '../constructs/kind/kind';
import { withDefaults } from '../constructs/kind/render';
import type { KubeObject } from '../constructs/kube/kube-object';
import { effectEngine } from './effects/effect-engine';
import { noopStore, type AttemptBackoff, type EffectStore } from './effects/effect-state';
import type { PlanRunner } from './effects/plan-runner';
import { StateStore } from './effects/state-store';
import { StateSeal } from './effects/state-seal';
import { isOfAnother } from './effects/state-secret';
import type { EffectEngineFactory, EffectSettings } from './operator-options';

/** Options of `runPlans`. */
export interface RunPlansOptions {
  /**
   * Whether the state of an object, whose spec has its defaults here, with the values that its runs have stored, stays when the object is deleted: for
   * objects whose removal leaves what they made. @default it never does
   */
  readonly retainState?: (object: KubeObject) => boolean;
  /** Delays between the attempts at a run. @default 10 s, doubled up to 15 min */
  readonly backoff?: AttemptBackoff;
}

/**
 * Executes the effects of an operator's kinds, for `effects` of `main`. Each plan that the kinds' effects name has a
 * function that executes it.
 *
 * Guarantees:
 * - A run's record is stored before it begins and when it ends, so that nothing runs again after a restart if nothing
 *   changed. The state of a namespaced object is in a ConfigMap in its namespace, which no user can read or forge
 *   (`StateSeal`); that of a cluster-scoped one in a Secret in the operator's namespace. Both are called
 *   `<name>.<plural>.<group>`. A kind all of whose effects repeat stores nothing.
 * - A namespaced object may name Secrets of its own namespace, a cluster-scoped one those of the operator's, and both
 *   those of `--secret-namespaces`; but none that an operator made for another object.
 *
 * Errors: an operator whose kinds name a plan that is not here does not start. What a plan throws becomes the reason
 * and message of `Ready`, see {@link PlanRunner}.
 *
 * @param plans - by the name of the plan; a function of the operator's settings if they need its client, its logger or
 *   its directories
 */
export function runPlans(
  plans: Plans | ((settings: EffectSettings) => Plans),
  options: RunPlansOptions = {},
): EffectEngineFactory {
  return (settings) => {
    const seal = new StateSeal(settings.client, settings.stateNamespace);
    const { stateNamespace, secretNamespaces, configDir, runs, drainSeconds } = settings;
    const { retainState = () => false, backoff } = options;
    return effectEngine({
      plans: typeof plans === 'function' ? plans(settings) : plans,
      limit: runs,
      drainMs: drainSeconds * 1000,
      reads: {
        namespacesFor: ({ metadata }) => [...new Set([metadata.namespace ?? stateNamespace, ...secretNamespaces])],
        denyReason: (secret, by) =>
          isOfAnother(secret, by) ? 'it belongs to another object, and only that may use it' : undefined,
        ...(configDir === undefined ? {} : { directory: configDir }),
      },
      storeOf: (kind) => storeOf(kind, settings, { seal, retainState }),
      ...(backoff === undefined ? {} : { backoff }),
    });
  };
}

/** The function that executes each plan, by the plan's name. */
export type Plans = Readonly<Record<string, PlanRunner>>;

function storeOf(
  kind: AnyKind,
  { client, logger, stateNamespace }: EffectSettings,
  { seal, retainState }: { readonly seal: StateSeal; readonly retainState: (object: KubeObject) => boolean },
): EffectStore {
  if (!storesState(kind)) return noopStore;
  return new StateStore({
    ...{ client, kind },
    ...(kind.scope === 'Namespaced' ? { seal } : {}),
    retain: (object) => retainState(withDefaults(kind, object)),
    refOf: ({ metadata: { namespace = stateNamespace, name } }) => ({ namespace, name: stateName(kind, name) }),
    onWarning: (message) => logger.warn(message),
  });
}

/** The longest name of an object. Source: the DNS subdomain names of the Kubernetes API. */
const MAX_NAME = 253;

function stateName({ crdName }: AnyKind, name: string): string {
  const full = `${name}.${crdName}`;
  if (full.length <= MAX_NAME) return full;
  const hash = createHash('sha256').update(full).digest('hex').slice(0, 32);
  // No label may end with a dash or a dot where it is cut.
  return `${full.slice(0, MAX_NAME - hash.length - 1).replace(/[.-]+$/, '')}.${hash}`;
}
