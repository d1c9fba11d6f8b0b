import { createInterface } from 'node:readline';
import { hasEffects } from '../constructs/kind/kind';
import type { KubeObject } from '../constructs/kube/kube-object';
import { groupOf, type ResourceType } from '../constructs/kube/resource-type';
import { messageOf } from '../local/assets/errors';
import { RunFolder } from '../local/run-folder';
import type { ApiClient } from '../operator/client/api-client';
import { ApiError } from '../operator/client/errors';
import { createApiClient } from '../operator/client/http-api-client';
import { clusterEntry, loadClusterAccess } from '../operator/client/kubeconfig';
import { RestMapper } from '../operator/client/rest-mapper';
import { LeaderElector } from '../operator/leader/leader-election';
import { leaseType, processIdentity, withdrawPreference } from '../operator/leader/lease';
import { createLogger } from '../operator/process/logger';
import { withTimeout } from '../operator/process/wait';
import type { DevCluster } from './dev-cluster';
import { noConversion, type ServedConversion } from './dev-conversion';
import { CliError, InterruptedError } from './errors';
import type { LocalOperator, LocalPlatform } from './local-platform';
import { objectName, resourceTypeOf } from './objects';
import { untilAborted } from './shutdown';

/** How a cluster is reached. */
interface ExistingClusterOptions {
  /** A context of the kubeconfig. */
  readonly context: string;
  /** Go on without asking, wherever the cluster is. */
  readonly yes: boolean;
  readonly print: (line: string) => void;
  /** How long an operator may take to give its Lease up, in milliseconds. @default 45000 */
  readonly giveUpTimeoutMs?: number;
}

/** A cluster that exists, reached by a context of the user's kubeconfig. */
export class ExistingCluster implements DevCluster {
  readonly failed: Promise<never>;
  readonly kubeconfig = undefined;
  readonly prunes = false;
  readonly deployments = 'its Deployment is left as it is';
  readonly preferred = `kindred-dev-${processIdentity()}`;
  /** Their accounts by their files, and when to renew them, by `Date.now()`. */
  private readonly tokens = new Map<string, { readonly account: Account; readonly renewAt: number }>();
  private readonly renewal: NodeJS.Timeout;
  private stopped = false;
  private readonly leases = new Map<string, { readonly elector: LeaderElector; readonly namespace: string }>();
  private fail: (error: Error) => void = () => undefined;

  private constructor(
    private readonly options: ExistingClusterOptions,
    /** With the user's own credentials. */
    readonly client: ApiClient,
    private readonly cluster: ReturnType<typeof clusterEntry>,
    private readonly run: RunFolder,
  ) {
    this.failed = new Promise<never>((_, reject) => (this.fail = reject));
    this.failed.catch(() => undefined);
    this.renewal = setInterval(() => void this.renewTokens(), renewalCheckMs).unref();
  }

  /**
   * Finds the cluster as kubectl does: in the files of KUBECONFIG, or in ~/.kube/config. Whoever is at a terminal is asked before a
   * cluster is touched that is not on this machine; elsewhere `yes` must have been said.
   *
   * @throws KubeconfigError when there is no such context; CliError when the user does not consent
   */
  static async find(options: ExistingClusterOptions, signal: AbortSignal): Promise<ExistingCluster> {
    const { context } = options;
    const cluster = clusterEntry({ context });
    await assertConsent(cluster.server, options, signal);
    const client = createApiClient(loadClusterAccess({ context }));
    return new ExistingCluster(options, client, cluster, await RunFolder.create());
  }

  private get context(): string {
    return this.options.context;
  }

  get kubectl(): DevCluster['kubectl'] {
    return { command: `kubectl --context=${this.context}`, before: undefined };
  }

  get lifetime(): string {
    return 'Until Ctrl-C the operator runs. CRDs, permissions and samples stay in the cluster after that. In another terminal:';
  }

  /** Folder of what this process writes. It is removed by `stop`. */
  get dataDir(): string {
    return this.run.path;
  }

  /** Its objects are as they are: those of kinds of several versions are refused before. */
  serveConversion(platform: LocalPlatform): Promise<ServedConversion> {
    return Promise.resolve(noConversion(platform));
  }

