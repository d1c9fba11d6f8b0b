import * as pulumi from '@pulumi/pulumi';
import { InvalidObjectError } from '../../../constructs';
import { RemoteCluster } from '../../../stacks/remote-cluster/remote-cluster';
import type { BastionArgs, NodeArgs, RemoteClusterArgs } from '../../../stacks/remote-cluster/args';
import { agent, answers, cluster, hostKey, server } from './clusters';
import { named, opened, record } from './recorder';

// The keys that SSH uses: of the machines, and of bastions in front of them.
const way = { address: '192.0.2.1', user: 'jump', hostKey: hostKey(9) };
const run = (args: RemoteClusterArgs) => record(() => new RemoteCluster('prod', args), { answers });

const rke = (bastions: readonly (BastionArgs | undefined)[]): RemoteClusterArgs => ({
  distribution: 'rke',
  version: 'v1.30.14-rancher1-1',
  sshKey: 'KEY',
  nodes: bastions.map((bastion, i): NodeArgs => {
    const more = { user: 'rke', ...(bastion && { bastion }) };
    return i === 0 ? server(1, more) : agent(i + 1, more);
  }),
});

async function problemsOf(args: RemoteClusterArgs): Promise<readonly string[]> {
  try {
    await run(args);
  } catch (error) {
    if (!(error instanceof InvalidObjectError)) throw error;
    return error.problems.map(({ path, message }) => `${path}: ${message}`);
  }
  return [];
}

describe('the one bastion of RKE', () => {
  const shared = pulumi.secret('BASTION');

  test.each([
    ['a text', { ...way, sshKey: 'BASTION' }, { ...way, sshKey: 'BASTION' }],
    ['an Output', { ...way, sshKey: shared }, { ...way, sshKey: shared }],
    ['that of the machines', way, way],
  ])('may have a key of its own, %s', async (_, first, second) => {
    expect(await problemsOf(rke([first, second, second]))).toEqual([]);
  });

  test('reaches the run as what it is', async () => {
    const bastion = { ...way, sshKey: shared };
    const found = await run(rke([bastion, bastion]));
    const { secret } = named(found, 'prod/10.0.0.2/preflight').inputs['connection'] as { secret: object };
    expect(secret).toMatchObject({ privateKey: 'KEY', proxy: { host: '192.0.2.1', privateKey: 'BASTION' } });
    const values = found.filter(({ name }) => name === 'prod/rke/up').map(({ inputs }) => opened(inputs['stdin']));
    expect(values.join()).toContain(Buffer.from('BASTION').toString('base64'));
  });

  test.each([
    ['another key', { ...way, sshKey: 'OTHER' }, ' (sshKeySecretRef)'],
    ['the key of the machines', way, ' (sshKeySecretRef)'],
    ['another place', { ...way, port: 2222, user: 'me', sshKey: 'BASTION' }, ' (port, user)'],
    ['none', undefined, ''],
  ])('is one: not %s', async (_, second, what) => {
    expect(await problemsOf(rke([{ ...way, sshKey: 'BASTION' }, second]))).toEqual([
      `nodes[1].bastion: differs from that of nodes[0]${what}, but RKE goes to all nodes through one bastion, with one key, or to all ` +
        'without: give all nodes the same',
    ]);
  });
});

describe('a key that nobody gave', () => {
  test('of the machines is told once', async () => {
    const sshKey = undefined as unknown as string;
    expect(await problemsOf(cluster({ nodes: [server(1), agent(2)], sshKey }))).toEqual([
      'sshKey: is missing, and "10.0.0.1" is reached with it',
    ]);
  });

  // The configuration of the stack refers to keys; the types of a program know none but the key itself.
  const referring = (name: string) =>
    ({ ...way, sshKeySecretRef: { namespace: 'infra', name, key: 'id.pem' } }) as BastionArgs;

  test('of bastions is told by its ref', async () => {
    const nodes = [
      server(1, { bastion: referring('a') }),
      agent(2, { bastion: referring('b') }),
      agent(3, { name: 'late', address: pulumi.output('10.0.0.3'), bastion: referring('c') }),
    ];
    expect(await problemsOf(cluster({ nodes, secrets: { 'infra/b': { 'id.pem': 'BASTION' } } }))).toEqual([
      'secrets["infra/a"]["id.pem"]: is missing, and the bastion of "10.0.0.1" is reached with it',
      'secrets["infra/c"]["id.pem"]: is missing, and the bastion of "late" is reached with it',
    ]);
  });

  test('is no problem where it is given', async () => {
    const nodes = [server(1, { bastion: referring('a') })];
    const found = await run(cluster({ nodes, secrets: { 'infra/a': { 'id.pem': 'BASTION' } } }));
    const { secret } = named(found, 'prod/10.0.0.1/preflight').inputs['connection'] as { secret: object };
    expect(secret).toMatchObject({ proxy: { privateKey: 'BASTION' } });
  });
});
