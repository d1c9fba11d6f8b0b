/**
 * The local control plane: a real Kubernetes API server with its etcd and, if wanted, controllers, scheduler and a fake
 * node, for tests and for trying things out.
 */
export { LocalControlPlaneError } from './errors';
export type { Progress } from './progress';
export { prepare, type Components, type PartPaths, type PrepareOptions } from './assets/prepare';
export type { ObtainOptions } from './assets/obtain';
export { versions, type DownloadHosts, type PartName } from './assets/parts';
export { cacheFolder } from './assets/cache';
export { startControlPlane } from './plane/start';
export type { ControlPlane, ControlPlaneOptions, Faults } from './plane/control-plane';
export type { AuditEvent } from './plane/audit';
export type { PartExit } from './plane/guarded-process';
export type { ServiceAccountRef } from './plane/service-account';
