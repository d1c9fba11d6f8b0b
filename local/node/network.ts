import { serviceNetwork } from '../certificates';
import { LocalControlPlaneError } from '../assets/errors';
import { runTool } from '../assets/process';

/**
 * The network of real nodes. Each node has a network namespace of its own; the first one has the bridge that
 * connects them. Nothing of it is visible on the machine, and nothing in it reaches the machine or the
 * internet, except the API server, through a Unix socket.
 */
const nodePrefix = '10.200.0';

/** The addresses of all pods. */
export const podNetwork = '10.244.0.0/16';

/** The most nodes that the addresses are enough for. */
export const maxNodes = 9;

/** The address of a node, by its number from 1 on. */
export function nodeAddress(number: number): string {
  return `${nodePrefix}.${number}`;
}

/** The addresses of the pods of a node. */
export function podRange(number: number): string {
  return `10.244.${number}.0/24`;
}

/**
 * Connects a node to the others.
 *
 * @param number - of the node, from 1 on
 * @param pids - of the first processes of the nodes up to this one, by which their namespaces are entered
 * @throws LocalControlPlaneError when the kernel refuses
 */
export async function connectNode(number: number, pids: readonly number[]): Promise<void> {
  const [first] = pids;
  const own = pids[number - 1];
  if (first === undefined || own === undefined) throw new LocalControlPlaneError(`node ${number} does not run`);
  if (number === 1) {
    await ip(first, [
      'link add nodes type bridge',
      `address add ${nodeAddress(1)}/24 dev nodes`,
      'link set nodes up',
      routeToServices('nodes'),
    ]);
    return;
  }
  await ip(first, [
    `link add node${number} type veth peer name eth0 netns ${own}`,
    `link set node${number} master nodes`,
    `link set node${number} up`,
    `route add ${podRange(number)} via ${nodeAddress(number)} dev nodes onlink`,
  ]);
  const routes = pids.slice(0, number - 1).map((_, index) => index + 1);
  await ip(own, [
    `address add ${nodeAddress(number)}/24 dev eth0`,
    'link set eth0 up',
    routeToServices('eth0'),
    ...routes.map((other) => `route add ${podRange(other)} via ${nodeAddress(other)}`),
  ]);
  for (const other of routes.slice(1)) {
    const pid = pids[other - 1];
    if (pid !== undefined) await ip(pid, [`route add ${podRange(number)} via ${nodeAddress(number)}`]);
  }
}

/**
 * Without a route to a Service, the kernel refuses a connection of the node itself before the rules of kube-proxy
 * see it. Those of pods come in by a bridge, and need none.
 */
function routeToServices(device: string): string {
  return `route add ${serviceNetwork.range} dev ${device}`;
}

/** Runs commands of `ip` in the network namespace of a process. */
async function ip(pid: number, commands: readonly string[]): Promise<void> {
  const args = ['-t', String(pid), '-n', 'ip', '-batch', '-'];
  const result = await runTool('nsenter', args, { input: commands.map((line) => `${line}\n`).join('') });
  if (result?.code === 0) return;
  throw new LocalControlPlaneError(
    `cannot configure the network of a node: ${result?.stderr ?? 'there is no nsenter'}`,
  );
}

/** The configuration with which the API server reaches kubelets, pods and Services through a proxy. */
export function egressSelector(socket: string): string {
  return `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
  - name: cluster
    connection:
      proxyProtocol: HTTPConnect
      transport: { uds: { udsName: ${JSON.stringify(socket)} } }
`;
}
