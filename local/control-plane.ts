import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { LocalControlPlaneError, codeOf } from './assets/errors';
import type { Components, ObtainOptions } from './assets/obtain';
import type { Pki } from './certificates';
import { describeResponse, renderKubeconfig, type RestClient } from './rest-client';
import { compact, type ApiServer, type Controllers, type Etcd } from './components';
import type { PartExit, RunningParts } from './guarded-process';
import { importImage } from './node/node';
import type { RealNode } from './node/node';
import type { RunFolder } from './run-folder';

/** How to start a control plane. */
export interface ControlPlaneOptions extends ObtainOptions {
  /**
   * `api`: etcd and the API server, without ServiceAccount admission; no controllers run (namespaces stay
   * `Terminating`, owned objects stay).
   * `full`: also the controllers, the scheduler and one fake node on which every pod becomes Ready.
   * @default 'full'
   */
  readonly components?: Components;
  /**
   * How many nodes run containers, each with a kubelet, containerd and kube-proxy in namespaces of its own, instead of the fake
   * node: 1 to 9. It needs Linux, root, and the packages that `nodeProblem` names. Pods reach each other, Services and the API
   * server, but neither this machine nor the internet; they resolve no names; images are imported with `importImage`.
   * @default 0: one fake node
   */
  readonly nodes?: number;
  /**
   * The directory of the run; must be empty or new, is removed by stop().
   * @default a new temporary directory
   */
  readonly dataDir?: string;
  /** The API server's port on 127.0.0.1. @default a free one */
  readonly port?: number;
  /** Additional flags for kube-apiserver; they come last and win. */
  readonly extraApiServerArgs?: readonly string[];
  /** How long each part may take to become ready, in milliseconds. @default 120_000 */
  readonly startTimeoutMs?: number;
  /** Aborts a running start; no effect after that. */
  readonly signal?: AbortSignal;
}

/** A running control plane. */
export interface ControlPlane {
  /** `https://127.0.0.1:<port>`. */
  readonly url: string;
  /** The version that the API server reports: `v1.36.3`. */
  readonly version: string;
  /** The directory of data, certificates, kubeconfigs and logs (`<part>.log`). */
  readonly dataDir: string;
  /** The path of a kubeconfig with a client certificate in `system:masters`, which no RBAC rule limits. */
  readonly adminKubeconfig: string;
  /** The nodes that run containers; empty when the node is simulated. */
  readonly nodes: readonly RealNode[];

  /**
   * Imports an image into every real node.
   *
   * @param archive - the path of an OCI or Docker archive, whose images have names with a host and a tag
   * @throws LocalControlPlaneError without real nodes, or when containerd refuses the archive
   */
  importImage(archive: string): Promise<void>;

  /**
   * The path of a kubeconfig with a token of a ServiceAccount. Grants nothing and creates no object.
   *
   * @param options.expirationSeconds - at least 600. @default 3600
   * @throws LocalControlPlaneError when there is no such ServiceAccount
   */
  kubeconfigFor(account: ServiceAccountRef, options?: { readonly expirationSeconds?: number }): Promise<string>;

  /**
   * Every request that was completed before this call, oldest first, from all API server processes of this
   * run.
   */
  auditLog(): Promise<AuditEvent[]>;

  /**
   * Calls back when a part ends unexpectedly.
   *
   * @returns a function that removes the listener
   */
  onPartExit(listener: (exit: PartExit) => void): () => void;

  /** Ends every part and removes the data directory. A second call waits for the first. */
  stop(): Promise<void>;

  readonly faults: Faults;
}

/** Faults of the control plane, for tests. */
export interface Faults {
  /** Kills the API server, as in a crash: connections are cut, and its port does not respond. */
  killApiServer(): Promise<void>;
  /**
   * Starts it again, on the same port and data, and waits until it is ready. Does nothing when it is running.
   */
  startApiServer(): Promise<void>;
  /** Kill, then start. */
  restartApiServer(): Promise<void>;
  /** Freezes it: connections stay open and silent. */
  pauseApiServer(): void;
  /** Continues it after `pauseApiServer`. */
  resumeApiServer(): void;
  /**
   * Restarts the controller manager, for tests that create kinds: its garbage collector discovers new kinds
   * only every 30 seconds, and until then does not collect what objects of these kinds own. A new one starts
   * with all existing kinds.
   *
   * @throws LocalControlPlaneError with components `api`, where there is none
   */
  restartControllerManager(): Promise<void>;
  /**
   * Drops the history of the control plane: a watch or a list's continuation from a resourceVersion before
   * this call gets a 410 from now on.
   *
   * The API server serves watches from its own memory of recent events, whatever etcd has dropped. So it is
   * restarted after the compaction, which cuts the running watches.
   *
   * @param options.keepApiServer - compact etcd only; old watches may then still be served. @default false
   */
  compactEtcd(options?: { readonly keepApiServer?: boolean }): Promise<void>;
}

/** Names a ServiceAccount. */
export interface ServiceAccountRef {
  readonly namespace: string;
  readonly name: string;
}

