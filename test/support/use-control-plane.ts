import { LocalControlPlaneError } from '../../local/assets/errors';
import type { ControlPlane, ControlPlaneOptions } from '../../local/control-plane';
import { startControlPlane } from '../../local/start';

/** The control plane of a test file; reading it before `beforeAll` has run throws. */
export type TestControlPlane = ControlPlane;

/**
 * Gives a Jest file a control plane: started before its tests, stopped after them. Call it at the top of the
 * file or of a `describe`.
 *
 * @example
 * const cp = useControlPlane({ components: 'api' });
 * test('serves', async () => expect((await kubectl(cp, ['get', 'ns'])).code).toBe(0));
 */
export function useControlPlane(options: ControlPlaneOptions = {}): TestControlPlane {
  let plane: ControlPlane | undefined;
  beforeAll(async () => {
    plane = await startControlPlane(options);
  }, startTimeoutMs);
  afterAll(async () => {
    await plane?.stop();
  }, stopTimeoutMs);
  const current = (): ControlPlane => {
    if (plane !== undefined) return plane;
    throw new LocalControlPlaneError('the control plane is not started: use it inside a test or a later hook');
  };
  return {
    get url() {
      return current().url;
    },
    get version() {
      return current().version;
    },
    get dataDir() {
      return current().dataDir;
    },
    get adminKubeconfig() {
      return current().adminKubeconfig;
    },
    get nodes() {
      return current().nodes;
    },
    get faults() {
      return current().faults;
    },
    kubeconfigFor: (account, more) => current().kubeconfigFor(account, more),
    auditLog: () => current().auditLog(),
    importImage: (archive) => current().importImage(archive),
    onPartExit: (listener) => current().onPartExit(listener),
    stop: () => current().stop(),
  };
}

/** The first start on a machine may build the parts, which takes minutes. */
const startTimeoutMs = 20 * 60_000;
const stopTimeoutMs = 30_000;
