import { randomUUID } from 'node:crypto';
import { request } from 'undici';
import { LocalControlPlaneError } from './assets/errors';
import type { PartPaths } from './assets/obtain';
import type { PartName } from './assets/parts';
import type { Pki } from './certificates';
import { renderKubeconfig, type RestClient } from './rest-client';
import {
  apiServerArgs,
  controllerManagerArgs,
  etcdArgs,
  kwokArgs,
  schedulerArgs,
  type ApiServerSettings,
} from './component-flags';
import {
  retryOnPortConflict,
  pollUntilReady,
  type GuardedProcess,
  type Probe,
  type RunningParts,
} from './guarded-process';
import { isUsable } from './node/node';
import { freePort, loopback } from './ports';
import type { RunFolder } from './run-folder';

/** A running etcd. */
export interface Etcd {
  readonly url: string;
  readonly process: GuardedProcess;
}

/** How to start etcd. */
interface EtcdOptions {
  readonly program: string;
  readonly run: RunFolder;
  readonly parts: RunningParts;
  /** Milliseconds. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Starts etcd on free ports and waits until it is healthy. */
export async function startEtcd({ program, run, parts, timeoutMs, signal }: EtcdOptions): Promise<Etcd> {
  return retryOnPortConflict(async () => {
    const [clientPort, peerPort] = await Promise.all([freePort(), freePort()]);
    const url = `http://${loopback}:${clientPort}`;
    const process = parts.start({
      part: 'etcd',
      program,
      args: etcdArgs(run.file('etcd', String(clientPort)), clientPort, peerPort),
      cwd: run.folder('etcd'),
      logFile: run.file('etcd.log'),
    });
    const probe = async (): Promise<true | string> => {
      const { statusCode, body } = await request(`${url}/health`, { signal: AbortSignal.timeout(1000) });
      await body.dump();
      return statusCode === 200 ? true : `/health answers ${statusCode}`;
    };
    try {
      await pollUntilReady(probe, { what: 'etcd to be healthy', processes: [process], timeoutMs, signal });
    } catch (error) {
      await parts.kill(process);
      throw error;
    }
    return { url, process };
  });
}

/**
 * Compacts every revision but the newest. A key is written first, so that no client has seen the newest
 * revision, and every resourceVersion that a client has is older.
 */
export async function compact(url: string): Promise<void> {
  const key = Buffer.from('/kindred/compaction').toString('base64');
  const written = await call(url, 'put', { key, value: Buffer.from(randomUUID()).toString('base64') });
  const revision = (written as { header?: { revision?: string } }).header?.revision;
  if (revision === undefined) throw new LocalControlPlaneError(`etcd at ${url} answered a write without a revision.`);
  await call(url, 'compaction', { revision, physical: true });
}

async function call(url: string, method: string, body: unknown): Promise<unknown> {
  const response = await request(`${url}/v3/kv/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  });
  const text = await response.body.text();
  if (response.statusCode === 200) return JSON.parse(text) as unknown;
  throw new LocalControlPlaneError(`etcd at ${url} refused ${method} with ${response.statusCode}: ${text}`);
}

/** How to start an API server, repeatedly if needed. */
interface ApiServerOptions {
  readonly program: string;
  readonly run: RunFolder;
  readonly settings: ApiServerSettings;
  readonly rest: RestClient;
  /** For each start, in milliseconds. */
  readonly timeoutMs: number;
  readonly parts: RunningParts;
}

/** The API server of a run: one process at a time, always with the same port and data. */
export class ApiServer {
  readonly #options: ApiServerOptions;
  #process: GuardedProcess | undefined;
  #paused = false;

  constructor(options: ApiServerOptions) {
    this.#options = options;
  }

  /** Whether it runs and is not paused. */
  get answering(): boolean {
    return this.#process?.running === true && !this.#paused;
  }

  /** Starts it unless it is running, and waits until /readyz reports ready. */
  async start(signal?: AbortSignal): Promise<void> {
    if (this.#process?.running === true) return;
    const { program, run, parts, settings, rest, timeoutMs } = this.#options;
    const process = parts.start({
      part: 'kube-apiserver',
      program,
      args: apiServerArgs(settings),
      cwd: settings.certFolder,
      logFile: run.file('kube-apiserver.log'),
    });
    this.#process = process;
    this.#paused = false;
    const probe = async (): Promise<true | string> => {
      const { status, body } = await rest.request('GET', '/readyz', { timeoutMs: 2000 });
      return status === 200 ? true : `/readyz answers ${status}: ${String(body)}`;
    };
    try {
      await pollUntilReady(probe, { what: 'kube-apiserver to be ready', processes: [process], timeoutMs, signal });
    } catch (error) {
      await this.kill();
      throw error;
    }
  }

  /**
   * Kills it, as in a crash: nothing is flushed, connections are cut. Does nothing when it is not running.
   */
  async kill(): Promise<void> {
    if (this.#process !== undefined) await this.#options.parts.kill(this.#process);
  }

  /** Freezes it: connections stay open without responses, as when a network drops packets. */
  pause(): void {
    this.#process?.signal('SIGSTOP');
    this.#paused = true;
  }

  /** Continues it after `pause`. */
  resume(): void {
    this.#process?.signal('SIGCONT');
    this.#paused = false;
  }
}

/** How to start the controllers. */
interface ControllersOptions {
  readonly paths: PartPaths;
  readonly run: RunFolder;
  readonly parts: RunningParts;
  readonly pki: Pki;
  readonly rest: RestClient;
  /** Create the node whose pods KWOK simulates. Without it there are real nodes, which come later. */
  readonly simulatedNode: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** The running controllers. */
export interface Controllers {
  /**
   * Kills the controller manager and starts a new one; resolves when that has been started, not when it is
   * ready.
   */
  restartManager(): Promise<void>;
}

/** Starts controller manager, scheduler and KWOK, creates the node, and waits until pods can be scheduled. */
export async function startControllers(options: ControllersOptions): Promise<Controllers> {
  const { parts, pki, rest, simulatedNode, timeoutMs, signal } = options;
  const manager = credentialsFile(options, 'system:kube-controller-manager');
  const scheduler = credentialsFile(options, 'system:kube-scheduler');
  const startManager = (): GuardedProcess =>
    startPart(options, 'kube-controller-manager', controllerManagerArgs(manager, pki));
  let running = startManager();
  const processes = [running, startPart(options, 'kube-scheduler', schedulerArgs(scheduler))];
  if (simulatedNode) {
    // Kubernetes has no role for KWOK, which acts for kubelets and more.
    const kwok = credentialsFile(options, 'kindred-kwok', ['system:masters']);
    processes.push(startPart(options, 'kwok', kwokArgs(kwok, requirePath(options.paths, 'kwok-stages'))));
    await createFakeNode(rest);
  }
  await pollUntilReady(schedulable(rest, simulatedNode), {
    what: 'the node and the default ServiceAccount',
    processes,
    timeoutMs,
    signal,
  });
  return {
    restartManager: async () => {
      await parts.kill(running);
      running = startManager();
    },
  };
}

function startPart({ paths, run, parts }: ControllersOptions, part: PartName, args: readonly string[]): GuardedProcess {
  const program = requirePath(paths, part);
  return parts.start({ part, program, args, cwd: run.path, logFile: run.file(`${part}.log`) });
}

function credentialsFile({ pki, rest, run }: ControllersOptions, user: string, organizations: string[] = []): string {
  const credentials = pki.authority.client({ commonName: user, organizations });
  const content = { server: rest.server, authority: pki.authority.certificate, user, credentials };
  return run.write(`components/${user.replace('system:', '')}.kubeconfig`, renderKubeconfig(content));
}

/** The path of a part that was prepared. */
export function requirePath(paths: PartPaths, name: PartName): string {
  const found = paths[name];
  if (found === undefined) throw new LocalControlPlaneError(`the part ${name} was not prepared`);
  return found;
}

async function createFakeNode(rest: RestClient): Promise<void> {
  await rest.create('/api/v1/nodes', node);
}

const nodeName = 'kindred-node-0';

/**
 * The only node. KWOK recognizes it by the annotation, fills in its status, and runs every pod that is bound
 * to it.
 */
const node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: nodeName,
    annotations: { 'kwok.x-k8s.io/node': 'fake' },
    labels: {
      'kubernetes.io/hostname': nodeName,
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'amd64',
      'node-role.kubernetes.io/worker': '',
      type: 'kwok',
    },
  },
  status: {
    capacity: { cpu: '1k', memory: '1Ti', pods: '10k', 'ephemeral-storage': '1Ti' },
    allocatable: { cpu: '1k', memory: '1Ti', pods: '10k', 'ephemeral-storage': '1Ti' },
  },
};

/** Succeeds once pods can be created in the default namespace and will be scheduled. */
function schedulable(rest: RestClient, simulatedNode: boolean): Probe {
  return async () => {
    const account = await rest.request('GET', '/api/v1/namespaces/default/serviceaccounts/default');
    if (account.status !== 200) return 'the default ServiceAccount does not exist';
    if (!simulatedNode) return true;
    const { body } = await rest.request('GET', `/api/v1/nodes/${nodeName}`);
    return isUsable(body) ? true : `the node ${nodeName} is not Ready, or tainted`;
  };
}