/** One request in the API server's audit log (audit.k8s.io/v1, level Metadata). */
export interface AuditEvent {
  readonly auditID: string;
  /** `ResponseStarted` for a running watch, `ResponseComplete` once a request has ended, or `Panic`. */
  readonly stage: string;
  readonly verb: string;
  readonly requestURI: string;
  readonly user: { readonly username: string; readonly groups?: readonly string[] };
  readonly userAgent?: string;
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly apiVersion?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number; readonly reason?: string; readonly message?: string };
  /** With RBAC's `authorization.k8s.io/decision` (`allow` or `forbid`) and `.../reason`, which names the binding. */
  readonly annotations?: Readonly<Record<string, string>>;
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
}

/** The components of a started control plane. */
interface RunningControlPlaneOptions {
  readonly run: RunFolder;
  readonly parts: RunningParts;
  readonly rest: RestClient;
  readonly pki: Pki;
  readonly etcd: Etcd;
  readonly apiServer: ApiServer;
  readonly controllers: Controllers | undefined;
  readonly nodes: readonly RealNode[];
  readonly adminKubeconfig: string;
  readonly version: string;
  readonly unregisterExitHandler: () => void;
}

/** A control plane that has been started. */
export class RunningControlPlane implements ControlPlane {
  readonly url: string;
  readonly version: string;
  readonly dataDir: string;
  readonly adminKubeconfig: string;
  readonly nodes: readonly RealNode[];
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
    this.nodes = options.nodes;
    this.faults = faultsOf(options);
  }

  async kubeconfigFor(account: ServiceAccountRef, options: { expirationSeconds?: number } = {}): Promise<string> {
    const { rest, run, pki } = this.#options;
    const token = await requestToken(rest, account, options.expirationSeconds ?? 3600);
    this.#kubeconfigs += 1;
    const content = renderKubeconfig({
      server: this.url,
      authority: pki.authority.certificate,
      user: `system:serviceaccount:${account.namespace}:${account.name}`,
      credentials: { token },
      namespace: account.namespace,
    });
    return run.write(`kubeconfigs/${account.namespace}.${account.name}.${this.#kubeconfigs}.yaml`, content);
  }

  async importImage(archive: string): Promise<void> {
    if (this.nodes.length > 0) return importImage(this.nodes, archive);
    throw new LocalControlPlaneError(`cannot import ${archive}: no node runs containers (start with nodes: 1)`);
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
    const { parts, rest, run, unregisterExitHandler: forget } = this.#options;
    await parts.killAll();
    await rest.close();
    run.remove();
    forget();
  }

  /**
   * An event is written just after its response was sent. So this sends a request of its own: once its event
   * is in the file, those of earlier requests are too.
   */
  async #auditUpToNow(): Promise<AuditEvent[]> {
    const { apiServer, rest, run } = this.#options;
    const file = run.file('audit.log');
    if (!apiServer.answering) return readAuditLog(file);
    const mark = `${auditMark}=${randomUUID()}`;
    await rest.request('GET', `/version?${mark}`);
    const deadline = Date.now() + auditTimeoutMs;
    for (;;) {
      const events = await readAuditLog(file);
      if (events.some(({ requestURI }) => requestURI.endsWith(mark))) return events;
      if (Date.now() > deadline) {
        throw new LocalControlPlaneError(
          `the API server answered a request but did not write it to its audit log ${file} within ${auditTimeoutMs} ms`,
        );
      }
      await delay(10);
    }
  }
}

/** Marks the requests that show that the audit log is up to date; they are left out of the result. */
const auditMark = 'kindred-audit-mark';
const auditTimeoutMs = 10_000;

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

/**
 * Logs the metadata of every request. The stage RequestReceived is left out: each request would be logged
 * twice.
 */
export const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
`;

/**
 * Reads an audit log; an incomplete last line is left out.
 *
 * @testonly
 */
export async function readAuditLog(file: string): Promise<AuditEvent[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []; // no request yet
    throw error;
  }
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  return whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AuditEvent);
}

/**
 * Requests a token of a ServiceAccount (TokenRequest); no object is created.
 *
 * @param expirationSeconds - its lifetime; the API server accepts no less than 600
 * @throws LocalControlPlaneError when the ServiceAccount does not exist or the request is rejected
 */
async function requestToken(
  rest: RestClient,
  { namespace, name }: ServiceAccountRef,
  expirationSeconds: number,
): Promise<string> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/serviceaccounts/${encodeURIComponent(name)}/token`;
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds } };
  const answer = await rest.request('POST', path, { body });
  if (answer.status === 404) {
    throw new LocalControlPlaneError(
      `cannot make a kubeconfig for the ServiceAccount ${namespace}/${name}: it does not exist. Create it first ` +
        `(kubectl create serviceaccount ${name} -n ${namespace}).`,
    );
  }
  const token = (answer.body as { status?: { token?: string } }).status?.token;
  if (answer.status < 300 && token !== undefined) return token;
  throw new LocalControlPlaneError(`no token for the ServiceAccount ${namespace}/${name}: ${describeResponse(answer)}`);
}
