/** The last version of Kubernetes that RKE installs for everyone. Source: release notes of RKE v1.8.14, the last release of RKE. */
export const LAST_FREE_VERSION = 'v1.30.14-rancher1-1';

const LAST_FREE = [1, 30, 14] as const;

/**
 * Why RKE cannot install a version of Kubernetes for everyone, or undefined when it can. RKE has reached its end: v1.31 and v1.32 are only there for
 * subscribers, and there is nothing after them.
 */
export function versionProblem(version: string): string | undefined {
  const match = /^v([0-9]+)\.([0-9]+)\.([0-9]+)-rancher/.exec(version);
  if (match === null) return 'must be a version as RKE names it, such as v1.30.14-rancher1-1';
  const parts = match.slice(1).map(Number);
  const differing = LAST_FREE.findIndex((number, i) => parts[i] !== number);
  if (differing === -1 || (parts[differing] ?? 0) < (LAST_FREE[differing] ?? 0)) return undefined;
  return (
    `is newer than ${LAST_FREE_VERSION}, the last that RKE offers without a subscription, and RKE has ended: ` +
    `take ${LAST_FREE_VERSION} or older, or make a new cluster with the distribution rke2 and move over`
  );
}
