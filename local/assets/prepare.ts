import { PartSource, type ObtainOptions } from './obtain';
import type { PartName } from './parts';

/** What is run: `api` is etcd and the API server; `full` adds controllers, scheduler and a fake node's kubelet. */
export type Components = 'api' | 'full';

/** Which parts to get. */
export interface PrepareOptions extends ObtainOptions {
  /** @default 'full' */
  readonly components?: Components;
  /** Get kubectl too. @default false */
  readonly kubectl?: boolean;
}

/** The path of each part that was asked for. */
export type PartPaths = Readonly<Partial<Record<PartName, string>>>;

// Short builds first, so that the first minute already shows results.
const api: readonly PartName[] = ['etcd', 'kube-apiserver'];
const full: readonly PartName[] = [...api, 'kube-controller-manager', 'kube-scheduler', 'kwok', 'kwok-stages'];

/**
 * Gets every part that a control plane needs, so that a later start takes seconds; what is already there costs a look.
 * For scripts and CI. One part after the other: a Go build uses all cores by itself.
 *
 * @returns where each part lies
 * @throws LocalControlPlaneError when a part cannot be had
 */
export async function prepare(options: PrepareOptions = {}): Promise<PartPaths> {
  const names = [...((options.components ?? 'full') === 'full' ? full : api)];
  if (options.kubectl === true) names.push('kubectl');
  const source = new PartSource(options);
  const paths: Partial<Record<PartName, string>> = {};
  try {
    for (const name of names) paths[name] = await source.get(name);
    return paths;
  } finally {
    await source.close();
  }
}
