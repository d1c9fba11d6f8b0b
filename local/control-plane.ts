import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { LocalControlPlaneError, codeOf } from './assets/errors';
import type { Components, ObtainOptions } from './assets/obtain';
import type { Pki } from './certificates';
import { describeResponse, renderKubeconfig, type RestClient } from './rest-client';
import { compact, type ApiServer, type Controllers, type Etcd } from './components';
import type { PartExit, RunningParts } from './guarded-process';
import type { RunFolder } from './run-folder';

/** How to start a control plane. */
export interface ControlPlaneOptions extends ObtainOptions {
  /**
   * `api`: etcd and the API server, without ServiceAccount admission; nothing reacts to what is created (namespaces
   * stay `Terminating`, owned objects stay).
   * `full`: also the controllers, the scheduler and one fake node on which every pod becomes Ready.
   * @default 'full'
   */
  readonly components?: Components;
  /** Where the run keeps everything; must be empty or new, is removed by stop(). @default a new temporary folder */
  readonly dataDir?: string;
  /** The API server's port on 127.0.0.1. @default a free one */
  readonly port?: number;
  /** More flags for kube-apiserver; they come last and win. */
  readonly extraApiServerArgs?: readonly string[];
  /** How long each part may take to get ready, in milliseconds. @default 120_000 */
  readonly startTimeoutMs?: number;
  /** Ends a start that is under way; no effect after that. */
  readonly signal?: AbortSignal;
}

/** A running control plane. */
export interface ControlPlane {
  /** `https://127.0.0.1:<port>`. */
  readonly url: string;
  /** What the API server says it is: `v1.36.3`. */
  readonly version: string;
  /** Holds data, certificates, kubeconfigs and logs (`<part>.log`). */
  readonly dataDir: string;
  /** The path of a kubeconfig with a client certificate in `system:masters`, which no RBAC rule limits. */
  readonly adminKubeconfig: string;

  /**
   * The path of a kubeconfig with a token of a ServiceAccount. Grants nothing and creates no object.
   *
   * @param options.expirationSeconds - at least 600. @default 3600
   * @throws LocalControlPlaneError when there is no such ServiceAccount
   */
  kubeconfigFor(account: ServiceAccountRef, options?: { readonly expirationSeconds?: number }): Promise<string>;

  /** Every request that was answered before this call, oldest first, from all API server processes of this run. */
  auditLog(): Promise<AuditEvent[]>;

  /**
   * Calls back when a part ends that nobody ended.
   *
   * @returns a function that takes the listener back
   */
  onPartExit(listener: (exit: PartExit) => void): () => void;

  /** Ends every part and removes the data folder. A second call waits for the first. */
  stop(): Promise<void>;

  readonly faults: Faults;
}

/** Ways to hurt the control plane, for tests. */
export interface Faults {
  /** Ends the API server as a crash does: connections are cut, nothing answers its port. */
  killApiServer(): Promise<void>;
  /** Starts it again, on the same port and data, and waits until it is ready. Does nothing when it runs. */
  startApiServer(): Promise<void>;
  /** Kill, then start. */
  restartApiServer(): Promise<void>;
  /** Freezes it: connections stay open and silent. */
  pauseApiServer(): void;
  /** Lets it go on. */
  resumeApiServer(): void;
  /**
   * Starts the controller manager anew, for tests that create kinds: its garbage collector looks for new kinds every
   * 30 seconds only, and until it knows a kind it does not collect what objects of that kind own. A new one starts
   * with all kinds there are.
   *
   * @throws LocalControlPlaneError with components `api`, where there is none
   */
  restartControllerManager(): Promise<void>;
  /**
   * Makes the control plane forget the past: a watch, or a list's continuation, from a resourceVersion of before the
   * call is answered with 410 from now on.
   *
   * The API server answers watches from its own memory of recent events, whatever etcd has forgotten; so it is
   * restarted after the compaction, which cuts the watches that run.
   *
   * @param options.keepApiServer - compact etcd only; old watches may then still be answered. @default false
   */
  compactEtcd(options?: { readonly keepApiServer?: boolean }): Promise<void>;
}

/** What a started control plane consists of. */
interface RunningControlPlaneOptions {
  readonly run: RunFolder;
  readonly parts: RunningParts;
  readonly rest: RestClient;
  readonly pki: Pki;
  readonly etcd: Etcd;
  readonly apiServer: ApiServer;
  readonly controllers: Controllers | undefined;
  readonly adminKubeconfig: string;
  readonly version: string;
  readonly unregisterExitHandler: () => void;
}

/** Marks the requests by which the audit log is read up to the present; they are left out of what is returned. */
const auditMark = 'kindred-audit-mark';
const auditTimeoutMs = 10_000;

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
    const content = renderKubeconfig({
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
    const { parts, rest, run, unregisterExitHandler: forget } = this.#options;
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

/** One request as the API server's audit log tells it (audit.k8s.io/v1, level Metadata). */
export interface AuditEvent {
  readonly auditID: string;
  /** `ResponseStarted` for a watch that runs, `ResponseComplete` once a request has ended, or `Panic`. */
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

/** Every request, metadata only. Its arrival is left out: each request would stand in the log twice. */
export const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
`;

/** Reads an audit log; a last line that is still being written is left for the next time. */
export async function readAuditLog(file: string): Promise<AuditEvent[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []; // nothing was asked yet
    throw error;
  }
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  return whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AuditEvent);
}

/** Names a ServiceAccount. */
export interface ServiceAccountRef {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Asks for a token of a ServiceAccount (TokenRequest); nothing is created.
 *
 * @param expirationSeconds - how long it is good for; the API server takes no less than 600
 * @throws LocalControlPlaneError when the ServiceAccount does not exist or the request is refused
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
