import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { NodeRole } from '../../../provision';
import { node } from '../inputs';
import { missingShells, shells } from '../shells';
import { ADDRESS, StandInServer, input } from './stand-in-server';

/** A server that is uninstalled, or installed again, with data of etcd on it: what it is in etcd, etcd says. */

if (missingShells.length > 0) console.warn(`not tested, because not installed: ${missingShells.join(', ')}`);

const OTHER = '10.0.0.2';
const ALL: NodeRole[] = ['controlplane', 'etcd', 'worker'];
const planOf = (roles: NodeRole[], isFirst = false) => {
  const nodes = [node(OTHER, { roles: ALL }), node(ADDRESS, { roles })];
  return input({ nodes: isFirst ? nodes.reverse() : nodes });
};

/** A number, text or message as a field of protobuf. */
function field(number: number, value: bigint | string | Buffer): Buffer {
  if (typeof value === 'bigint') return Buffer.concat([varint(BigInt(number) * 8n), varint(value)]);
  const bytes = Buffer.from(value);
  return Buffer.concat([varint(BigInt(number) * 8n + 2n), varint(BigInt(bytes.length)), bytes]);
}

const varint = (value: bigint): Buffer =>
  value < 128n
    ? Buffer.of(Number(value))
    : Buffer.concat([Buffer.of(Number(value % 128n) + 128), varint(value / 128n)]);

/** A message as gRPC sends it. */
function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** The answer to MemberList: each member with its name, empty until it has started, and its address. */
const membersAre = (...members: readonly (readonly [id: bigint, name: string, address: string])[]): Buffer =>
  framed(
    Buffer.concat([
      field(1, Buffer.concat([field(1, 2n ** 63n + 5n), field(3, 12n)])),
      ...members.map(([id, name, address]) => {
        const given = name === '' ? [] : [field(2, name)];
        const urls = [field(3, `https://${address}:2380`), field(4, `https://${address}:2379`)];
        return field(2, Buffer.concat([field(1, id), ...given, ...urls, field(5, 1n)]));
      }),
    ]),
  );

const NAME = 'n1-0a1b2c3d';
const ID = 2n ** 64n - 3n;
const WITHOUT = membersAre([7n, 'n2-0a1b2c3d', OTHER]);
const WITH = membersAre([7n, 'n2-0a1b2c3d', OTHER], [ID, NAME, '192.0.2.1']);

describe.each(shells)('%s', (_, shell) => {
  let machine: StandInServer;
  beforeEach(() => {
    machine = new StandInServer(shell);
    write('state/prod/installation', 'k3s server\n');
    write('data/k3s/server/db/etcd/name', NAME);
    write('data/k3s/server/db/etcd/member/wal', 'x');
    machine.set('active', '');
  });

  function write(name: string, text: string): void {
    mkdirSync(dirname(machine.path(name)), { recursive: true });
    writeFileSync(machine.path(name), text);
  }
  const isInstalled = (): boolean => existsSync(machine.path('state/prod/installation'));
  const hasData = (): boolean => existsSync(machine.path('data/k3s/server/db/etcd/member'));

  describe.each([
    ['etcd and the API', ALL],
    ['etcd alone', ['etcd'] as NodeRole[]],
  ])('a server with %s is uninstalled', (_, roles) => {
    const uninstall = (values: Readonly<Record<string, string>> = {}) =>
      machine.run(planOf(roles), 'uninstall', values).answer;

    test.each([
      ['its name', WITH],
      ['its address, before it has started', membersAre([7n, 'n2-0a1b2c3d', OTHER], [ID, '', ADDRESS])],
    ])('once etcd has removed its member, known by %s, though it has no node', (_, members) => {
      machine.set('etcd', members);
      machine.set('etcd-after', WITHOUT);
      expect(uninstall()).toMatchObject({ ok: true, changed: true });
      expect(readFileSync(machine.path('db/etcd-removal'))).toEqual(framed(field(1, ID)));
      const list = `${OTHER}:2379/etcdserverpb.Cluster/MemberList\n`;
      // Asked once, and twice more with the removal; the last time once the service, which might have joined again, does not run.
      expect(machine.get('asked-etcd').replace(/^.*MemberRemove\n/m, 'remove\n')).toBe(
        `${list}${list}remove\n${list}${list}`,
      );
      expect(machine.get('stops')).toBe('stop\n');
      expect([isInstalled(), hasData()]).toEqual([false, false]);
    });

    test('not while etcd refuses', () => {
      machine.set('etcd', WITH);
      machine.set('etcd-refuses', '');
      expect(uninstall()).toMatchObject({ ok: false, reason: 'LeaveFailed' });
      expect([isInstalled(), hasData(), machine.get('stops')]).toEqual([true, true, '']);
    });

    test('not while nobody knows whether it is a member, unless the whole cluster is removed', () => {
      machine.set('fails', '--server');
      const { reason, message } = uninstall({ etcd: '10.0.0.3' });
      expect(reason).toBe('LeaveFailed');
      expect(message).toContain('no other member of etcd answers 10.0.0.1 on port 2379');
      expect(machine.get('asked-etcd').match(/^[0-9.]+/gm)).toEqual(['10.0.0.3', OTHER]);
      expect([isInstalled(), machine.get('stops')]).toEqual([true, '']);
      // Its answer is none that could be read.
      machine.set('etcd', Buffer.from('HTTP'));
      expect(uninstall().reason).toBe('LeaveFailed');
      expect(uninstall({ whole: 'yes' }).ok).toBe(true);
      expect(isInstalled()).toBe(false);
    });
  });

  test('a machine that was a node, and is none any more, is uninstalled even though etcd does not answer', () => {
    const uninstall = () => machine.run(planOf(ALL), 'uninstall').answer;
    expect(uninstall().reason).toBe('LeaveFailed');
    write('state/prod/joined', '');
    expect(uninstall().ok).toBe(true);
    expect(isInstalled()).toBe(false);
  });

  describe('a server with etcd alone is installed again', () => {
    const GIVEN = { node: 'no', token: 't'.repeat(64), secret_config: 'token: "t"\n' };
    const install = (isFirst = false) =>
      machine.run(
        // With no other that has both, the first with etcd begins the cluster.
        isFirst
          ? input({
              nodes: [
                node(ADDRESS, { roles: ['etcd'] }),
                node(OTHER, { roles: ['etcd'] }),
                node('10.0.0.3', { roles: ['controlplane'] }),
              ],
            })
          : planOf(['etcd']),
        'install',
        GIVEN,
      ).answer;
    beforeEach(() => machine.unset('active'));

    test('and joins again where etcd has removed it', () => {
      machine.set('etcd', WITHOUT);
      expect(install()).toEqual({ ok: true, changed: true });
      expect(existsSync(machine.path('data/k3s/server/db/etcd-removed/member'))).toBe(true);
      expect(hasData()).toBe(false);
    });

    test('with its data where it is still a member, or nobody knows', () => {
      expect(install().ok).toBe(true);
      machine.unset('active');
      machine.set('etcd', WITH);
      expect(install().ok).toBe(true);
      expect(hasData()).toBe(true);
    });

    test('not as the first server, which would begin a second cluster', () => {
      machine.set('etcd', WITHOUT);
      expect(install(true)).toMatchObject({ ok: false, reason: 'ClusterExists' });
      expect(hasData()).toBe(true);
    });
  });
});
