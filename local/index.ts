/**
 * The local control plane: a real Kubernetes API server with its etcd and, if wanted, controllers, scheduler
 * and a fake node, for tests and experiments.
 */
export { LocalControlPlaneError } from './assets/errors';
export type { Progress } from './assets/progress';
export { prepare, type Components, type ObtainOptions, type PartPaths, type PrepareOptions } from './assets/obtain';
export { versions, type DownloadHosts, type PartName } from './assets/parts';
export { cacheFolder } from './assets/cache';
export { startControlPlane } from './start';
export { nodeProblem } from './node/available';
export { serverImage, type RealNode } from './node/node';
export type { AuditEvent, ControlPlane, ControlPlaneOptions, Faults, ServiceAccountRef } from './control-plane';
export type { PartExit } from './guarded-process';
