export { refreshRkeRemoval } from './tasks';
export {
  RKE_RETRY,
  RKE_HOST_KEYS,
  RKE_UP,
  rkeClusterYmlText,
  rkeKubeconfig,
  rkeTasks,
  rkeTasksFromFile,
} from './tasks';
export type { RkeFileInput, RkeTaskOptions } from './tasks';
export { clusterYml, clusterYmlSource, redactedClusterYml } from './cluster-yml';
export { readClusterYml } from './read-cluster-yml';
export type { ClusterYmlFile, FileBastion, FileNode, ReadOptions } from './read-cluster-yml';
export type { FilePurpose, SecretKind } from './cluster-yml-fields';
export type { FoundSecret, ReferencedFile } from './cluster-yml-walker';
export { preflightScript } from './preflight';
export type { PreflightProps } from './preflight';
export { rkeProblems } from './rke-problems';
export { LAST_FREE_VERSION, rkeVersionProblem } from './rke-problems';
export type { UnknownHosts } from './ssh-config';
