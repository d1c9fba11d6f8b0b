import type { Verdict } from './conditions';

/** How the children of one shared key stand, for the objects that share them. */
export type SharedState =
  | { readonly state: 'applied' }
  /** Not applied: what the objects that share them show in `Ready`. */
  | {
      readonly state: 'failed';
      readonly verdict: Verdict;
      /** ServiceAccounts of the key that do not exist or are somebody else's: nothing may run under them. @default none */
      readonly missingAccounts?: readonly string[];
    };

/** The states of shared keys, by {@link sharedId}. Undefined before the first reconcile of a key. */
export interface SharedStates {
  get(id: string): SharedState | undefined;
}

/** One string for a shared key: group, namespace and key. */
export function sharedId(group: string, namespace: string | undefined, key: string): string {
  return `${group}/${namespace ?? ''}/${key}`;
}
