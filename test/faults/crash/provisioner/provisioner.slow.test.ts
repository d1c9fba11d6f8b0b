import { startHosts, type Hosts } from '../../../support/hosts';
import { describeOnHosts } from '../../../support/hosts/describe-on-hosts';
import { ProvisionerWorld, Rke, dockerOn, oneKey } from '../../../support/provisioner-env';
import { form } from '../../form';
import { PROVISIONER_LIFE, nowhere, only } from '../crash-point';
import { alternatingPoints, everyPoint, sweepCluster } from './sweep';
import { RkeLog, liveThroughCluster, type ClusterScene } from './story';

jest.setTimeout(2 * 3_600_000);

const isAsked = only === undefined || only.life === PROVISIONER_LIFE;

(isAsked ? describeOnHosts : describe.skip)('the provisioner, killed before and after each of its writes', () => {
  const world = new ProvisionerWorld();
  const rke = new Rke(world);
  let hosts: Hosts;
  let scene: ClusterScene;

  beforeAll(async () => {
    hosts = await startHosts({ names: ['n1', 'n2'] });
    await dockerOn(hosts.all);
    rke.install();
    await world.secret('ssh', { 'ssh-privatekey': await oneKey(hosts) });
    scene = { world, hosts, standIn: rke.standIn, log: RkeLog.of(rke.standIn) };
  }, 120_000);
  afterAll(async () => {
    await hosts.end();
  });

  test('the life of a Cluster ends as it does undisturbed, and no effect is lost or done twice at once', async () => {
    const calm = await liveThroughCluster(scene, nowhere);
    const points = only === undefined ? form({ short: alternatingPoints, long: everyPoint })(calm) : [only];
    const { failures, missed } = await sweepCluster(scene, calm, points);
    if (missed.length > 0) console.warn(`these statuses did not come again:\n${missed.join('\n')}`);
    expect(failures).toEqual([]);
  });

  test('nothing was refused to it', async () => {
    expect((await world.bench.audit()).refusals()).toEqual([]);
  });
});
