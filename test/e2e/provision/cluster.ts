import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ObjectKeyRef } from '../../../constructs/kind/reads';
import { nodes as nodesSchema } from '../../../constructs/kinds/cluster-node';
import { k3sOptions, rke2Options } from '../../../constructs/kinds/cluster-options';
import {
  KUBECONFIG_OUTPUT,
  clusterInput,
  clusterTasks,
  kubeconfigOutput,
  removalFacts,
  type ClusterInput,
  type NamedValue,
  type Task,
} from '../../../provision';
import { SshTransport } from '../../../provisioner/ssh/ssh-transport';
import { executePlan, type ExecutePlanResult, type TaskEvent } from '../../../provisioner/tasks/execute-plan';
import type { TaskRecord } from '../../../provisioner/tasks/task-record';
import {
  MachineError,
  type Transport,
  type TransportRequest,
  type TransportResult,
} from '../../../provisioner/tasks/transport';
import { waitFor } from '../../../testing/wait-for';
import { FAKE_INSTALLER, type Hosts, type TestHost } from '../../support/hosts';

const schemas = { rke2: rke2Options, k3s: k3sOptions };

/** A machine's part in a cluster. */
interface Part {
  readonly host: TestHost;
  readonly roles: readonly ('controlplane' | 'etcd' | 'worker')[];
}

/** What is wanted of a cluster. */
export interface Wanted {
  readonly distribution: 'rke2' | 'k3s';
  readonly version: string;
  readonly parts: readonly Part[];
  /** The distribution's options, before defaults. */
  readonly options?: object;
}

/** A cluster on hosts of a test, carried out by the provisioner's own code. Secrets are those of the hosts and of `secrets`. */
export class TestCluster {
  /** As they were last saved. */
  records: readonly TaskRecord[] = [];
  readonly events: TaskEvent[] = [];

  constructor(
    private readonly hosts: Hosts,
    /** For private keys while they are in use, and the kubeconfig. */
    private readonly folder: string,
    private readonly name = 'prod',
    private readonly secrets: Readonly<Record<string, string>> = {},
  ) {}

  input({ distribution, version, parts, options }: Wanted): ClusterInput {
    const input = clusterInput(this.name, {
      distribution,
      version,
      sshKeySecretRef: { namespace: 'machines', name: 'all', key: 'ssh-privatekey' },
      nodes: nodesSchema.parse(
        parts.map(({ host, roles }) => ({ address: host.address, roles, hostKey: host.hostKey, user: 'root' })),
      ),
      [distribution]: schemas[distribution].parse(options ?? {}),
    });
    return { ...input, installer: { path: FAKE_INSTALLER } };
  }

  plan(wanted: Wanted): readonly Task[] {
    return clusterTasks(this.input(wanted));
  }

  /** Brings the machines to what is wanted; nothing wanted = all of it is taken away. */
  async carryOut(
    wanted: Wanted | undefined,
    more: { transport?: Transport; signal?: AbortSignal; lost?: readonly TestHost[] } = {},
  ): Promise<ExecutePlanResult> {
    return executePlan({
      plan: wanted === undefined ? [] : this.plan(wanted),
      previous: this.records,
      transport: more.transport ?? this.transport(),
      lookup: {
        secret: (ref) => Promise.resolve(this.#secret(ref)),
        file: (path) => Promise.reject(new Error(`no file ${path}`)),
      },
      save: (records) => {
        // As a Secret keeps them: as JSON.
        this.records = JSON.parse(JSON.stringify(records)) as TaskRecord[];
        return Promise.resolve();
      },
      onEvent: (event) => this.events.push(event),
      ...(more.signal && { signal: more.signal }),
      removalValues: wanted === undefined ? [{ name: 'whole', value: 'yes' }] : this.#removalFacts(wanted),
      isLost: ({ address }) => more.lost?.some((host) => host.address === address) === true,
    });
  }

  transport(): Transport {
    const keys = new Map([...this.hosts.all, this.hosts.bastion].map((host) => [host?.address, host?.privateKey]));
    return new SshTransport({
      privateKey: ({ address }) => Promise.resolve(keys.get(address) ?? ''),
      folder: this.folder,
    });
  }

  /** Writes the kubeconfig that came back into a file. @returns its path */
  kubeconfig(wanted: Wanted): string {
    const { task } = kubeconfigOutput(this.input(wanted));
    const record = this.records.find((each) => each.task.id === task);
    const file = join(this.folder, `${this.name}.kubeconfig`);
    writeFileSync(file, Buffer.from(record?.outputs[KUBECONFIG_OUTPUT] ?? '', 'base64'), { mode: 0o600 });
    return file;
  }

  /** What the provisioner tells removals of the servers that stay. */
  #removalFacts(wanted: Wanted): readonly NamedValue[] {
    return Object.entries(removalFacts(this.input(wanted))).map(([name, value]) => ({ name, value: String(value) }));
  }

  #secret({ name, key }: ObjectKeyRef): string {
    const value = this.secrets[`${name}/${key}`];
    if (value === undefined) throw new Error(`there is no secret ${name}/${key}`);
    return value;
  }
}

/** How a run is disturbed. */
type Interruption =
  /** The connection is cut once the script runs; it goes on without us. */
  | 'cut'
  /** The script and what it started are killed, at once. */
  | 'killed'
  /** The same a little later. */
  | 'killed-later'
  /** The script ends, and its answer is lost. */
  | 'unheard';

/** Processes that a script over SSH consists of: the session of each program that sshd started. */
const killScripts = `for pid in $(pgrep -f '^sshd: .*@notty' || true); do
  for child in $(pgrep -P "$pid" || true); do pkill -KILL -s "$child" || true; done
done`;

/** Disturbs the first runs of each script, one by each of the given ways, and lets the following ones through. */
export class InterruptingTransport implements Transport {
  /** What was done, and to which script: `cut prod/token`. */
  readonly interrupted: Interruption[] = [];
  readonly #left = new Map<string, Interruption[]>();

  constructor(
    private readonly real: Transport,
    private readonly hosts: Hosts,
    private readonly ways: readonly Interruption[],
  ) {}

  async run(request: TransportRequest): Promise<TransportResult> {
    const key = `${request.machine?.address ?? ''} ${request.script}`;
    const left = this.#left.get(key) ?? [...this.ways];
    this.#left.set(key, left);
    const way = left.shift();
    if (way === undefined) return this.real.run(request);
    this.interrupted.push(way);
    const host = this.hosts.all.find(({ address }) => address === request.machine?.address);
    if (host === undefined) throw new Error('only scripts on hosts can be interrupted');
    const running = this.real.run(request).catch((error: unknown) => error);
    await Promise.race([running, this.#disturb(host, way)]);
    await running;
    throw new MachineError('ConnectionLost', `${way} on purpose`);
  }

  async #disturb(host: TestHost, way: Interruption): Promise<void> {
    if (way === 'unheard') return new Promise(() => undefined);
    const session = async (): Promise<boolean> => (await host.exec(`pgrep -f '^sshd: .*@notty' || true`)) !== '';
    // The script may be through before it is seen; its end is waited for beside this.
    await waitFor(session, { interval: 10, describe: 'the session' });
    if (way === 'killed-later') await new Promise((resolve) => setTimeout(resolve, 1500));
    if (way === 'cut') await host.dropConnections();
    else await host.exec(killScripts);
  }
}
