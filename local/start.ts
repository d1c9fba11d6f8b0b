import { tmpdir } from 'node:os';
import { cacheFolder } from './assets/cache';
import { LocalControlPlaneError } from './assets/errors';
import { prepare, type PartPaths } from './assets/obtain';
import { duration, progressToStderr, whileSlow } from './assets/progress';
import { createPki, type Pki } from './certificates';
import { RestClient, describeResponse, renderKubeconfig } from './rest-client';
import { ApiServer, requirePath, startControllers, startEtcd } from './components';
import { RunningControlPlane, auditPolicy, type ControlPlane, type ControlPlaneOptions } from './control-plane';
import { RunningParts, retryOnPortConflict } from './guarded-process';
import { nodeProblem } from './node/available';
import { apiServerNodeArgs, startNodes } from './node/node';
import { freePort, loopback, requireFree } from './ports';
import { RunFolder, removeStaleRuns } from './run-folder';

/** Generous: a machine that runs many tests at once may take ten times as long as an idle one. */
const defaultStartTimeoutMs = 120_000;

/**
 * Starts a Kubernetes control plane of real parts on this machine and waits until it is ready.
 *
 * Guarantees: it listens on 127.0.0.1 only; it shares nothing with other runs but the cached parts; it leaves
 * no process behind, however this process ends; whatever a crashed run left is removed by the next start.
 * Assumptions: Linux or macOS; no root, no container runtime.
 *
 * @throws LocalControlPlaneError when a part cannot be obtained, the given port is taken, the data directory
 * is in use, or a part ends or is not ready in time (with the last lines of its log)
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const onProgress = options.onProgress ?? progressToStderr;
  requireSupportedSystem();
  if (options.port !== undefined) await requireFree(options.port);
  requireNodes(options);
  await removeStaleRuns(onProgress);
  const paths = await prepare({ ...options, components: options.components ?? 'full' });
  options.signal?.throwIfAborted();
  const started = Date.now();
  const run = await RunFolder.create(options.dataDir);
  const parts = new RunningParts();
  const forget = onProcessExit(() => {
    parts.signalAll();
    run.remove();
  });
  try {
    const context = { paths, run, parts, unregisterExitHandler: forget };
    const plane = await whileSlow('Starting etcd and Kubernetes', onProgress, () => startParts(options, context));
    onProgress(`Kubernetes ${plane.version} is ready at ${plane.url} after ${duration(Date.now() - started)}`);
    return plane;
  } catch (error) {
    await parts.killAll();
    run.remove();
    forget();
    throw error;
  }
}

function requireSupportedSystem(): void {
  if (process.platform === 'linux' || process.platform === 'darwin') return;
  throw new LocalControlPlaneError(
    `the local control plane runs on Linux and macOS, not on ${process.platform}; on Windows, use it inside WSL.`,
  );
}

/** The context of one start. */
interface StartContext {
  readonly paths: PartPaths;
  readonly run: RunFolder;
  readonly parts: RunningParts;
  /** Unregisters the cleanup that runs before this process ends. */
  readonly unregisterExitHandler: () => void;
}

async function startParts(options: ControlPlaneOptions, context: StartContext): Promise<ControlPlane> {
  const { run, parts, paths } = context;
  const { signal, startTimeoutMs: timeoutMs = defaultStartTimeoutMs } = options;
  const pki = createPki(run);
  const etcd = await startEtcd({ program: requirePath(paths, 'etcd'), run, parts, timeoutMs, signal });
  const { apiServer, rest } = await startApiServer(options, context, pki, etcd.url);
  try {
    const count = options.nodes ?? 0;
    const shared = { run, parts, pki, rest, timeoutMs, signal };
    const controllers = isFull(options)
      ? await startControllers({ ...shared, paths, simulatedNode: count === 0 })
      : undefined;
    const nodes = count === 0 ? [] : await startNodes({ ...shared, count, programs: nodePrograms(paths) });
    const admin = pki.authority.client({ commonName: 'kindred-admin', organizations: ['system:masters'] });
    const adminKubeconfig = run.write(
      'admin.kubeconfig',
      renderKubeconfig({
        server: rest.server,
        authority: pki.authority.certificate,
        user: 'kindred-admin',
        credentials: admin,
      }),
    );
    const version = await serverVersion(rest);
    return new RunningControlPlane({
      ...{ ...context, rest, pki, etcd, apiServer, controllers, nodes, adminKubeconfig, version },
    });
  } catch (error) {
    await rest.close();
    throw error;
  }
}

