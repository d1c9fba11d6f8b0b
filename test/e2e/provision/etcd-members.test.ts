import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CertificateAuthority } from '../../../local/certificates';
import { GuardedProcess } from '../../../local/guarded-process';
import { prepare } from '../../../local';
import { freePort } from '../../../local/ports';
import { etcdIsHealthy, etcdMemberFunctions } from '../../../provision/rke2-k3s/etcd';
import type { K3sInput } from '../../../provision';
import { FAIL_FUNCTION, WAIT_FUNCTION } from '../../../provision/shell/functions';
import { buildScript } from '../../../provision/shell/script';
import { decodeOutput, type ScriptResult } from '../../../provision';
import { inputOf, node } from '../../provision/inputs';
import { runScript, shells } from '../../provision/shells';
import { temporaryFolder } from '../../support/temporary-folder';
import { waitFor } from '../../../testing/wait-for';

/**
 * What scripts learn of etcd, from real members that are configured as RKE2 and K3s do it: clients need a certificate, their port takes gRPC alone, and
 * HTTP is answered elsewhere.
 */

const HOST = '127.0.0.1';
const folder = temporaryFolder('kindred-etcd-members-');
const state = join(folder, 'state');
const authority = new CertificateAuthority('etcd-server-ca');

interface Member {
  readonly name: string;
  readonly client: number;
  readonly peer: number;
  readonly http: number;
  readonly metrics: number;
}

let program = '';
const running = new Map<string, GuardedProcess>();

const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text, { mode: 0o600 });
  return join(folder, name);
};

/** Starts the members of a cluster. */
async function start(...names: readonly string[]): Promise<readonly Member[]> {
  const members = await Promise.all(
    names.map(async (name): Promise<Member> => {
      const [client, peer, http, metrics] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
      return { name, client, peer, http, metrics };
    }),
  );
  await Promise.all(members.map((member) => startMember(member, members)));
  return members;
}

async function startMember(member: Member, all: readonly Member[]): Promise<void> {
  const { name, client, http, metrics } = member;
  const config = {
    name,
    'data-dir': join(folder, `data-${name}`),
    'listen-client-urls': `https://${HOST}:${client}`,
    'advertise-client-urls': `https://${HOST}:${client}`,
    'listen-client-http-urls': `http://${HOST}:${http}`,
    'listen-metrics-urls': `http://${HOST}:${metrics}`,
    'listen-peer-urls': peerUrl(member),
    'initial-advertise-peer-urls': peerUrl(member),
    'initial-cluster': all.map((each) => `${each.name}=${peerUrl(each)}`).join(','),
    'client-transport-security': {
      'cert-file': join(folder, 'server.crt'),
      'key-file': join(folder, 'server.key'),
      'client-cert-file': join(folder, 'client.crt'),
      'client-key-file': join(folder, 'client.key'),
      'trusted-ca-file': join(folder, 'server-ca.crt'),
      'client-cert-auth': true,
    },
    'unsafe-no-fsync': true,
    'log-level': 'warn',
  };
  const process = new GuardedProcess({
    part: `etcd ${name}`,
    program,
    args: ['--config-file', file(`${name}.yaml`, JSON.stringify(config))],
    cwd: folder,
    logFile: join(folder, `${name}.log`),
  });
  running.set(name, process);
  await waitFor(async () => (await fetch(`http://${HOST}:${metrics}/health`)).ok, { describe: `etcd ${name}` });
}

const peerUrl = ({ peer }: Member): string => `http://${HOST}:${peer}`;

/** The members, as etcd itself lists them. */
async function names({ http }: Member): Promise<readonly string[]> {
  const response = await fetch(`http://${HOST}:${http}/v3/cluster/member/list`, { method: 'POST', body: '{}' });
  const { members } = (await response.json()) as { readonly members: readonly { readonly name: string }[] };
  return members.map(({ name }) => name).sort();
}

/** How many other members a member is connected to. */
async function activePeers({ metrics }: Member): Promise<number> {
  const text = await (await fetch(`http://${HOST}:${metrics}/metrics`)).text();
  return text.split('\n').filter((line) => /^etcd_network_active_peers\{.*\} 1$/.test(line)).length;
}

/** Runs shell with the functions on the machine of a member. @param as - the name in its folder */
function run(
  shell: readonly string[],
  body: string,
  { peer = 1, as = '' }: { peer?: number; as?: string } = {},
): ScriptResult {
  const given = inputOf({ distribution: 'k3s', nodes: [node(HOST)] }) as K3sInput;
  file('name', as);
  const pieces = [FAIL_FUNCTION, WAIT_FUNCTION, etcdMemberFunctions(given, given.nodes[0]!), body];
  const text = buildScript({ cluster: 'prod', id: 'a', doing: 'asking', stateFolder: state }, pieces)
    .replaceAll('/var/lib/rancher/k3s/server/tls/etcd', folder)
    .replaceAll('/var/lib/rancher/k3s/server/db/etcd', folder)
    // Here members differ by their ports.
    .replaceAll('$1:2379', `${HOST}:$1`)
    .replaceAll(`https://${HOST}:2380`, `http://${HOST}:${peer}`);
  // A proxy is for the internet.
  return runScript(shell, text, [], {
    ...process.env,
    https_proxy: 'http://127.0.0.1:9',
    http_proxy: 'http://127.0.0.1:9',
  }).answer;
}

