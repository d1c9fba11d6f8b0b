import { HelloApp } from '../../../constructs/kinds';
import { useControlPlane } from '../../support/use-control-plane';
import { waitFor } from '../../../testing/wait-for';
import { kubeconfigClient, OperatorAuditLog, operatorBundle, OperatorProcess } from '../../../testing';
import type { ApiClient } from '../../../operator/client/api-client';
import { createObjects } from '../../../bench/many-objects';
import { installPlatform, type InstalledPlatform } from '../../../testing/install-platform';

const count = 1_000;
const patienceMs = 120_000;
jest.setTimeout(2 * patienceMs);

const plane = useControlPlane({ components: 'api' });
let platform: InstalledPlatform;
let client: ApiClient;
let operator: OperatorProcess | undefined;

beforeAll(async () => {
  client = await kubeconfigClient(plane.adminKubeconfig);
  const own = { name: 'operator', image: 'none', kinds: [HelloApp] };
  [platform] = await Promise.all([installPlatform({ client }, own), operatorBundle()]);
}, 180_000);
afterAll(async () => {
  await operator?.kill();
  await client.close();
});

/** A new operator at work. */
async function start(): Promise<OperatorProcess> {
  const kubeconfig = await plane.kubeconfigFor(platform.account);
  operator = await OperatorProcess.start({ kubeconfig, args: platform.args });
  await operator.waitUntilReconciling(patienceMs);
  return operator;
}

/** Waits until a counter of the operator has come so far and nothing is left to do. */
async function settled(running: OperatorProcess, counter: string, atLeast: number): Promise<void> {
  const check = async (): Promise<boolean> => {
    const metrics = await running.metrics();
    return metrics.openWork() === 0 && metrics.sum(counter) >= atLeast;
  };
  const describe = `nothing left to do and ${counter} >= ${String(atLeast)}`;
  await waitFor(check, { describe, timeout: patienceMs, interval: 200 });
}

/** The operator's writes, but events: they are a courtesy. */
async function writes(): Promise<readonly string[]> {
  const { namespace, name } = platform.account;
  const audit = new OperatorAuditLog(await plane.auditLog(), `system:serviceaccount:${namespace}:${name}`);
  expect(audit.refusals()).toEqual([]);
  return audit.writes().filter((write) => !write.includes(' events.events.k8s.io '));
}

test('1,000 objects created at once take one create and one status each, and a restart nothing', async () => {
  const first = await start();
  const objects = await createObjects(client, 'many', count);
  await settled(first, 'kindred_writes_total', 2 * count);
  expect(await first.stop()).toEqual({ code: 0, signal: null });
  const expected = objects.flatMap(({ metadata: { name } }) => [
    `create deployments.apps many/${name} 201`,
    `patch helloapps/status.apps.anupam.com many/${name} 200`,
  ]);
  expect([...(await writes())].sort()).toEqual(expected.sort());
  expect(first.log.errors()).toEqual([]);

  const second = await start();
  await settled(second, 'controller_runtime_reconcile_total', count);
  expect(await second.stop()).toEqual({ code: 0, signal: null });
  expect((await writes()).length).toBe(2 * count);
  expect(second.log.errors()).toEqual([]);
});