async function startApiServer(
  options: ControlPlaneOptions,
  { paths, run, parts }: StartContext,
  pki: Pki,
  etcdUrl: string,
): Promise<{ readonly apiServer: ApiServer; readonly rest: RestClient }> {
  const client = pki.authority.client({ commonName: 'kindred-local', organizations: ['system:masters'] });
  const nodeArgs = (options.nodes ?? 0) > 0 ? apiServerNodeArgs(run, pki) : [];
  const auditPolicyFile = run.write('audit-policy.yaml', auditPolicy);
  return retryOnPortConflict(async () => {
    const port = options.port ?? (await freePort());
    const rest = new RestClient(`https://${loopback}:${port}`, pki.authority.certificate, client);
    const apiServer = new ApiServer({
      program: requirePath(paths, 'kube-apiserver'),
      run,
      parts,
      rest,
      timeoutMs: options.startTimeoutMs ?? defaultStartTimeoutMs,
      settings: {
        pki,
        port,
        etcdUrl,
        certFolder: run.folder('apiserver'),
        auditPolicyFile,
        auditLogFile: run.file('audit.log'),
        serviceAccountAdmission: isFull(options),
        extra: [...nodeArgs, ...(options.extraApiServerArgs ?? [])],
      },
    });
    try {
      await apiServer.start(options.signal);
      return { apiServer, rest };
    } catch (error) {
      await rest.close();
      throw error;
    }
  });
}

/** @throws LocalControlPlaneError when real nodes are wanted and cannot run here */
function requireNodes(options: ControlPlaneOptions): void {
  const { nodes = 0, dataDir = tmpdir(), cache = cacheFolder(options.env) } = options;
  if (nodes === 0) return;
  if (!isFull(options))
    throw new LocalControlPlaneError("real nodes need the controllers: start with components: 'full'");
  const problem = nodeProblem(nodes, [dataDir, cache]);
  if (problem !== undefined) throw new LocalControlPlaneError(`no real nodes: ${problem}`);
}

function nodePrograms(paths: PartPaths): { kubelet: string; kubeProxy: string; pod: string } {
  return {
    kubelet: requirePath(paths, 'kubelet'),
    kubeProxy: requirePath(paths, 'kube-proxy'),
    pod: requirePath(paths, 'pod'),
  };
}

function isFull({ components = 'full' }: ControlPlaneOptions): boolean {
  return components === 'full';
}

async function serverVersion(rest: RestClient): Promise<string> {
  const answer = await rest.request('GET', '/version');
  const version = (answer.body as { gitVersion?: unknown }).gitVersion;
  if (typeof version === 'string') return version;
  throw new LocalControlPlaneError(`the API server does not tell its version: ${describeResponse(answer)}`);
}

/**
 * The cleanup before this process ends, on exit and on the signals that end it. (After SIGKILL nothing can
 * run here; that case is handled by the guards of the parts and by the next start.)
 */
const exitHandlers = new Set<() => void>();
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Registers a synchronous cleanup; the returned function removes it. */
function onProcessExit(act: () => void): () => void {
  if (exitHandlers.size === 0) listen();
  exitHandlers.add(act);
  return () => {
    exitHandlers.delete(act);
    if (exitHandlers.size === 0) unlisten();
  };
}

function listen(): void {
  process.on('exit', runExitHandlers);
  for (const signal of signals) process.on(signal, onSignal);
}

function unlisten(): void {
  process.off('exit', runExitHandlers);
  for (const signal of signals) process.off(signal, onSignal);
}

function runExitHandlers(): void {
  for (const act of exitHandlers) act();
  exitHandlers.clear();
}

/** Runs the cleanup, then lets the signal have its default effect. */
function onSignal(signal: NodeJS.Signals): void {
  // A program with handlers of its own ends when it is ready to, and usually calls stop() first.
  if (process.listenerCount(signal) > 1) return;
  runExitHandlers();
  unlisten();
  process.kill(process.pid, signal);
}
