import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { LocalControlPlaneError } from '../errors';
import type { ApiServer } from './api-server';
import { readAuditLog, type AuditEvent } from './audit';
import type { ControlPlane, Faults } from './control-plane';
import type { Controllers } from './controllers';
import { compact, type Etcd } from './etcd';
import type { PartExit } from './guarded-process';
import { kubeconfig } from './kubeconfig';
import type { Pki } from './pki';
import type { RestClient } from './rest';
import type { RunFolder } from './run-folder';
import type { RunningParts } from './running-parts';
import { requestToken, type ServiceAccountRef } from './service-account';

/** What a started control plane consists of. */
export interface RunningControlPlaneOptions {
  readonly run: RunFolder;
  readonly parts: RunningParts;
  readonly rest: RestClient;
  readonly pki: Pki;
  readonly etcd: Etcd;
  readonly apiServer: ApiServer;
  readonly controllers: Controllers | undefined;
  readonly adminKubeconfig: string;
  readonly version: string;
  readonly forget: () => void;
}

/** Marks the requests by which the audit log is read up to the present; they are left out of what is returned. */
const auditMark = 'kindred-audit-mark';
const auditPatienceMs = 10_000;

/** A control plane that has been started. */
export class RunningControlPlane implements ControlPlane {
  readonly url: string;
  readonly version: string;
  readonly dataDir: string;
  readonly adminKubeconfig: string;
  readonly faults: Faults;
  readonly #options: RunningControlPlaneOptions;
  #kubeconfigs = 0;
  #stopped: Promise<void> | undefined;

  constructor(options: RunningControlPlaneOptions) {
    this.#options = options;
    this.url = options.rest.server;
    this.version = options.version;
    this.dataDir = options.run.path;
    this.adminKubeconfig = options.adminKubeconfig;
    this.faults = faultsOf(options);
  }

  async kubeconfigFor(account: ServiceAccountRef, options: { expirationSeconds?: number } = {}): Promise<string> {
    const { rest, run, pki } = this.#options;
    const token = await requestToken(rest, account, options.expirationSeconds ?? 3600);
    this.#kubeconfigs += 1;
    const content = kubeconfig({
      server: this.url,
      authority: pki.authority.certificate,
      user: `system:serviceaccount:${account.namespace}:${account.name}`,
      credentials: { token },
      namespace: account.namespace,
    });
    return run.write(`kubeconfigs/${account.namespace}.${account.name}.${this.#kubeconfigs}.yaml`, content);
  }

  async auditLog(): Promise<AuditEvent[]> {
    const events = await this.#auditUpToNow();
    return events.filter(({ requestURI }) => !requestURI.includes(auditMark));
  }

  onPartExit(listener: (exit: PartExit) => void): () => void {
    return this.#options.parts.onExit(listener);
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const { parts, rest, run, forget } = this.#options;
    await parts.killAll();
    await rest.close();
    run.remove();
    forget();
  }

  /**
   * An event is written just after its response was sent. A request of our own, once its event is in the file, shows
   * that those of earlier requests are too.
   */
  async #auditUpToNow(): Promise<AuditEvent[]> {
    const { apiServer, rest, run } = this.#options;
    const file = run.file('audit.log');
    if (!apiServer.answering) return readAuditLog(file);
    const mark = `${auditMark}=${randomUUID()}`;
    await rest.ask('GET', `/version?${mark}`);
    const deadline = Date.now() + auditPatienceMs;
    for (;;) {
      const events = await readAuditLog(file);
      if (events.some(({ requestURI }) => requestURI.endsWith(mark))) return events;
      if (Date.now() > deadline) {
        throw new LocalControlPlaneError(
          `the API server answered a request but did not write it to its audit log ${file} within ${auditPatienceMs} ms`,
        );
      }
      await delay(10);
    }
  }
}

function faultsOf({ apiServer, controllers, etcd }: RunningControlPlaneOptions): Faults {
  const restartApiServer = async (): Promise<void> => {
    await apiServer.kill();
    await apiServer.start();
  };
  return {
    killApiServer: () => apiServer.kill(),
    startApiServer: () => apiServer.start(),
    restartApiServer,
    pauseApiServer: () => apiServer.pause(),
    resumeApiServer: () => apiServer.resume(),
    restartControllerManager: async () => {
      if (controllers !== undefined) return controllers.restartManager();
      throw new LocalControlPlaneError("there is no controller manager: start with components: 'full'");
    },
    compactEtcd: async ({ keepApiServer = false } = {}) => {
      await compact(etcd.url);
      if (!keepApiServer) await restartApiServer();
    },
  };
}
