import type { PlatformOperator } from '../../constructs/platform';
import { useControlPlane } from '../../local/testing';
import { leaseType } from '../../operator/leader/lease';
import type { OperatorProcess } from '../../testing';
import { Bench, operatorKinds } from '../e2e/operator/support/bench';
import { FaultProxy, passing } from './proxy/fault-proxy';

/** A bench whose operators reach the API server through a proxy; everyone else, the tests too, goes straight. */
export class FaultBench extends Bench {
  /** Stands once it is installed. */
  proxy!: FaultProxy;
  private kinds: PlatformOperator['kinds'] = [];

  override async install(platformOperator: PlatformOperator): Promise<void> {
    this.kinds = platformOperator.kinds;
    // First, and by itself: what listens and is known to nobody would keep the process alive when the other fails.
    this.proxy = await FaultProxy.start(this.plane.adminKubeconfig);
    await super.install(platformOperator);
  }

  override async close(): Promise<void> {
    try {
      await super.close();
    } finally {
      await (this.proxy as FaultProxy | undefined)?.close();
    }
  }

  protected override async kubeconfig(): Promise<string> {
    return this.proxy.kubeconfig(await super.kubeconfig());
  }

  /**
   * Ends the faults; requests that are held, or watches that are silent, end with their connections. That an operator gets over silence by
   * itself does not show then: where it is to, the proxy is set to passing only.
   */
  heal(): void {
    this.proxy.fault = passing;
    this.proxy.cut();
  }

  /**
   * Has the API server be away, and the controllers begin anew once it serves every kind of this bench again.
   *
   * With leader election a controller manager that is cut off for long ends, and another begins anew. This one has none: its ReplicaSets would
   * wait five minutes for pods whose creation was cut off, its watches would come back when its own backoff is over, and its garbage collector may
   * have missed what happened until then. Source: kubernetes, ExpectationsTimeout in pkg/controller/controller_utils.go.
   *
   * @param away - resolves when the API server is back
   */
  async outage(away: () => Promise<void>): Promise<void> {
    await away();
    // A server that has just started refuses our kinds for a moment, though it says that it is ready.
    await this.eventually('every kind of this bench to be served again', async () => {
      await Promise.all(this.kinds.map(({ type }) => this.client.list(type)));
      return true;
    });
    await this.plane.faults.restartControllerManager();
  }

  /**
   * Deletes the Lease of an operator that was killed, so that the next one need not wait for it to run out. What running out takes is
   * tested by itself.
   */
  async releaseLease(): Promise<void> {
    await this.client.delete(leaseType, this.platform.account);
  }

  /** Kills the operator that was started last and starts another, which leads at once. */
  async crash(): Promise<OperatorProcess> {
    await this.operator.kill();
    await this.releaseLease();
    const next = await this.start();
    await next.working();
    return next;
  }
}

/** Gives a test file a bench with a proxy, platform and no operator; call it at the top. */
export function useFaultBench(options: { readonly kinds?: PlatformOperator['kinds'] } = {}): FaultBench {
  const plane = useControlPlane({ components: 'full' });
  const bench = new FaultBench(plane);
  beforeAll(async () => {
    await bench.install({ name: 'operator', image: 'none', kinds: options.kinds ?? operatorKinds });
  }, 180_000);
  afterAll(async () => {
    await bench.close();
  });
  return bench;
}
