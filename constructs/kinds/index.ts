import type { AnyKind } from '../kind/kind';
import { Cluster } from './cluster';
import { Kubeconfig } from './kubeconfig';
import { kinds } from './kinds';

export { Cluster, Kubeconfig };
export * from './kinds';

/**
 * The kinds that the provisioner runs, the only operator with keys to machines. See `provisioner` of the
 * platform.
 */
export const provisionerKinds: readonly AnyKind[] = Object.freeze([Cluster, Kubeconfig]);

/** Every kind that Kindred comes with. */
export const allKinds: readonly AnyKind[] = Object.freeze([...kinds, ...provisionerKinds]);
