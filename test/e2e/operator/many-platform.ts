import type { ControlPlane } from '../../../local';
import type { AnyKind } from '../../../constructs/kind/kind';
import { installPlatform, type InstalledPlatform } from './support/install-platform';

/** Installs the platform on a control plane of components `api`, where there is no controller manager to be started anew. */
export async function installOnApi(plane: ControlPlane, kinds: readonly AnyKind[]): Promise<InstalledPlatform> {
  return installPlatform(
    {
      ...{ url: plane.url, version: plane.version, dataDir: plane.dataDir, adminKubeconfig: plane.adminKubeconfig },
      kubeconfigFor: (account, options) => plane.kubeconfigFor(account, options),
      auditLog: () => plane.auditLog(),
      onPartExit: (listener) => plane.onPartExit(listener),
      stop: () => plane.stop(),
      faults: { ...plane.faults, restartControllerManager: () => Promise.resolve() },
    },
    { name: 'operator', image: 'none', kinds },
  );
}
