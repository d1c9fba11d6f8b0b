import type { Bench } from '../../e2e/operator/support/bench';
import { OperatorProcess } from '../../../testing';
import { FaultProxy } from '../proxy/fault-proxy';
import type { ProxiedRequest } from '../proxy/proxied-request';

/** How long a leader leads after the start of its last renewal, and how long others wait, in milliseconds: DESIGN's 15 and 10 s. */
export const RENEW_DEADLINE_MS = 10_000;

const LEASES = 'leases.coordination.k8s.io';

/** One of several operators that share a Lease; it reaches the API server through a proxy of its own, so that who asked is known. */
export class Replica {
  private constructor(
    readonly operator: OperatorProcess,
    readonly proxy: FaultProxy,
  ) {}

  /**
   * Starts one; resolves when it knows the cluster, which is before it leads.
   *
   * @throws Error when it never does; neither an operator nor a proxy is left then
   */
  static async start(bench: Bench): Promise<Replica> {
    const { plane, platform } = bench;
    const proxy = await FaultProxy.start(plane.adminKubeconfig);
    let operator: OperatorProcess | undefined;
    try {
      const kubeconfig = proxy.kubeconfig(await plane.kubeconfigFor(platform.account));
      // Audits come often, so that what a watch has missed is found while a test lasts.
      const { args, env } = platform;
      operator = await OperatorProcess.start({ kubeconfig, args: [...args, '--audit-seconds=1'], env });
      await operator.log.line('every cache is synced');
      return new Replica(operator, proxy);
    } catch (error) {
      await operator?.kill();
      await proxy.close();
      throw error;
    }
  }

  /** Its writes since a moment (milliseconds since 1970), oldest first. */
  writesSince(moment: number): readonly (ProxiedRequest & { readonly at: number })[] {
    return this.proxy.requests.filter(({ writes, beside, at }) => writes && !beside && at >= moment);
  }

  /** When it last began to renew its Lease before a moment; until ten seconds later it leads. */
  lastRenewal(before: number): number {
    const renewals = this.proxy.requests.filter(
      ({ resource, verb, at }) => resource === LEASES && (verb === 'update' || verb === 'create') && at < before,
    );
    const last = renewals.at(-1);
    if (last === undefined) throw new Error('this replica has never held the Lease');
    return last.at;
  }

  /** When it logged something (milliseconds since 1970). */
  async said(msg: string): Promise<number> {
    return Date.parse((await this.operator.log.line(msg)).time);
  }

  async close(): Promise<void> {
    if (this.operator.running) await this.operator.kill();
    await this.proxy.close();
  }
}
