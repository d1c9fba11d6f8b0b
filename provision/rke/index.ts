export {
  refreshRkeRemoval,
  RKE_UP,
  rkeClusterYmlText,
  rkeKubeconfig,
  rkeTasks,
  rkeTasksFromFile,
  type RkeTaskOptions,
} from './tasks';
export { readClusterYml, type ClusterYmlFile, type FileNode } from './read-cluster-yml';
export { rkeProblems } from './rke-problems';
export type { UnknownHosts } from './ssh-config';
