import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { LocalControlPlaneError, undefinedIfMissing } from '../assets/errors';
import { modulesFolder } from '../assets/go-build';
import { runTool } from '../assets/process';
import { apiServerInCluster } from '../certificates';
import type { Pki } from '../certificates';
import { pollUntilReady } from '../guarded-process';
import type { GuardedProcess, RunningParts } from '../guarded-process';
import { renderKubeconfig } from '../rest-client';
import type { RestClient } from '../rest-client';
import type { RunFolder } from '../run-folder';
import { cniPluginFolder, nodePath } from './available';
import { cniConfig, containerdConfig, containerdSocket, kubeProxyConfig, kubeletConfig, sandboxImage } from './config';
import { writeImageArchive } from './images';
import { connectNode, egressSelector, nodeAddress } from './network';

/** The image of a small HTTP server, for tests and samples: see `local/parts/node/serve.go`. */
export const serverImage = 'kindred.local/server:1';

/** A node with a real kubelet, which runs containers. */
export interface RealNode {
  /** The name of the Node object: `kindred-node-1`. */
  readonly name: string;
  /** The folder with its configuration and the logs of containerd, kubelet and kube-proxy. */
  readonly folder: string;
  /** The pid of the first process in its namespaces, by which `nsenter` enters them. */
  readonly pid: number;
}

