import type { ScriptResult } from '../../provision';
import { apiHostsAsked, etcdHostsAsked, hostsOfUrls, quorum, wordsOf, type ClusterSnapshot } from './cluster-specs';

/** What a script is asked to do, and where. The rest is read from its text, as it was recorded. */
export interface ModelRun {
  /** Id of the task. */
  readonly id: string;
  readonly action: 'apply' | 'remove';
  /** Address of the machine. */
  readonly on: string;
  readonly script: string;
  readonly values: Readonly<Record<string, string>>;
  /** The run is cut in its middle: of what it does, the first half happens. */
  readonly cut?: boolean;
}

/** A machine, as far as its part in a cluster goes. */
interface MachineState {
  installed: boolean;
  joined: boolean;
  standing: boolean;
  token: string | undefined;
  /** Roles that are processes: `controlplane,etcd`, `controlplane`, `etcd`, or nothing for an agent. */
  roles: string;
  /** The cluster that it was joined to. */
  cluster: ClusterState | undefined;
  /** Its service registered the node when it was started; it does not do so again by itself. */
  registered: boolean;
  /** Its installation ended well, as its marker says; another one does not start its service again. */
  marked: boolean;
  /** Data of a member of etcd are on its disk. */
  data: boolean;
}

const NEW_MACHINE: MachineState = {
  installed: false,
  joined: false,
  standing: false,
  token: undefined,
  roles: '',
  registered: false,
  marked: false,
  cluster: undefined,
  data: false,
};

/** A cluster: members of etcd, and the list of nodes, by address. */
interface ClusterState {
  readonly number: number;
  readonly members: Set<string>;
  readonly nodes: Set<string>;
  /** It was complete once. */
  wasComplete: boolean;
}

class RefusedError extends Error {
  constructor(readonly reason: string) {
    super(reason);
  }
}

/**
 * A model of etcd's members, the list of nodes and the machines of K3s clusters, on which plans are carried out without shells. It does what
 * the scripts do, with the values that stand in their text: so a script that was recorded long ago does what it was recorded for.
 *
 * What must never happen is written down in `violations`.
 */
export class ClusterModel {
  readonly machines = new Map<string, MachineState>();
  readonly clusters: ClusterState[] = [];
  readonly dead = new Set<string>();
  readonly violations: string[] = [];
  /** Machines of the plan that is being carried out; empty while the whole cluster is removed. */
  wanted: ReadonlySet<string> = new Set();

  machine(address: string): MachineState {
    const machine = this.machines.get(address) ?? { ...NEW_MACHINE };
    this.machines.set(address, machine);
    return machine;
  }

  get state(): ClusterSnapshot {
    const [cluster, ...others] = this.livingClusters;
    return {
      clusters: (cluster === undefined ? 0 : 1) + others.length,
      nodes: [...(cluster?.nodes ?? [])].sort(),
      members: [...(cluster?.members ?? [])].sort(),
      installed: [...this.machines]
        .filter(([, { installed }]) => installed)
        .map(([address]) => address)
        .sort(),
      violations: this.violations,
    };
  }

  /** Clusters of which something is left. */
  get livingClusters(): readonly ClusterState[] {
    return this.clusters.filter(({ members }) => [...members].some((address) => this.machine(address).installed));
  }

