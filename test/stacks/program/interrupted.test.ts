import { MemoryCluster, type Engine } from '../../support/pulumi-engine';
import { changes, expectFinished } from './interrupted-runs';
import { newCluster, newEngine, stack } from './platform-changes';
import { failure } from './two-clusters';

// Runs that are killed at each operation: interrupted.slow.test.ts.

const [installation] = changes;

test('an installation that is killed is finished by the next up, and removed by destroy', async () => {
  expect(await expectFinished(installation!, 13)).toBeGreaterThan(0);
});

describe("an object that is somebody else's", () => {
  const theirs = {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'kindred-operator', namespace: 'kindred-system' },
  };

  test.each([
    ['without an owner', {}],
    ['of another stack', { ownerReferences: [{ apiVersion: 'v1', kind: 'ClusterRole', name: 'a', uid: 'b' }] }],
  ])('%s makes up fail, with the way out, and stays as it is', async (_, more) => {
    const cluster = await newCluster();
    cluster.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kindred-system' } });
    const { metadata } = cluster.put({ ...theirs, metadata: { ...theirs.metadata, ...more } });
    const engine = newEngine(cluster);
    await engine.preview(stack(cluster, {}));
    const message = await failure(engine.up(stack(cluster, {})));
    expect(message).toContain(
      'ServiceAccount kindred-system/kindred-operator exists already, and this stack did not create it. If nothing needs it, ' +
        '`kubectl delete serviceaccounts kindred-operator --namespace=kindred-system`, and run `pulumi up` again',
    );
    expect(cluster.uids['ServiceAccount kindred-system/kindred-operator']).toBe(metadata.uid);
    await engine.destroy();
    expect(cluster.uids['ServiceAccount kindred-system/kindred-operator']).toBe(metadata.uid);
  });
});

test('a cluster that this machine does not reach gets its platform, and one warning', async () => {
  // Only the provider reaches it, as through a proxy.
  const cluster = new MemoryCluster('http://127.0.0.1:1');
  const engine: Engine = newEngine(cluster);
  const { log } = await engine.up(stack(cluster, {}));
  const warnings = log.filter(({ severity, message }) => severity === 'warning' && message.includes('interrupted run'));
  expect(warnings.map(({ message }) => message)).toEqual([
    expect.stringMatching(/^PlatformComponent kindred: it is not known whether .* to this machine: GET /),
  ]);
  expect(cluster.names).toEqual(expect.arrayContaining(['Deployment kindred-system/kindred-operator']));
  expect((await engine.up(stack(cluster, {}))).summary).toEqual([]);
});
