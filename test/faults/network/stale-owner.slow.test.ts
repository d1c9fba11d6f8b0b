import { setTimeout as delay } from 'node:timers/promises';
import { owned } from '../../../constructs/kube/resource-type';
import { Foo } from '../../../constructs/kinds';
import { isReadyNow } from '../../support/assertions';
import { useTestEnv } from '../../support/test-env';
import { when } from '../../../testing/fault-proxy/fault-proxy';
import { resetBefore } from '../../../testing/fault-proxy/faults';

const env = useTestEnv({ proxy: true, operator: false });

/** The garbage collector deletes a child of an owner that is gone in a fraction of a second: a loop with it would show. */
const lookMs = 5_000;

test('while owners are not heard of, a child of a deleted one is not made again and again', async () => {
  await env.start();
  await env.operator.waitUntilReconciling();
  const namespace = await env.namespace();
  const ref = { namespace, name: 'foo' };
  const child = { namespace, name: 'of-foo' };
  await env.createOfKind(Foo, ref, { deploymentName: child.name });
  await env.waitUntil(Foo.type, ref, 'Ready', isReadyNow);

  const isWatchOfFoos = ({ verb, resource }: { verb: string; resource: string }): boolean =>
    verb === 'watch' && resource === 'foos.samplecontroller.k8s.io';
  env.proxy.fault = when(isWatchOfFoos, resetBefore);
  const already = env.proxy.requests.length;
  env.proxy.dropConnections();
  await env.eventually('the other watches to be open again, and that of the owners to be refused', () => {
    const since = env.proxy.requests.slice(already).filter(({ verb }) => verb === 'watch');
    const isOpen = since.some(({ resource }) => resource === 'deployments.apps');
    return Promise.resolve(
      isOpen && since.some((request) => isWatchOfFoos(request) && request.hadFault) ? true : undefined,
    );
  });
  const { uid } = (await env.get(owned.Deployment, child)).metadata;
  const before = env.proxy.writes().length;
  await env.deleteAndWait(Foo.type, ref);
  await env.eventually('the garbage collector to have deleted the child', async () => {
    const live = await env.client.get(owned.Deployment, child);
    return live?.metadata.uid === uid ? undefined : true;
  });
  await delay(lookMs);
  const creates = env.proxy
    .writes()
    .slice(before)
    .filter(({ verb }) => verb === 'create');
  // It may be made once: that it is not to be shows only then.
  expect(creates.length).toBeLessThanOrEqual(1);

  env.clearFaults();
  await env.waitUntilGone(owned.Deployment, child);
});