  run(run: ModelRun): ScriptResult {
    const before = new Map(this.clusters.map((cluster) => [cluster, this.#hasQuorum(cluster)]));
    const end = this.#end(run);
    for (const [cluster, had] of before) {
      const ended = ![...cluster.members].some((address) => this.machine(address).installed);
      const allowed = this.wanted.size === 0 || (ended && !cluster.wasComplete);
      if (had && !this.#hasQuorum(cluster) && !allowed) {
        this.violations.push(`${run.action} ${run.id} on ${run.on} cost cluster ${cluster.number} its quorum`);
      }
    }
    return end;
  }

  #end(run: ModelRun): ScriptResult {
    try {
      const outputs = this.#do(run);
      const coded = Object.entries(outputs).map(
        ([name, text]) => [name, Buffer.from(text).toString('base64')] as const,
      );
      return { ok: true, changed: true, ...(coded.length > 0 && { outputs: Object.fromEntries(coded) }) };
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      return { ok: false, changed: false, reason: error.reason, message: error.reason };
    }
  }

  #do(run: ModelRun): Readonly<Record<string, string>> {
    const { id, action, on } = run;
    const at = id.lastIndexOf('/');
    const [address, what] = at < 0 ? ['', id] : [id.slice(0, at), id.slice(at + 1)];
    switch (`${action} ${what}`) {
      case 'apply preflight':
        this.#preflight(run);
        return { hostname: `host-${on}`, turn: 'x' };
      case 'apply token':
        return { token: this.#token(run) };
      case 'apply drain':
        if (address !== on && this.machine(on).cluster !== undefined && !this.#answers(on))
          throw new RefusedError('NoApi');
        return { node: this.#nodeKnown(address, on) };
      case 'apply install':
        this.#install(run);
        return {};
      case 'apply ready':
        this.#ready(address, on);
        return {};
      case 'apply member':
        if (!this.#answers(on)) throw new RefusedError('NoApi');
        this.machine(on).joined = true;
        return {};
      case 'apply members':
        this.#members(run);
        return {};
      case 'remove members':
        this.machine(on).standing = false;
        return {};
      case 'remove ready':
        this.#leave(address, on);
        return {};
      case 'remove install':
        this.#uninstall(run);
        return {};
      case 'apply kubeconfig':
        return { kubeconfig: 'text' };
      default:
        return {};
    }
  }

  #preflight({ on, script }: ModelRun): void {
    const machine = this.machine(on);
    const roles = /^roles=(.*)$/m.exec(script)?.[1] ?? '';
    if (machine.installed && machine.cluster !== undefined && machine.roles !== roles)
      throw new RefusedError('PreflightFailed');
  }

  #token({ on, script }: ModelRun): string {
    const machine = this.machine(on);
    const asked = [...script.matchAll(/https:\/\/([0-9.]+):\d+\/ping/g)].map(([, host]) => host ?? '');
    if (machine.token === undefined && asked.some((other) => this.#isUp(other)))
      throw new RefusedError('ClusterExists');
    machine.token ??= `token of ${on}`;
    return machine.token;
  }

  #install({ on, script, values, cut = false }: ModelRun): void {
    const machine = this.machine(on);
    const isServer = /^kind=server$/m.test(script);
    const first = script.includes('cluster-init: true');
    const roles = [
      ...(isServer && !script.includes('disable-apiserver: true') ? ['controlplane'] : []),
      ...(isServer && !script.includes('disable-etcd: true') ? ['etcd'] : []),
    ];
    if (machine.installed && machine.roles !== roles.join()) throw new RefusedError('RoleChanged');
    machine.installed = true;
    machine.roles = roles.join();
    if (machine.data && !this.#isUp(on) && this.#wasRemoved(on, script)) {
      if (first) throw new RefusedError('ClusterExists');
      machine.data = false;
      machine.joined = false;
    }
    if (this.#isUp(on)) {
      if (values['node'] === 'no' || !machine.marked) machine.registered = true;
      machine.marked = true;
      return;
    }
    if (roles.includes('etcd')) {
      // A member that was removed does not start with its old data.
      if (machine.data && machine.cluster?.members.has(on) !== true) throw new RefusedError('NotUp');
      if (!machine.data) {
        const cluster = first ? this.#begin() : this.#toJoin(on);
        cluster.members.add(on);
        machine.cluster = cluster;
        machine.data = true;
      }
    } else machine.cluster = this.#toJoin(on);
    if (cut) return;
    if (isServer) machine.token ??= 'token';
    if (machine.cluster === undefined || !this.#hasQuorum(machine.cluster)) throw new RefusedError('NotUp');
    machine.registered = true;
    machine.marked = true;
  }

  #nodeKnown(address: string, on: string): string {
    if (!this.#answers(on)) return 'unknown';
    return this.machine(on).cluster?.nodes.has(address) === true ? 'yes' : 'no';
  }

  /** What an installation makes of what the other servers answer: that etcd no longer has this machine. */
  #wasRemoved(on: string, script: string): boolean {
    const host = etcdHostsAsked(script).find((other) => this.#etcdAnswersTo(on, other));
    if (host !== undefined) return this.machine(host).cluster?.members.has(on) !== true;
    const server = apiHostsAsked(script).find((other) => this.#answersTo(on, other));
    return this.machine(on).joined && server !== undefined && this.machine(server).cluster?.nodes.has(on) !== true;
  }

  #begin(): ClusterState {
    if (this.livingClusters.some(({ wasComplete: stood }) => stood) && this.wanted.size > 0) {
      const kept = this.livingClusters.flatMap(({ nodes }) => [...nodes]).filter((address) => this.wanted.has(address));
      if (kept.length > 0) this.violations.push(`a second cluster was begun though ${kept.join()} are in one`);
    }
    const cluster: ClusterState = {
      number: this.clusters.length + 1,
      members: new Set(),
      nodes: new Set(),
      wasComplete: false,
    };
    this.clusters.push(cluster);
    return cluster;
  }

  /** The cluster behind the fixed address: that of the servers of the plan. */
  #toJoin(on: string): ClusterState {
    const servers = [...this.wanted].filter((address) => address !== on && this.machine(address).roles !== '');
    const found = servers
      .map((address) => this.machine(address).cluster)
      .find((cluster) => cluster !== undefined && this.#hasQuorum(cluster));
    if (found === undefined) throw new RefusedError('NotUp');
    return found;
  }

  #ready(address: string, on: string): void {
    const { cluster, installed, registered } = this.machine(address);
    if (!this.#answers(on) || !installed || !registered || cluster !== this.machine(on).cluster || !this.#isUp(address))
      throw new RefusedError('NotReady');
    cluster?.nodes.add(address);
  }

  #members({ on, values, cut = false }: ModelRun): void {
    const machine = this.machine(on);
    const { cluster } = machine;
    if (cluster === undefined || !this.#answers(on) || !cluster.nodes.has(on)) throw new RefusedError('NoApi');
    machine.standing = true;
    cluster.wasComplete = true;
    const staying = values['staying'] ?? '';
    for (const address of staying.trim().split(' '))
      if (!cluster.nodes.has(address)) throw new RefusedError('NotANode');
    for (;;) {
      const leaving = [...cluster.nodes].filter((address) => !staying.includes(` ${address} `));
      const next = leaving.find((address) => !this.#isAlive(address)) ?? leaving[0];
      if (next === undefined) return;
      const rest = [...cluster.members].filter((address) => address !== next && cluster.nodes.has(address));
      const ready = rest.filter((address) => this.#isAlive(address)).length;
      if (cluster.members.has(next) && ready < quorum(rest.length)) throw new RefusedError('QuorumAtRisk');
      this.#removeNode(next, cluster);
      if (cut) return;
    }
  }

  /** The removal of `ready`, on the server that was the admin when it was recorded. */
  #leave(address: string, on: string): void {
    const { cluster } = this.machine(on);
    if (cluster === undefined || !this.#answers(on) || !cluster.nodes.has(address) || cluster.nodes.size === 1) return;
    if ([...cluster.nodes].filter((node) => cluster.members.has(node)).join() === address) return;
    this.#removeNode(address, cluster);
  }

  #removeNode(address: string, cluster: ClusterState): void {
    if (this.wanted.has(address))
      this.violations.push(`${address} was removed from cluster ${cluster.number}, though it stays`);
    this.#removeMember(address, cluster);
    cluster.nodes.delete(address);
    this.machine(address).registered = false;
  }

  /** As etcd does it: not without a quorum, nor if those that are left would have none. */
  #removeMember(address: string, { members }: ClusterState): void {
    const rest = [...members].filter((member) => member !== address);
    const alive = rest.filter((member) => this.#isAlive(member)).length;
    const isAlive = members.has(address) && this.#isAlive(address);
    if (alive + (isAlive ? 1 : 0) < quorum(members.size) || (isAlive && alive < quorum(rest.length)))
      throw new RefusedError('LeaveFailed');
    members.delete(address);
  }

  #uninstall({ on, script, values, cut = false }: ModelRun): void {
    const machine = this.machine(on);
    if (this.wanted.has(on)) this.violations.push(`${on} was uninstalled, though it stays`);
    if (machine.installed) this.#leaveBeforeUninstall(on, script, values);
    const { cluster } = machine;
    const others = [...(cluster?.members ?? [])].filter((address) => address !== on && this.machine(address).installed);
    if (this.wanted.size > 0 && cluster?.members.has(on) === true && (others.length > 0 || cluster.wasComplete)) {
      this.violations.push(`${on} was uninstalled, though it is a member of etcd`);
    }
    if (!cut) this.machines.delete(on);
  }

  #leaveBeforeUninstall(on: string, script: string, values: ModelRun['values']): void {
    if (!script.includes("left=''")) return;
    const machine = this.machine(on);
    const { servers = '', etcd = '', whole } = values;
    const urls = [...hostsOfUrls(servers), ...apiHostsAsked(script)];
    const server = urls.find((other) => this.#answersTo(on, other));
    const cluster = server === undefined ? undefined : this.machine(server).cluster;
    const hadNode = cluster?.nodes.has(on) === true;
    if (cluster !== undefined && hadNode) this.#removeNode(on, cluster);
    const members = [...wordsOf(etcd), ...etcdHostsAsked(script)];
    const hasAnswer = whole !== 'yes' && members.some((other) => this.#etcdAnswersTo(on, other));
    if (hasAnswer && machine.cluster?.members.has(on) === true) this.#removeMember(on, machine.cluster);
    const knows = hasAnswer || (cluster !== undefined && (hadNode || machine.joined));
    if (knows || whole === 'yes' || !machine.data) return;
    if (script.includes('die LastServer')) {
      if (machine.standing) throw new RefusedError('LastServer');
    } else if (!script.includes('if [ -n "$etcd" ]') || etcd !== '') throw new RefusedError('LeaveFailed');
  }

  #isAlive(address: string): boolean {
    return !this.dead.has(address) && this.machine(address).installed;
  }

  #hasQuorum({ members }: ClusterState): boolean {
    const alive = [...members].filter((address) => this.#isAlive(address)).length;
    return alive >= quorum(members.size);
  }

  /** Whether the service of a machine works. */
  #isUp(address: string): boolean {
    const { cluster, roles } = this.machine(address);
    if (cluster === undefined || !this.#isAlive(address) || !this.#hasQuorum(cluster)) return false;
    return !roles.includes('etcd') || cluster.members.has(address);
  }

  #answers(address: string): boolean {
    return this.machine(address).roles.includes('controlplane') && this.#isUp(address);
  }

  /** Whether etcd of a machine answers another, with the certificate of that one's cluster. */
  #etcdAnswersTo(asking: string, address: string): boolean {
    const { cluster, roles } = this.machine(address);
    return (
      cluster !== undefined && roles.includes('etcd') && this.machine(asking).cluster === cluster && this.#isUp(address)
    );
  }

  /** With the credentials of a machine's own cluster. */
  #answersTo(asking: string, address: string): boolean {
    const { cluster } = this.machine(asking);
    return cluster !== undefined && this.machine(address).cluster === cluster && this.#answers(address);
  }
}
