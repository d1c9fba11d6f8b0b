import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { HelloApp } from '../constructs/kinds';
import type { KubeObject } from '../constructs/kube/kube-object';
import type { ResourceType } from '../constructs/kube/resource-type';
import { startControlPlane, type ControlPlane } from '../local';
import type { ApiClient } from '../operator/client/api-client';
import { adminClient, operatorBundle } from '../testing';
import { installWithoutControllers } from '../testing/install-platform';
import { AuditLogTail, summarizeAudit, type AuditSummary } from './audit';
import type { BareAccess } from './bare-loop';
import { bareAccess, bareBundle, sendBare, type RequestPair } from './bare-requests';
import { kindred, podEnv, twin, twins, type OperatorUnderTest } from './operators-under-test';
import { MeasuredProcess, type Program } from './measured-process';
import type { Usage } from './results';

/** The longest that a benchmark runs. */
const expirationSeconds = 6 * 3600;

/** What a stage is made of. */
interface BenchEnvProps {
  readonly plane: ControlPlane;
  readonly client: ApiClient;
  readonly audit: AuditLogTail;
  readonly bare: { readonly bundle: string; readonly access: BareAccess; readonly concurrency: number };
  readonly contestants: readonly OperatorUnderTest[];
  readonly skipped: readonly string[];
  readonly folder: string;
}

/** What is asked of a running operator. */
export type MeasuredOperator = Pick<
  MeasuredProcess,
  'startedAt' | 'gone' | 'reconciling' | 'settled' | 'work' | 'usage' | 'stop'
>;

/** What the measuring needs of a stage. */
export type BenchContext = Pick<BenchEnv, 'client' | 'contestants' | 'requests' | 'start' | 'send' | 'calm'>;

/** A control plane with the platform on it, and the operators that are measured. */
export class BenchEnv {
  private constructor(private readonly props: BenchEnvProps) {}

  /** Builds the operator if need be, and keeps a copy: the sources may change while it is measured. */
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
      const { account, args: own } = await installWithoutControllers(plane, [HelloApp]);
      const kubeconfig = await plane.kubeconfigFor(account, { expirationSeconds });
      const client = await adminClient(plane.adminKubeconfig);
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

  /** The administrator's requests. */
  get client(): ApiClient {
    return this.props.client;
  }

  /** The operators that could be had. */
  get contestants(): readonly OperatorUnderTest[] {
    return this.props.contestants;
  }

  /** What could not be had, and why. */
  get skipped(): readonly string[] {
    return this.props.skipped;
  }

  /** What the API server says it is. */
  get kubernetes(): string {
    return this.props.plane.version;
  }

  /** What an account has asked for since anybody's requests were read last. */
  async requests(user: string): Promise<AuditSummary> {
    return summarizeAudit(await this.props.audit.since(user), user);
  }

  /** Starts an operator. */
  start(program: Program, signal: AbortSignal): MeasuredOperator {
    return MeasuredProcess.start(program, signal);
  }

  /** Sends prepared requests in our operator's name, from a process that is started as our operator is; @returns what that used */
  send(pairs: readonly RequestPair[], signal: AbortSignal): Promise<Usage> {
    return sendBare(pairs, { ...this.props.bare, env: podEnv(pairs.length), signal });
  }

  /** Waits until the machine has little to do. */
  calm(): Promise<void> {
    return waitForIdleMachine();
  }

  /** Ends everything and removes what it has left on the disk. */
  async close(): Promise<void> {
    await this.client.close();
    await this.props.plane.stop();
    await rm(this.props.folder, { recursive: true, force: true });
  }
}

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

/** Who the twins are. */
const twinAccount = { namespace: 'default', name: 'bench-twin' } as const;

const options = { fieldManager: 'bench' };
const metadata = { name: twinAccount.name };

/** Makes the twins' ServiceAccount, with what a scaffolded operator may do. */
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

/** How busy the machine may be to be called calm, as a share of all its cores. */
const calmShare = 0.2;
const lookMs = 500;
/** Others may use the machine all the time; then a pause must do. */
const patienceLooks = 10;

/** Ticks of all cores since the machine's start. */
export interface Ticks {
  readonly idle: number;
  readonly all: number;
}

/**
 * Waits until the machine has little to do, for some seconds at most: what was just deleted or written is still being told to watchers and
 * cleaned up by the server, and whoever comes next would pay for it.
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
