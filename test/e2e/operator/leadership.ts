import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import type { OperatorProcess } from '../../../testing';
import type { Bench } from './support/bench';
import { ready } from './support/conditions';
import { expectChildren } from './support/expect-children';

const LEASES: ResourceType = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  plural: 'leases',
  scope: 'Namespaced',
};

const many = 50;

/** A replica that takes over. An operator must be at work already. */
export function takeoverTests(bench: Bench): void {
  const leads = async (operator: OperatorProcess): Promise<boolean> =>
    (await operator.metrics()).sum('leader_election_master_status') === 1;

  test('a second replica waits, ready, and takes over when the first one stops', async () => {
    const namespace = await bench.namespace('lead');
    const first = bench.operator;
    const second = await bench.start();
    await second.log.line('every cache is synced');
    expect((await second.readyz()).status).toBe(200);
    expect([await leads(first), await leads(second)]).toEqual([true, false]);

    const ref = { namespace, name: 'before' };
    await bench.make(HelloApp, ref, { image: 'nginx:1' });
    await bench.until(HelloApp.type, ref, 'Ready', ready);
    expect(second.log.all.map(({ msg }) => msg)).not.toContain('reconciling');

    expect(await first.stop()).toEqual({ code: 0, signal: null });
    await bench.make(HelloApp, { namespace, name: 'between' }, { image: 'nginx:1' });
    await second.working();
    await bench.until(HelloApp.type, { namespace, name: 'between' }, 'Ready', ready);
    expect(await leads(second)).toBe(true);
    const { name } = bench.platform.account;
    const lease = await bench.get(LEASES, { namespace: bench.platform.account.namespace, name });
    expect(lease.spec).toMatchObject({ leaseTransitions: expect.any(Number) as number });
  });
}

/** Several replicas of the operator, of which one works. An operator must be at work already. */
export function leadershipTests(bench: Bench): void {
  takeoverTests(bench);

  test(`killed in the middle of ${String(many)} creates, the next one brings all of them to Ready`, async () => {
    const namespace = await bench.namespace('killed');
    const names = Array.from({ length: many }, (_, i) => `app-${String(i)}`);
    const create = (name: string) => bench.make(HelloApp, { namespace, name }, { image: 'nginx:1' });
    await Promise.all(names.slice(0, many / 2).map(create));
    await bench.whenChanged('the first Deployments', [{ type: owned.Deployment, namespace }], async () => {
      const { items } = await bench.client.list(owned.Deployment, { namespace, limit: 5 });
      return items.length > 0 ? true : undefined;
    });
    const killed = bench.operator.kill();
    await Promise.all(names.slice(many / 2).map(create));
    expect(await killed).toMatchObject({ signal: 'SIGKILL' });

    const next = await bench.start();
    await next.working();
    for (const name of names) {
      const live = await bench.until(HelloApp.type, { namespace, name }, 'Ready', ready);
      await expectChildren(bench, HelloApp, live);
    }
    const { items } = await bench.client.list(owned.Deployment, { namespace });
    expect(items).toHaveLength(many);
    expect(next.log.errors()).toEqual([]);
  });

  test('one that loses its Lease to somebody else ends, for the kubelet to start it afresh', async () => {
    const { namespace, name } = bench.platform.account;
    await bench.patch(LEASES, { namespace, name }, { spec: { holderIdentity: 'somebody-else' } });
    expect(await bench.operator.exited).toEqual({ code: 1, signal: null });
    // Nobody waits for somebody who never was.
    await bench.remove(LEASES, { namespace, name });
    await bench.start();
    await bench.operator.working();
  });
}
