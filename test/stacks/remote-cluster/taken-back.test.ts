import { ChangedCluster, good } from './changed-cluster';

// The other changes are in taken-back.slow.test.ts.

/** Changes that fail halfway and are taken back: Pulumi keeps what a Command that failed was before, and so finds nothing changed. */
jest.setTimeout(300_000);

test('a change that failed in the draining, which the last step undoes', async () => {
  const cluster = new ChangedCluster();
  await cluster.up(good);
  await cluster.failedUp({ ...good, version: 'v1.30.99+k3s1' }, '10.0.0.1/drain');
  expect(await cluster.up(good)).toEqual(expect.arrayContaining(['10.0.0.1/install', '10.0.0.1/ready']));
});
