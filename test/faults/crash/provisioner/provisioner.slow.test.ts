import { startHosts, type Hosts } from '../../../support/hosts';
import { describeOnHosts } from '../../../support/hosts/describe-on-hosts';
import { ProvisionerTestEnv, FakeRke, installFakeDocker, shareSshKey } from '../../../support/provisioner-env';
import { byMode } from '../../mode';
import { PROVISIONER_LIFE, noCrash, crashPointFromEnv } from '../crash-point';
import { alternatingPoints, everyPoint, sweepCluster } from './sweep';
import { RkeRunLog, runClusterLife, type ClusterLifeContext } from './run-cluster-life';

jest.setTimeout(2 * 3_600_000);

const isAsked = crashPointFromEnv === undefined || crashPointFromEnv.life === PROVISIONER_LIFE;

(isAsked ? describeOnHosts : describe.skip)('the provisioner, killed before and after each of its writes', () => {
  const world = new ProvisionerTestEnv();
  const rke = new FakeRke(world);
  let hosts: Hosts;
  let scene: ClusterLifeContext;

  beforeAll(async () => {
    hosts = await startHosts({ names: ['n1', 'n2'] });
    await installFakeDocker(hosts.all);
    rke.install();
    await world.secret('ssh', { 'ssh-privatekey': await shareSshKey(hosts) });
    scene = { world, hosts, standIn: rke.standIn, log: RkeRunLog.of(rke.standIn) };
  }, 120_000);
  afterAll(async () => {
    await hosts.end();
  });

  test('the life of a Cluster ends as it does undisturbed, and no effect is lost or done twice at once', async () => {
    const calm = await runClusterLife(scene, noCrash);
    const points =
      crashPointFromEnv === undefined
        ? byMode({ short: alternatingPoints, long: everyPoint })(calm)
        : [crashPointFromEnv];
    const { failures, missed } = await sweepCluster(scene, calm, points);
    if (missed.length > 0) console.warn(`these statuses did not come again:\n${missed.join('\n')}`);
    expect(failures).toEqual([]);
  });

  test('nothing was refused to it', async () => {
    expect((await world.env.auditLog()).refusals()).toEqual([]);
  });
});
