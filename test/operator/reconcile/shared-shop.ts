import { owned } from '../../../constructs/kube/resource-type';
import { MicroServiceDeploy } from '../../../constructs/kinds';
import { DriftBackoff } from '../../../operator/apply/drift-backoff';
import { reconcileShared, type SharedResult } from '../../../operator/reconcile/reconcile-shared';
import { Harness, NAMESPACE } from './harness';

export const { Service } = owned;
export const shopSpec = { msName: 'shop', version: '1', path: 'v1', image: 'i' };

/** Objects of one micro service, which share its Service `shop`, and a clock for its contests. */
export class SharedShop {
  readonly harness = new Harness(MicroServiceDeploy);
  /** In milliseconds. */
  now = 0;
  private readonly driftBackoff = new DriftBackoff(() => this.now);

  /** With two objects, `a` and `b`, and their Service made. */
  static async open(): Promise<SharedShop> {
    const shop = new SharedShop();
    await shop.addBoth();
    await shop.reconcile();
    return shop;
  }

  async addBoth(): Promise<void> {
    await this.harness.add('a', { ...shopSpec, fullName: 'shop-1' });
    await this.harness.add('b', { ...shopSpec, fullName: 'shop-2' });
  }

  /** Reconciles the Service; @returns what came of it, and what was written for it */
  async reconcile(): Promise<{ readonly result: SharedResult; readonly writes: readonly string[] }> {
    const { server, objects: cache, context } = this.harness;
    server.takeRequests();
    const objects = cache
      .list()
      .map(({ object }) => object)
      .filter(({ spec }) => (spec as { msName: string }).msName === shopSpec.msName);
    const target = { group: 'service', namespace: NAMESPACE, key: shopSpec.msName, objects };
    const result = await reconcileShared({ ...context, driftBackoff: this.driftBackoff }, target);
    return { result, writes: server.writes };
  }
}
