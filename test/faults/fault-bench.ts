import type { PlatformOperator } from '../../constructs/platform';
import { useControlPlane } from '../../local/testing';
import { leaseType } from '../../operator/src/runtime/lease-record';
import type { OperatorProcess } from '../../operator/testing';
import { Bench, operatorKinds } from '../e2e/operator/support/bench';
import { FaultProxy, passing } from './proxy/fault-proxy';

/** A bench whose operators reach the API server through a proxy; everyone else, the tests too, goes straight. */
export class FaultBench extends Bench {
  proxy!: FaultProxy;

  override async install(platformOperator: PlatformOperator): Promise<void> {
    [this.proxy] = await Promise.all([FaultProxy.start(this.plane.adminKubeconfig), super.install(platformOperator)]);
  }

  override async close(): Promise<void> {
    await super.close();
    await this.proxy.close();
  }

  protected override async kubeconfig(): Promise<string> {
    return this.proxy.kubeconfig(await super.kubeconfig());
  }

  /** Ends the faults; requests that are held, or watches that are silent, end with their connections. */
  heal(): void {
    this.proxy.fault = passing;
    this.proxy.cut();
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