  /**
   * Takes the Leases of a platform's operators. Those that run in the cluster are asked to give them up: they end their work and
   * wait. Until `handOver` this process holds the Leases, and nobody reconciles.
   *
   * @param which - with `existing`, a Lease that there is not yet is left out: its namespace may be missing too
   * @throws CliError when one is not given up
   */
  async takeLeases(
    { namespace, operators }: LocalPlatform,
    { which, signal }: { readonly which: 'existing' | 'all'; readonly signal: AbortSignal },
  ): Promise<void> {
    for (const operator of operators) {
      const { leaseName: name } = operator;
      if (name === undefined || this.leases.has(name)) continue;
      if (which === 'all' || (await this.client.get(leaseType, { name, namespace }, { signal })) !== undefined)
        await this.takeLease(name, { operator, namespace, signal });
    }
  }

  readonly handOver = async (leaseName: string): Promise<void> => {
    await this.leases.get(leaseName)?.elector.stop();
  };

  /** Lets anybody have the Leases, without the wait for an operator of ours that will not come. */
  private async releaseLeases(): Promise<void> {
    for (const [name, { elector, namespace }] of this.leases) {
      await elector.stop();
      await withdrawPreference(this.client, { name, namespace }, this.preferred, { fieldManager }).catch(
        (error: unknown) =>
          this.options.print(
            `The Lease ${namespace}/${name} is kept for this command for ${leaseSeconds} s yet: ${messageOf(error)}`,
          ),
      );
    }
  }

