import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { HelloApp } from '../constructs/kinds';
import type { KubeObject } from '../constructs/kube/kube-object';
import type { ResourceType } from '../constructs/kube/resource-type';
import { startControlPlane, type ControlPlane } from '../local';
import type { ApiClient } from '../operator/client/api-client';
import { kubeconfigClient, operatorBundle } from '../testing';
import { installPlatform } from '../testing/install-platform';
import { AuditLogTail, summarizeAudit, type AuditSummary } from './audit';
import type { BareAccess } from './bare-loop';
import { bareAccess, bareBundle, sendBare, type RequestPair } from './bare-requests';
import { kindred, podEnv, twin, twins, type OperatorUnderTest } from './operators-under-test';
import { MeasuredProcess, type Program } from './measured-process';
import type { Usage } from './results';

/** Lifetime of the operators' tokens, in seconds: longer than any benchmark. */
const expirationSeconds = 6 * 3600;

/** The parts of a {@link BenchEnv}. */
interface BenchEnvProps {
  readonly plane: ControlPlane;
  readonly client: ApiClient;
  readonly audit: AuditLogTail;
  readonly bare: { readonly bundle: string; readonly access: BareAccess; readonly concurrency: number };
  readonly contestants: readonly OperatorUnderTest[];
  readonly skipped: readonly string[];
  readonly folder: string;
}

/** The environment of the benchmark: a control plane with the platform, and the operators under test. */
export class BenchEnv {
  private constructor(private readonly props: BenchEnvProps) {}

