import type { AnyKind } from '../../../constructs/kind/kind';
import type { Bench } from '../../e2e/operator/support/bench';

/** Where a life takes place. */
export interface Scene {
  readonly bench: Bench;
  readonly kind: AnyKind;
  readonly namespace: string;
}

/** A change that somebody makes, and what is left standing by it. */
export interface Stage {
  readonly name: string;
  /** Makes the change; it needs no operator. */
  readonly act: (scene: Scene) => Promise<unknown>;
  /** The names of the kind's objects that stand afterwards. */
  readonly objects: readonly string[];
  /** An object goes: what the operator does about its children, the garbage collector does too, and may be first. @default false */
  readonly collected?: boolean;
}

/** What happens to objects of a kind, from the first one's making to the last one's deletion. */
export interface Life {
  readonly name: string;
  readonly kind: AnyKind;
  readonly stages: readonly Stage[];
}
