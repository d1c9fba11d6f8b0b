import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeObject } from '../constructs/kube/kube-object';
import type { ResourceType } from '../constructs/kube/resource-type';
import { messageOf } from '../local/assets/errors';
import { RunFolder } from '../local/run-folder';
import type { ApiClient } from '../operator/client/api-client';
import { createApiClient } from '../operator/client/http-api-client';
import { clusterEntry, loadClusterAccess } from '../operator/client/kubeconfig';
import { leaseType, recordOf } from '../operator/leader/lease';
import type { DevCluster } from './dev-cluster';
import { CliError, InterruptedError } from './errors';
import type { LocalPlatform } from './local-platform';
import { untilAborted } from './shutdown';

/** How a cluster is reached. */
interface ExistingClusterOptions {
  /** A context of the kubeconfig. */
  readonly context: string;
  /** Go on without asking, wherever the cluster is. */
  readonly yes: boolean;
  readonly print: (line: string) => void;
}

/** A cluster that exists, reached by a context of the user's kubeconfig. */
export class ExistingCluster implements DevCluster {
  readonly failed = new Promise<never>(() => undefined);
  readonly kubeconfig = undefined;
  readonly deployments = 'its Deployment is left as it is';
  private readonly tokens: NodeJS.Timeout[] = [];

  private constructor(
    private readonly options: ExistingClusterOptions,
    /** With the user's own credentials. */
    readonly client: ApiClient,
    private readonly cluster: ReturnType<typeof clusterEntry>,
    private readonly run: RunFolder,
  ) {}

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

  /**
   * Whether the platform may be installed here, before anything is.
   *
   * @throws CliError when the user lacks a permission, or an operator of the platform runs here already
   */
  async assertReady({ namespace, operators }: LocalPlatform, signal: AbortSignal): Promise<void> {
    await this.assertPermissions(namespace, signal);
    for (const { operator, serviceAccount, leaseName } of operators) {
      const holder = leaseName === undefined ? undefined : await this.holderOf(leaseName, namespace, signal);
      if (holder === undefined) continue;
      throw new CliError(
        `the operator ${operator.name} runs in the cluster of context ${this.context} already: ${holder} holds the Lease ${namespace}/${leaseName ?? ''}. ` +
          `Two must not write. End it meanwhile, be it another kindred dev or its Deployment: kubectl --context=${this.context} -n ${namespace} scale deployment ${serviceAccount.name} --replicas=0`,
      );
    }
  }

  /**
   * A kubeconfig with nothing but a ServiceAccount's token, which is renewed until `stop`.
   *
   * @returns its path
   */
  async kubeconfigFor(account: { readonly namespace: string; readonly name: string }): Promise<string> {
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
    for (const timer of this.tokens) clearTimeout(timer);
    await this.client.close();
    this.run.remove();
  }

  private async assertPermissions(namespace: string, signal: AbortSignal): Promise<void> {
    for (const { resource, ...needed } of neededPermissions(namespace)) {
      const review: KubeObject = {
        ...{ apiVersion: accessReviewType.apiVersion, kind: accessReviewType.kind, metadata: { name: '' } },
        spec: { resourceAttributes: { ...needed, resource } },
      };
      const { status } = await this.client.create(accessReviewType, review, { fieldManager, signal });
      if ((status as { readonly allowed?: boolean } | undefined)?.allowed === true) continue;
      throw new CliError(
        `the user of context ${this.context} may not ${needed.verb} ${[resource, needed.subresource].filter(Boolean).join('/')}, and dev installs CRDs, permissions and a namespace. ` +
          'Take a context with these rights, or leave --context out: then there is a control plane on this machine',
      );
    }
  }

  /** Who holds a Lease, if anybody renews it. */
  private async holderOf(name: string, namespace: string, signal: AbortSignal): Promise<string | undefined> {
    const read = async () => {
      const lease = await this.client.get(leaseType, { name, namespace }, { signal });
      return lease === undefined ? undefined : recordOf(lease);
    };
    const first = await read();
    // As a candidate does: by our own clock, since the holder's may differ.
    const seconds = first?.leaseDurationSeconds ?? 15;
    const deadline = Date.now() + seconds * 1000;
    if ((first?.holderIdentity ?? '') !== '')
      this.options.print(
        `Looking for up to ${seconds} s whether ${first?.holderIdentity ?? ''} still holds the Lease ${namespace}/${name}`,
      );
    for (let seen = first; seen !== undefined && seen.holderIdentity !== ''; seen = await read()) {
      if (seen.renewTime !== first?.renewTime) return seen.holderIdentity;
      if (Date.now() > deadline) return undefined;
      await delay(leasePollMs, undefined, { signal });
    }
    return undefined;
  }

  private async writeToken(
    account: { readonly namespace: string; readonly name: string },
    file: string,
  ): Promise<void> {
    const type: ResourceType = {
      ...{ apiVersion: 'v1', kind: 'TokenRequest', scope: 'Namespaced' },
      plural: `serviceaccounts/${account.name}/token`,
    };
    const body: KubeObject = {
      ...{ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: account },
      spec: { expirationSeconds: tokenSeconds },
    };
    const { spec, status } = (await this.client.create(type, body, { fieldManager })) as TokenRequest;
    this.run.write(file, status.token);
    // A server may give another lifetime than it was asked for.
    this.renewTokenIn(spec.expirationSeconds * renewalFraction, account, file);
  }

  private renewTokenIn(
    seconds: number,
    account: { readonly namespace: string; readonly name: string },
    file: string,
  ): void {
    const timer = setTimeout(() => {
      this.writeToken(account, file).catch((error: unknown) => {
        this.options.print(`The token of the operator cannot be renewed; trying again: ${messageOf(error)}`);
        this.renewTokenIn(renewalRetrySeconds, account, file);
      });
    }, seconds * 1000);
    this.tokens.push(timer.unref());
  }
}

interface TokenRequest extends KubeObject {
  readonly spec: { readonly expirationSeconds: number };
  readonly status: { readonly token: string };
}

/** Lifetime of the operators' tokens that is asked for, in seconds. */
const tokenSeconds = 3600;
/** The part of a token's lifetime after which it is renewed. */
const renewalFraction = 0.8;
const renewalRetrySeconds = 15;
/** Pause between two looks at a Lease, in milliseconds. Holders renew every two seconds. */
const leasePollMs = 250;
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
  readonly namespace?: string;
}

/** What it takes to install a platform and to run its operator. */
const neededPermissions = (namespace: string): readonly Permission[] => [
  { verb: 'create', group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions' },
  { verb: 'patch', group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions' },
  { verb: 'create', group: 'rbac.authorization.k8s.io', resource: 'clusterroles' },
  { verb: 'create', group: 'rbac.authorization.k8s.io', resource: 'clusterrolebindings' },
  { verb: 'create', group: '', resource: 'namespaces' },
  { verb: 'create', group: '', resource: 'serviceaccounts', subresource: 'token', namespace },
];

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