  /**
   * Builds the operator if necessary, and copies its bundle, which may be rebuilt during the measurements.
   */
  static async create(
    options: { readonly concurrency: number; readonly bundle: string },
    signal: AbortSignal,
  ): Promise<BenchEnv> {
    const built = options.bundle === '' ? await operatorBundle() : options.bundle;
    const peer = await twins(join(__dirname, '..'), signal);
    const folder = await mkdtemp(join(tmpdir(), 'kindred-bench-'));
    let plane: ControlPlane | undefined;
    try {
      const bundle = join(folder, 'operator.cjs');
      await copyFile(built, bundle);
      plane = await startControlPlane({ components: 'api', signal });
      const client = await kubeconfigClient(plane.adminKubeconfig);
      const { account, args: own } = await installPlatform(
        { client },
        { name: 'operator', image: 'none', kinds: [HelloApp] },
      );
      const kubeconfig = await plane.kubeconfigFor(account, { expirationSeconds });
      const args = [...own, `--kubeconfig=${kubeconfig}`, `--concurrency=${String(options.concurrency)}`];
      const contestants = [kindred({ user: userOf(account), bundle, args })];
      const skipped: string[] = [];
      if ('missing' in peer) skipped.push(peer.missing);
      else contestants.push(...(await createTwins(plane, client, peer.file)));
      const audit = new AuditLogTail(join(plane.dataDir, 'audit.log'), client);
      const bare = {
        ...{ bundle: await bareBundle(folder), access: await bareAccess(kubeconfig), concurrency: options.concurrency },
      };
      return new BenchEnv({ plane, client, audit, bare, contestants, skipped, folder });
    } catch (error) {
      await plane?.stop();
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** A client with the administrator's access. */
  get client(): ApiClient {
    return this.props.client;
  }

  /** The available operators. */
  get contestants(): readonly OperatorUnderTest[] {
    return this.props.contestants;
  }

  /** What is not available, and why. */
  get skipped(): readonly string[] {
    return this.props.skipped;
  }

  /** The version of the API server. */
  get kubernetes(): string {
    return this.props.plane.version;
  }

  /** The requests of an account since the last call, for whichever account that was. */
  async requests(user: string): Promise<AuditSummary> {
    return summarizeAudit(await this.props.audit.since(user), user);
  }

  /** Starts an operator. */
  start(program: Program, signal: AbortSignal): MeasuredOperator {
    return MeasuredProcess.start(program, signal);
  }

  /**
   * Sends prepared requests with our operator's account, from a process with our operator's settings.
   * @returns its resource usage
   */
  send(pairs: readonly RequestPair[], signal: AbortSignal): Promise<Usage> {
    return sendBare(pairs, { ...this.props.bare, env: podEnv(pairs.length), signal });
  }

  /** Waits until the machine is nearly idle. */
  calm(): Promise<void> {
    return waitForIdleMachine();
  }

  /** Stops everything and removes its files. */
  async close(): Promise<void> {
    await this.client.close();
    await this.props.plane.stop();
    await rm(this.props.folder, { recursive: true, force: true });
  }
}

/** A running operator, as the measurements use it. */
export type MeasuredOperator = Pick<
  MeasuredProcess,
  'startedAt' | 'gone' | 'reconciling' | 'settled' | 'work' | 'usage' | 'stop'
>;

/** The part of a {@link BenchEnv} that the measurements use. */
export type BenchContext = Pick<BenchEnv, 'client' | 'contestants' | 'requests' | 'start' | 'send' | 'calm'>;

async function createTwins(
  plane: ControlPlane,
  client: ApiClient,
  file: string,
): Promise<readonly OperatorUnderTest[]> {
  await makeTwinAccount(client);
  const kubeconfig = await plane.kubeconfigFor(twinAccount, { expirationSeconds });
  const of = { user: userOf(twinAccount), file, kubeconfig };
  return [twin('tuned', of), twin('plain', of)];
}

function userOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

const SERVICE_ACCOUNTS: ResourceType = {
  ...{ apiVersion: 'v1', kind: 'ServiceAccount', plural: 'serviceaccounts', scope: 'Namespaced' },
};
const CLUSTER_ROLES: ResourceType = {
  ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', plural: 'clusterroles', scope: 'Cluster' },
};
const CLUSTER_ROLE_BINDINGS: ResourceType = {
  ...CLUSTER_ROLES,
  ...{ kind: 'ClusterRoleBinding', plural: 'clusterrolebindings' },
};

/** The ServiceAccount of the twins. */
const twinAccount = { namespace: 'default', name: 'bench-twin' } as const;

const options = { fieldManager: 'bench' };
const metadata = { name: twinAccount.name };

/** Creates the twins' ServiceAccount with the permissions of a scaffolded operator. */
async function makeTwinAccount(client: ApiClient): Promise<void> {
  const { type } = HelloApp;
  const [group = ''] = HelloApp.apiVersion.split('/');
  const reads = ['get', 'list', 'watch'];
  const rules = [
    { apiGroups: [group], resources: [type.plural], verbs: reads },
    { apiGroups: [group], resources: [`${type.plural}/status`], verbs: ['get', 'patch', 'update'] },
    { apiGroups: [group], resources: [`${type.plural}/finalizers`], verbs: ['update'] },
    { apiGroups: ['apps'], resources: ['deployments'], verbs: [...reads, 'create', 'patch', 'update', 'delete'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: [...reads, 'create', 'patch', 'update'] },
    { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  ];
  const role: KubeObject = { ...identity(CLUSTER_ROLES), metadata, rules };
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: metadata.name };
  const subjects = [{ kind: 'ServiceAccount', ...twinAccount }];
  await client.create(SERVICE_ACCOUNTS, { ...identity(SERVICE_ACCOUNTS), metadata: twinAccount }, options);
  await client.create(CLUSTER_ROLES, role, options);
  const binding: KubeObject = { ...identity(CLUSTER_ROLE_BINDINGS), metadata, roleRef, subjects };
  await client.create(CLUSTER_ROLE_BINDINGS, binding, options);
}

function identity({ apiVersion, kind }: ResourceType): Pick<KubeObject, 'apiVersion' | 'kind'> {
  return { apiVersion, kind };
}

/** CPU usage below which the machine counts as idle, as a share of all its cores. */
const calmShare = 0.2;
const lookMs = 500;
/** Checks after which the wait ends anyway, since other programs may use the machine all the time. */
const patienceLooks = 10;

/** CPU time of all cores since the machine's start. */
export interface Ticks {
  readonly idle: number;
  readonly all: number;
}

/**
 * Waits until the machine is nearly idle, for a few seconds at most: the server still sends the last changes
 * to watchers and cleans up, at the expense of the next measurement.
 */
export async function waitForIdleMachine(read: () => Ticks = ticks, pauseMs = lookMs): Promise<void> {
  let before = read();
  for (let looks = 0; looks < patienceLooks; looks += 1) {
    await delay(pauseMs);
    const now = read();
    const busy = 1 - (now.idle - before.idle) / (now.all - before.all);
    if (busy <= calmShare) return;
    before = now;
  }
}

function ticks(): Ticks {
  const sums = { idle: 0, all: 0 };
  for (const { times } of cpus()) {
    sums.idle += times.idle;
    sums.all += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return sums;
}