/** How to start nodes. */
interface NodesOptions {
  readonly count: number;
  readonly programs: { readonly kubelet: string; readonly kubeProxy: string; readonly pod: string };
  readonly run: RunFolder;
  readonly parts: RunningParts;
  readonly pki: Pki;
  readonly rest: RestClient;
  /** Until each step is done, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

const sockets = (run: RunFolder) => ({ api: run.file('api.sock'), egress: run.file('egress.sock') });

/** Linux allows this many bytes for the path of a Unix socket. */
const maxSocketPath = 107;

/**
 * The flags by which an API server reaches real nodes. Written before there are nodes: until then, its
 * requests to them fail.
 *
 * @throws LocalControlPlaneError when the path of the data folder is too long
 */
export function apiServerNodeArgs(run: RunFolder, pki: Pki): string[] {
  const { egress } = sockets(run);
  if (Buffer.byteLength(egress) > maxSocketPath) {
    throw new LocalControlPlaneError(
      `the data folder ${run.path} has too long a path for the sockets in it: give a shorter one (dataDir, or TMPDIR).`,
    );
  }
  const client = pki.authority.client({ commonName: 'kindred-kubelet-client', organizations: ['system:masters'] });
  return [
    `--egress-selector-config-file=${run.write('egress.yaml', egressSelector(egress))}`,
    `--kubelet-client-certificate=${run.write('pki/kubelet-client.crt', client.certificate)}`,
    `--kubelet-client-key=${run.write('pki/kubelet-client.key', client.key)}`,
    `--kubelet-certificate-authority=${pki.files.authorityCertificate}`,
    '--kubelet-preferred-address-types=InternalIP',
  ];
}

/** Starts nodes one after the other, and connects them with the API server. Waits until all are Ready. */
export async function startNodes(options: NodesOptions): Promise<readonly RealNode[]> {
  const { run, programs, count, rest } = options;
  const archives = [run.file('pause.tar'), run.file('server.tar')] as const;
  await writeImageArchive(archives[0], { program: programs.pod, args: ['pause'], names: [sandboxImage] });
  await writeImageArchive(archives[1], { program: programs.pod, args: ['serve'], names: [serverImage] });
  const nodes: RealNode[] = [];
  const processes: GuardedProcess[] = [];
  for (let number = 1; number <= count; number += 1) {
    const { node, process } = await createNode(options, number);
    nodes.push(node);
    processes.push(process);
    const pids = nodes.map(({ pid }) => pid);
    await connectNode(number, pids);
    if (number === 1) await connectApiServer(options, node);
  }
  // The programs of all nodes start at the same time.
  await Promise.all(nodes.map((node, index) => startPrograms(options, node, processes[index], archives)));
  const probe = async (): Promise<true | string> => {
    const answers = await Promise.all(nodes.map(({ name }) => rest.request('GET', `/api/v1/nodes/${name}`)));
    return answers.every(({ body }) => isUsable(body)) ? true : 'not every node is Ready';
  };
  const { timeoutMs, signal } = options;
  await pollUntilReady(probe, { what: `${count} Ready nodes`, processes, timeoutMs, signal });
  return nodes;
}

/**
 * Imports an image into nodes.
 *
 * @param archive - the path of an OCI or Docker archive, whose images have names with a host
 * @throws LocalControlPlaneError when containerd refuses it
 */
export async function importImage(nodes: readonly RealNode[], archive: string): Promise<void> {
  await Promise.all(
    nodes.map(async (node) => {
      const result = await ctr(node, ['--namespace', 'k8s.io', 'images', 'import', path.resolve(archive)]);
      if (result?.code === 0) return;
      const why = result?.stderr ?? 'there is no ctr';
      throw new LocalControlPlaneError(`cannot import ${archive} into ${node.name}: ${why}`);
    }),
  );
}

/** Runs the client of containerd, which sees the files of the machine, but the socket of the node. */
function ctr({ pid }: RealNode, args: readonly string[]): ReturnType<typeof runTool> {
  const socket = `/proc/${pid}/root${containerdSocket}`;
  return runTool('ctr', ['--address', socket, ...args], { env: { ...process.env, PATH: nodePath() } });
}

/** Creates the namespaces of a node, in which no program runs yet. */
async function createNode(
  options: NodesOptions,
  number: number,
): Promise<{ readonly node: RealNode; readonly process: GuardedProcess }> {
  const { run, parts, programs, timeoutMs, signal } = options;
  const name = `kindred-node-${number}`;
  const folder = run.folder(name);
  writeConfig(options, name, number);
  const keeper = parts.start({
    part: name,
    program: path.join(modulesFolder(), 'node', 'node.sh'),
    args: ['keep', folder],
    cwd: folder,
    logFile: run.file(`${name}.log`),
    env: { PATH: nodePath(), KUBELET: programs.kubelet, KUBE_PROXY: programs.kubeProxy, NODE_IP: nodeAddress(number) },
    endsWithPipe: true,
  });
  let pid = 0;
  const probe = async (): Promise<true | string> => {
    pid = Number(await readFile(path.join(folder, 'pid'), 'utf8').catch(undefinedIfMissing));
    return pid > 0 ? true : 'its first process is not ready';
  };
  await pollUntilReady(probe, { what: `the namespaces of ${name}`, processes: [keeper], timeoutMs, signal });
  return { node: { name, folder, pid }, process: keeper };
}

function writeConfig({ run, pki }: NodesOptions, name: string, number: number): void {
  const kubelet = pki.authority.client({ commonName: `system:node:${name}`, organizations: ['system:nodes'] });
  const proxy = pki.authority.client({ commonName: 'system:kube-proxy', organizations: [] });
  const server = pki.authority.server(name, [name, nodeAddress(number)]);
  const cniPlugins = cniPluginFolder();
  if (cniPlugins === undefined) throw new LocalControlPlaneError('the CNI plugins are gone');
  const settings = {
    name,
    number,
    folder: run.file(name),
    cniPlugins,
    certificates: {
      authority: pki.files.authorityCertificate,
      server: run.write(`${name}/kubelet.crt`, server.certificate),
      key: run.write(`${name}/kubelet.key`, server.key),
    },
  };
  const kubeconfig = (user: string, credentials: { certificate: string; key: string }): string =>
    renderKubeconfig({
      server: `https://${apiServerInCluster.address}:${apiServerInCluster.port}`,
      authority: pki.authority.certificate,
      user,
      credentials,
    });
  run.write(`${name}/containerd.toml`, containerdConfig(settings));
  run.write(`${name}/cni/10-pods.conflist`, cniConfig(settings));
  run.write(`${name}/kubelet.yaml`, kubeletConfig(settings));
  run.write(`${name}/kubelet.kubeconfig`, kubeconfig(`system:node:${name}`, kubelet));
  run.write(`${name}/kube-proxy.yaml`, kubeProxyConfig(settings));
  run.write(`${name}/kube-proxy.kubeconfig`, kubeconfig('system:kube-proxy', proxy));
}

/**
 * Lets nodes and pods reach the API server, which listens on 127.0.0.1 of the machine, and lets the API server
 * reach them. Only Unix sockets cross the border of the network namespace.
 */
async function connectApiServer({ run, parts, programs, rest }: NodesOptions, first: RealNode): Promise<void> {
  const { api, egress } = sockets(run);
  const { address, port } = apiServerInCluster;
  const start = (name: string, program: string, args: readonly string[]): GuardedProcess =>
    parts.start({ part: name, program, args, cwd: run.path, logFile: run.file(`${name}.log`) });
  const inside = [`--net=/proc/${first.pid}/ns/net`, '--', programs.pod];
  start('api-outside', programs.pod, ['forward', `unix:${api}`, `tcp:${new URL(rest.server).host}`]);
  start('api-inside', 'nsenter', [...inside, 'forward', `tcp:${address}:${port}`, `unix:${api}`]);
  start('egress', 'nsenter', [...inside, 'connect', `unix:${egress}`]);
  // The API server itself would only accept its own address as the endpoint of its Service.
  await rest.create('/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    ports: [{ name: 'https', port, protocol: 'TCP' }],
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
  });
}

async function startPrograms(
  { timeoutMs, signal }: NodesOptions,
  node: RealNode,
  keeper: GuardedProcess | undefined,
  archives: readonly string[],
): Promise<void> {
  if (keeper === undefined) throw new LocalControlPlaneError(`${node.name} does not run`);
  keeper.writeLine('start');
  const answers = async (): Promise<true | string> => {
    const result = await ctr(node, ['version']);
    return result?.code === 0 ? true : `containerd does not answer: ${result?.stderr ?? 'there is no ctr'}`;
  };
  await pollUntilReady(answers, { what: `containerd of ${node.name}`, processes: [keeper], timeoutMs, signal });
  for (const archive of archives) await importImage([node], archive);
  keeper.writeLine('kubelet');
}

interface NodeLike {
  readonly spec?: { readonly taints?: readonly unknown[] };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** Whether it is Ready, and the node lifecycle controller has removed the taint of a new node. */
export function isUsable(node: unknown): boolean {
  const { spec, status } = node as NodeLike;
  const ready = (status?.conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'True');
  return ready && (spec?.taints ?? []).length === 0;
}