  /**
   * A kubeconfig with nothing but a ServiceAccount's token, which is renewed until `stop`.
   *
   * @returns its path
   */
  async kubeconfigFor(account: Account): Promise<string> {
    const user = `${account.namespace}.${account.name}`;
    const tokenFile = `tokens/${user}`;
    await this.writeToken(account, tokenFile);
    return this.run.write(
      `kubeconfigs/${user}.json`,
      JSON.stringify({
        ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'operator' },
        clusters: [{ name: 'cluster', cluster: this.cluster }],
        users: [{ name: 'operator', user: { tokenFile: this.run.file(tokenFile) } }],
        contexts: [
          { name: 'operator', context: { cluster: 'cluster', user: 'operator', namespace: account.namespace } },
        ],
      }),
    );
  }

  /** Closes connections, and removes what was written. The cluster stays as it is. */
  async stop(): Promise<void> {
    this.stopped = true;
    clearInterval(this.renewal);
    await this.releaseLeases();
    await this.client.close();
    this.run.remove();
  }

  /**
   * Whether a platform can be installed as the user, before anything is changed.
   *
   * @throws CliError when a right is missing, or the operator is installed in another namespace, whose permissions would be taken away
   */
  async assertInstallable(
    { namespace, samplesNamespace, objects, sampledKinds }: LocalPlatform,
    signal: AbortSignal,
  ): Promise<void> {
    const types = new RestMapper(this.client);
    const resources = await Promise.all(
      objects.map(async (object) => ({ object, type: await resourceTypeOf(types, object) })),
    );
    const needed = new Map<string, Permission>();
    const need = (permission: Permission): void => void needed.set(JSON.stringify(permission), permission);
    for (const { object, type } of resources) {
      const at = { group: groupOf(type), resource: type.plural, namespace: object.metadata.namespace ?? '' };
      for (const verb of ['create', 'patch']) need({ verb, ...at });
    }
    for (const { type } of sampledKinds) {
      const at = type.scope === 'Cluster' ? '' : samplesNamespace;
      for (const verb of ['create', 'patch'])
        need({ verb, group: groupOf(type), resource: type.plural, namespace: at });
    }
    for (const verb of ['get', 'create', 'update'])
      need({ verb, group: groupOf(leaseType), resource: leaseType.plural, namespace });
    need({ verb: 'create', group: '', resource: 'serviceaccounts', subresource: 'token', namespace });
    const reviews = Promise.all([...needed.values()].map((one) => this.problemOf(one)));
    // Whichever is answered first, the first in order is told.
    const missing = (await untilAborted(reviews, signal)).find((problem) => problem !== undefined);
    if (missing !== undefined) throw new CliError(missing);
    for (const { object, type } of resources) {
      if (groupOf(type) !== 'rbac.authorization.k8s.io' || type.scope !== 'Cluster') continue;
      await this.assertOwnNamespace(object, type, namespace, signal);
      // The server refuses whoever would give more rights than they have. A binding's role may be missing yet.
      if (object.kind !== 'ClusterRole') continue;
      await this.client.apply(type, object, { fieldManager, dryRun: true, signal }).catch((cause: unknown) => {
        if (!(cause instanceof ApiError)) throw cause;
        throw new CliError(
          `${objectName(object)} cannot be installed: ${cause.message.replaceAll(/\s+/g, ' ')}. ${advice}`,
          { cause },
        );
      });
    }
  }

  private async assertOwnNamespace(
    { kind, metadata }: KubeObject,
    type: ResourceType,
    namespace: string,
    signal: AbortSignal,
  ): Promise<void> {
    if (kind !== 'ClusterRoleBinding') return;
    const live = await this.client.get(type, { name: metadata.name }, { signal });
    const subjects = (live?.['subjects'] ?? []) as readonly { readonly namespace?: string }[];
    const other = subjects.find((subject) => subject.namespace !== undefined && subject.namespace !== namespace);
    if (other === undefined) return;
    throw new CliError(
      `the operator is installed in the namespace ${other.namespace ?? ''} of the cluster of context ${this.context} (ClusterRoleBinding ${metadata.name}), ` +
        `and would lose its permissions to one in ${namespace}. Take the same namespace: --operator-namespace=${other.namespace ?? ''}`,
    );
  }

  /** @returns why the user lacks a right; undefined: they have it */
  private async problemOf({ namespace, ...needed }: Permission): Promise<string | undefined> {
    const review: KubeObject = {
      ...{ apiVersion: accessReviewType.apiVersion, kind: accessReviewType.kind, metadata: { name: '' } },
      spec: { resourceAttributes: { ...needed, ...(namespace !== '' && { namespace }) } },
    };
    const { status } = await this.client.create(accessReviewType, review, { fieldManager });
    if ((status as { readonly allowed?: boolean } | undefined)?.allowed === true) return undefined;
    const { verb, group, resource, subresource } = needed;
    const what = [resource, subresource].filter(Boolean).join('/') + (group === '' ? '' : `.${group}`);
    const where = namespace === '' ? '' : ` in the namespace ${namespace}`;
    return `the user of context ${this.context} may not ${verb} ${what}${where}. ${advice}`;
  }

  private async takeLease(
    name: string,
    {
      operator: { operator, serviceAccount },
      namespace,
      signal,
    }: { readonly operator: LocalOperator; readonly namespace: string; readonly signal: AbortSignal },
  ): Promise<void> {
    const { context, print, giveUpTimeoutMs = defaultGiveUpTimeoutMs } = this.options;
    let holder: string | undefined;
    let problem: string | undefined;
    const write = (line: string): void => void (problem = (JSON.parse(line) as LoggedProblem).err?.message);
    const elected = new Promise<'elected'>((resolve) => {
      const elector = new LeaderElector({
        ...{ client: this.client, leaseName: name, namespace, preferred: this.preferred, fieldManager },
        logger: createLogger({ level: 'warn', destination: { write } }),
        onElected: () => resolve('elected'),
        onLost: (cause) => this.fail(new CliError(`${cause.message}. Start it again`, { cause })),
        onNewLeader: (identity) => {
          holder = identity;
          print(`Waiting for ${identity} to give up the Lease ${namespace}/${name}.`);
        },
      });
      this.leases.set(name, { elector, namespace });
      elector.start();
    });
    const milliseconds = giveUpTimeoutMs;
    const inTime = withTimeout(untilAborted(elected, signal), { milliseconds, onTimeout: () => 'too late' as const });
    if ((await inTime) === 'elected') return;
    const why =
      holder === undefined
        ? `the Lease ${namespace}/${name} in the cluster of context ${context} cannot be taken: ${problem ?? 'the API server does not answer'}`
        : `${holder} does not give up the Lease ${namespace}/${name} in the cluster of context ${context}: it is another kindred dev, or an operator of an earlier version. ` +
          `Two must not write, so end it, for example: kubectl --context=${context} -n ${namespace} scale deployment ${serviceAccount.name} --replicas=0`;
    if (holder === undefined || !hasEffects(operator.kinds)) throw new CliError(why);
    // Or it lets steps finish that it does outside of Kubernetes, however long they take.
    print(`Still waiting. If ${why}`);
    await untilAborted(elected, signal);
  }

  private async writeToken(account: Account, file: string): Promise<void> {
    const type: ResourceType = {
      ...{ apiVersion: 'v1', kind: 'TokenRequest', scope: 'Namespaced' },
      plural: `serviceaccounts/${account.name}/token`,
    };
    const body: KubeObject = {
      ...{ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: account },
      spec: { expirationSeconds: tokenSeconds },
    };
    const began = Date.now();
    const { spec, status } = (await this.client.create(type, body, { fieldManager })) as TokenRequest;
    if (this.stopped) return;
    this.run.write(file, status.token);
    // A server may give another lifetime than it was asked for.
    this.tokens.set(file, { account, renewAt: began + spec.expirationSeconds * 1000 * renewalFraction });
  }

  /** By the wall clock, which goes on while the machine is suspended. */
  private async renewTokens(): Promise<void> {
    for (const [file, { account, renewAt }] of this.tokens) {
      if (Date.now() < renewAt) continue;
      await this.writeToken(account, file).catch((error: unknown) => {
        if (!this.stopped)
          this.options.print(`The token of the operator cannot be renewed; trying again: ${messageOf(error)}`);
      });
    }
  }
}

