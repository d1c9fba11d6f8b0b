import type { GuardrailNumbers } from '../guardrails';
import type { MonitoringProps, OperatorSettings } from '../operator';
import type { NamespacedRules } from '../rbac';
import type { PlatformConversion } from './platform-conversion';

/** One operator of a platform. */
export interface PlatformOperator extends OperatorSettings {
  /** Its name; its objects are called `kindred-<name>`. A DNS label of at most 42 characters. */
  readonly name: string;
  /**
   * What its kinds' own code needs besides their children, by namespace: reading the Secrets that specs refer to, for example.
   * @default none
   */
  readonly extraRules?: NamespacedRules;
}

/** A namespace with guardrails, and their numbers where they differ from the defaults. */
export interface GuardedNamespace extends GuardrailNumbers {
  readonly name: string;
  /** Create the namespace too. @default false: it stands already, and belongs to somebody else */
  readonly create?: boolean;
}

/** What a {@link Platform} is made of. */
export interface PlatformProps {
  /** Namespace of the operators. @default 'kindred-system' */
  readonly namespace?: string;
  /** Create that namespace, under the `restricted` Pod Security Standard. @default true */
  readonly createNamespace?: boolean;
  /**
   * The operators, each with the kinds that it alone runs. One will do; more where trust differs, such as one that holds SSH keys.
   * At least one.
   */
  readonly operators: readonly PlatformOperator[];
  /** Namespaces that get a ResourceQuota and a LimitRange, by name or with numbers of their own. @default none */
  readonly guardedNamespaces?: readonly (string | GuardedNamespace)[];
  /** The namespaces that the operators are confined to; their permissions too. @default the whole cluster */
  readonly watchNamespaces?: readonly string[];
  /** Objects of the Prometheus operator, for every operator. @default none */
  readonly monitoring?: MonitoringProps;
  /**
   * With which certificates the operators convert objects between versions. Must be set when a kind has several versions, and changes
   * nothing when none has. @default none
   */
  readonly conversion?: PlatformConversion;
}

/** Where a platform goes unless it is told otherwise. */
export const DEFAULT_NAMESPACE = 'kindred-system';

/** The name of an operator's objects. */
export function objectNameOf(operator: Pick<PlatformOperator, 'name'>): string {
  return `kindred-${operator.name}`;
}

/** A guarded namespace with its numbers, however it was written. */
export function guardedNamespace(guarded: string | GuardedNamespace): GuardedNamespace {
  return typeof guarded === 'string' ? { name: guarded } : guarded;
}
