import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { KubeObject } from '../constructs/kube/kube-object';
import { startControlPlane, type ControlPlane } from '../local';
import type { CertificateAuthority } from '../local/certificates';
import { describeExit } from '../local/guarded-process';
import type { ApiClient } from '../operator/client/api-client';
import { createApiClient } from '../operator/client/http-api-client';
import { loadClusterAccess } from '../operator/client/kubeconfig';
import type { DevArguments } from './dev-arguments';
import { DevConversion, noConversion, type ServedConversion } from './dev-conversion';
import { CliError } from './errors';
import { installPlatform } from './install-platform';
import type { LocalPlatform } from './local-platform';
import type { View } from './view';

/** The cluster on which `kindred dev` installs the platform. */
export interface DevCluster {
  /** With the rights of an administrator. */
  readonly client: ApiClient;
  /** Folder of what this process writes. It is removed by `stop`. */
  readonly dataDir: string;
  /** Rejects when the cluster breaks down, if this process runs it. */
  readonly failed: Promise<never>;
  /** The text of an administrator's kubeconfig; undefined: the cluster is not this process's. */
  readonly kubeconfig: string | undefined;
  /** How the user calls kubectl, and what has to be done before in another terminal. */
  readonly kubectl: { readonly command: string; readonly before: string | undefined };
  /** Whether objects that the platform no longer has are deleted. False where others may have installed the same objects. */
  readonly prunes: boolean;
  /** What became of the operators' Deployments. */
  readonly deployments: string;
  /** Until when it is there. */
  readonly lifetime: string;
  /** For whom operators are to keep their Leases: `--lease-preferred`. @default for nobody */
  readonly preferred?: string;
  /** Gives a Lease up that this process holds for an operator. @default it holds none */
  readonly handOver?: (leaseName: string) => Promise<void>;
  /**
   * Has the API server convert objects of the platform's kinds, from now on, if any has several versions.
   *
   * @returns the platform's objects as they are to be installed
   */
  serveConversion(platform: LocalPlatform): Promise<ServedConversion>;
  /** Writes a kubeconfig of a ServiceAccount. @returns its path */
  kubeconfigFor(account: { readonly namespace: string; readonly name: string }): Promise<string>;
  stop(): Promise<void>;
}

/**
 * Installs a platform on a cluster, and says what its CRDs break. Conversions are served before the CRDs are there, since the API server asks
 * at once.
 *
 * @returns the objects that were applied
 * @throws CliError naming the object that the server rejects
 */
export async function installOn(
  cluster: DevCluster,
  platform: LocalPlatform,
  { view, signal }: { readonly view: View; readonly signal: AbortSignal },
): Promise<readonly KubeObject[]> {
  const { objects, accept, reject } = await cluster.serveConversion(platform);
  try {
    const { applied } = await installPlatform({
      ...{ client: cluster.client, objects, namespace: platform.namespace, signal },
      prunes: cluster.prunes,
      onBreakingChanges: (text) => view.print(text),
    });
    accept();
    return applied;
  } catch (error) {
    reject();
    throw error;
  }
}

/** Lifetime of the operators' tokens, in seconds. It is longer than a session, since nobody renews them. */
const tokenSeconds = 7 * 24 * 3600;

/** What a {@link LocalCluster} is started with. */
interface LocalClusterOptions {
  readonly args: DevArguments;
  readonly view: View;
  readonly signal: AbortSignal;
  /** Signs the certificate of the conversion webhook. */
  readonly authority: CertificateAuthority;
}

/** A control plane on this machine, which ends with this process. */
export class LocalCluster implements DevCluster {
  readonly prunes = true;
  readonly deployments = 'its Deployment is installed with 0 replicas, since pods are only pretended here';
  readonly lifetime = 'The control plane stays until Ctrl-C. In another terminal:';
  readonly failed: Promise<never>;
  private readonly conversion: DevConversion;

  private constructor(
    readonly plane: ControlPlane,
    readonly client: ApiClient,
    readonly kubeconfig: string,
    private readonly options: LocalClusterOptions,
  ) {
    this.failed = rejectOnPartExit(plane);
    const { authority, view } = options;
    this.conversion = new DevConversion({ authority, folder: plane.dataDir, print: (line) => view.print(line) });
  }

  /** @throws LocalControlPlaneError when it does not start */
  static async start(options: LocalClusterOptions): Promise<LocalCluster> {
    const { args, view, signal } = options;
    const plane = await startControlPlane({
      components: 'full',
      nodes: args.pods ? 1 : 0,
      ...(args.port === undefined ? {} : { port: args.port }),
      onProgress: (line) => view.print(line),
      signal,
    });
    const client = createApiClient(loadClusterAccess({ path: plane.adminKubeconfig }));
    return new LocalCluster(plane, client, await readFile(plane.adminKubeconfig, 'utf8'), options);
  }

  get dataDir(): string {
    return this.plane.dataDir;
  }

  get kubectl(): DevCluster['kubectl'] {
    return { command: 'kubectl', before: `export KUBECONFIG=${this.plane.adminKubeconfig}` };
  }

  serveConversion(platform: LocalPlatform): Promise<ServedConversion> {
    // Operators in pods do it themselves, as everywhere.
    return this.options.args.pods ? Promise.resolve(noConversion(platform)) : this.conversion.serve(platform);
  }

  async kubeconfigFor(account: { readonly namespace: string; readonly name: string }): Promise<string> {
    return this.plane.kubeconfigFor(account, { expirationSeconds: tokenSeconds });
  }

  async stop(): Promise<void> {
    try {
      await this.client.close();
      await this.plane.stop();
    } finally {
      await this.conversion.stop();
    }
  }
}

/** Rejects when a part of the control plane ends unexpectedly. */
function rejectOnPartExit(plane: ControlPlane): Promise<never> {
  const failure = new Promise<never>((_, reject) => {
    plane.onPartExit((exit) => {
      const log = path.join(plane.dataDir, `${exit.part}.log`);
      reject(
        new CliError(`the control plane broke down: ${describeExit(exit, log)}\nRun it again; report it if it recurs.`),
      );
    });
  });
  failure.catch(() => undefined);
  return failure;
}