type Account = Parameters<DevCluster['kubeconfigFor']>[0];

/** A line of the log of an election. */
interface LoggedProblem {
  readonly err?: { readonly message?: string };
}

interface TokenRequest extends KubeObject {
  readonly spec: { readonly expirationSeconds: number };
  readonly status: { readonly token: string };
}

/** Lifetime of the operators' tokens that is asked for, in seconds. */
const tokenSeconds = 3600;
/** The part of a token's lifetime after which it is renewed. */
const renewalFraction = 0.8;
/** How often it is looked whether a token is to be renewed, in milliseconds. */
const renewalCheckMs = 15_000;
/** How long an operator may take to give its Lease up: it finishes reconciles in flight within 25 s by itself. */
const defaultGiveUpTimeoutMs = 45_000;
/** How long others wait for whom a Lease is kept. Source: the default of LeaderElector. */
const leaseSeconds = 15;
const fieldManager = 'kindred-cli';

const accessReviewType: ResourceType = {
  ...{ apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview' },
  ...{ plural: 'selfsubjectaccessreviews', scope: 'Cluster' },
};

interface Permission {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  /** Empty: in the whole cluster. */
  readonly namespace: string;
}

const advice =
  'Take a context with the rights to install CRDs, permissions and an operator, or leave --context out: then there is a control plane on this machine';

/** @throws CliError when the server is elsewhere and nobody has said that it is meant; the abort reason */
async function assertConsent(
  server: string,
  { context, yes }: ExistingClusterOptions,
  signal: AbortSignal,
): Promise<void> {
  if (yes || isOnThisMachine(server)) return;
  const what = `context ${context} is ${server}, which is not on this machine. dev installs CRDs and permissions there, and runs the operator against it`;
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    throw new CliError(`${what}. If that is meant, add --yes`);
  }
  const answer = await ask(`${what[0]?.toUpperCase() ?? ''}${what.slice(1)}. Go on? [y/N] `, signal);
  if (!/^y(es)?$/i.test(answer.trim())) throw new CliError('nothing was changed');
}

/** What the user answers at the terminal; nothing when the input ends. @throws InterruptedError at Ctrl-C; the abort reason */
async function ask(question: string, signal: AbortSignal): Promise<string> {
  const prompt = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return await untilAborted(
      new Promise<string>((resolve, reject) => {
        prompt.once('line', resolve);
        prompt.once('close', () => resolve(''));
        // At a terminal that readline reads, Ctrl-C is a key.
        prompt.once('SIGINT', () => reject(new InterruptedError('SIGINT')));
        prompt.setPrompt(question);
        prompt.prompt();
      }),
      signal,
    );
  } finally {
    prompt.close();
  }
}

/**
 * Whether a server listens on this machine, as those of kind, k3d and Docker Desktop do.
 *
 * @testonly
 */
export function isOnThisMachine(server: string): boolean {
  const host = new URL(server).hostname.replace(/^\[|\]$/g, '');
  return /^(localhost|.+\.localhost|127(\.\d{1,3}){3}|0\.0\.0\.0|::1|kubernetes\.docker\.internal)$/.test(host);
}
