/**
 * Where things lie in the folder that a script makes for one run of RKE. RKE is started in {@link WORK_FOLDER}, and paths in cluster.yml are
 * relative to that: they stand in RKE's state, from which a later run takes the keys of nodes that are to be removed, so they must be the same in
 * each run, which the folder's own name is not.
 */

/** RKE's working directory, below the run's folder. It holds the files that cluster.yml names. */
export const WORK_FOLDER = 'work';

/** The cluster's SSH key. No path of a user's has a hidden part, so it collides with none. */
export const CLUSTER_KEY_PATH = '.kindred/cluster-key';

/** The bastion's SSH key. */
export const BASTION_KEY_PATH = '.kindred/bastion-key';