const ASK = `if ask_etcd $hosts; then give found "$(if [ -n "$member" ]; then printf yes; else printf no; fi)"; else give found unknown; fi
finish`;
const LEAVE = 'if leave_etcd $hosts; then finish; fi; broken LeaveFailed "it is still a member"';
const hosts = (...members: readonly Member[]): string => `hosts='${members.map(({ client }) => client).join(' ')}'\n`;

beforeAll(async () => {
  const { etcd } = await prepare({ components: 'api', kubectl: false });
  program = etcd!;
  const server = authority.server('etcd-server', [HOST]);
  const client = authority.client({ commonName: 'etcd-client' });
  file('server-ca.crt', authority.certificate);
  for (const [name, { certificate, key }] of Object.entries({ server, client })) {
    file(`${name}.crt`, certificate);
    file(`${name}.key`, key);
  }
});
afterAll(() => Promise.all([...running.values()].map((process) => process.kill())));

test('a member is found by its name and its address, leaves where etcd lets it, and etcd is never asked for too much', async () => {
  const [one, two, three] = (await start('s1-0a1b2c3d', 's2-0a1b2c3d', 's3-0a1b2c3d')) as [Member, Member, Member];
  const found = (
    shell: readonly string[],
    asked: string,
    machine: { peer?: number; as?: string },
  ): string | undefined => decodeOutput(run(shell, `${asked}${ASK}`, machine), 'found');
  for (const [, shell] of shells) {
    for (const each of [one, two, three]) {
      expect(found(shell, hosts(two), { as: each.name })).toBe('yes');
      expect(found(shell, hosts(two), { peer: each.peer })).toBe('yes');
    }
    expect(found(shell, hosts(one), { as: 's2-deadbeef' })).toBe('no');
    // The first of these does not answer.
    expect(found(shell, hosts({ ...one, client: 1 }, three), { as: two.name })).toBe('yes');
    expect(found(shell, hosts({ ...one, client: 1 }), { as: two.name })).toBe('unknown');
    expect(found(shell, hosts(), { as: two.name })).toBe('unknown');
    // HTTP is answered there, but not gRPC.
    expect(found(shell, hosts({ ...one, client: one.metrics }), { as: two.name })).toBe('unknown');
  }
  const [, shell] = shells[0]!;
  const health = etcdIsHealthy(inputOf({ distribution: 'k3s', nodes: [node(HOST)] }) as K3sInput);
  const asked = (port: number): ScriptResult =>
    run(shell, `${health.replace('2381', String(port))} || die Down 'it is not healthy'\nfinish`);
  expect(asked(one.metrics).ok).toBe(true);
  expect(asked(1)).toMatchObject({ ok: false, reason: 'Down' });

  // Without the third, the second is needed.
  await running.get(three.name)!.kill();
  // Until etcd has noticed, it would let the second leave, and then have no majority.
  await waitFor(async () => (await activePeers(one)) === 1, { describe: 'etcd to miss the third', timeout: 30_000 });
  await waitFor(() => run(shell, `${hosts(one)}${LEAVE}`, { as: two.name }).message?.includes('unhealthy') === true, {
    describe: 'etcd to refuse',
    timeout: 30_000,
  });
  expect(await names(one)).toEqual([one.name, two.name, three.name]);
  // A member that is down may go, and then the second.
  expect(
    run(shell, `${hosts(one)}wait_for 30 leave_etcd $hosts || broken LeaveFailed no\nfinish`, { as: three.name }),
  ).toEqual({
    ok: true,
    changed: true,
  });
  expect(
    run(shell, `${hosts(one)}wait_for 30 leave_etcd $hosts || broken LeaveFailed no\nfinish`, { peer: two.peer }),
  ).toEqual({
    ok: true,
    changed: true,
  });
  expect(await names(one)).toEqual([one.name]);
  expect(run(shell, `${hosts(one)}${LEAVE}`, { as: two.name })).toEqual({ ok: true, changed: false });
});

test('a member that is cut off from the others is not believed', async () => {
  const [one, two] = (await start('c1-0a1b2c3d', 'c2-0a1b2c3d')) as [Member, Member];
  await running.get(two.name)!.kill();
  const [, shell] = shells[0]!;
  expect(decodeOutput(run(shell, `${hosts(one)}${ASK}`, { as: 'c3-0a1b2c3d' }), 'found')).toBe('unknown');
});
