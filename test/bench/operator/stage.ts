import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HelloApp } from '../../../constructs/kinds';
import { startControlPlane } from '../../../local';
import type { AuditEvent, ControlPlane } from '../../../local';
import { adminClient, operatorBundle } from '../../../operator/testing';
import type { ApiClient } from '../../../operator/src/client/api-client';
import { installOnApi } from '../../e2e/operator/many-platform';
import { auditedWrites } from './audited-writes';
import type { AuditedWrites } from './audited-writes';
import { MeasuredOperator } from './measured-operator';

/** What a stage is made of. */
interface Props {
  readonly plane: ControlPlane;
  readonly client: ApiClient;
  readonly user: string;
  readonly kubeconfig: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly bundle: string;
  readonly signal: AbortSignal;
}

/** A control plane with the platform on it, and the bundle that is measured. */
export class Stage {
  private seen = 0;

  private constructor(private readonly props: Props) {}

  /** Builds the operator if need be, and keeps a copy: the sources may change while it is measured. */
  static async set(signal: AbortSignal): Promise<Stage> {
    const built = await operatorBundle();
    const folder = await mkdtemp(join(tmpdir(), 'kindred-bench-'));
    let plane: ControlPlane | undefined;
    try {
      const bundle = join(folder, 'operator.cjs');
      await copyFile(built, bundle);
      plane = await startControlPlane({ components: 'api', signal });
      const { account, args } = await installOnApi(plane, [HelloApp]);
      const kubeconfig = await plane.kubeconfigFor(account, { expirationSeconds: 6 * 3600 });
      const client = await adminClient(plane.adminKubeconfig);
      const user = `system:serviceaccount:${account.namespace}:${account.name}`;
      return new Stage({ plane, client, user, kubeconfig, args, folder, bundle, signal });
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

  /** Who the operator is. */
  get kubeconfig(): string {
    return this.props.kubeconfig;
  }

  /** What the API server says it is. */
  get kubernetes(): string {
    return this.props.plane.version;
  }

  /** Starts the operator with the command line of its Deployment. */
  operator(concurrency: number): MeasuredOperator {
    const { bundle, args, kubeconfig, signal } = this.props;
    return MeasuredOperator.start(
      bundle,
      [...args, `--kubeconfig=${kubeconfig}`, `--concurrency=${String(concurrency)}`],
      signal,
    );
  }

  /** What the operator's account has written since this was asked last. */
  async writes(): Promise<AuditedWrites> {
    const log: readonly AuditEvent[] = await this.props.plane.auditLog();
    const since = log.slice(this.seen);
    this.seen = log.length;
    return auditedWrites(since, this.props.user);
  }

  /** Ends everything and removes what it has left on the disk. */
  async clear(): Promise<void> {
    await this.client.close();
    await this.props.plane.stop();
    await rm(this.props.folder, { recursive: true, force: true });
  }
}
