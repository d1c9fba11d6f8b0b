import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { delimiter } from 'node:path';
import { decodeOutput } from '../../../provision/task/script-io';
import {
  CHECK_BRIDGE_MODULE,
  CHECK_CLOCK,
  REQUIRE_DOWNLOADER,
  CHECK_NETWORK_SERVICES,
  checkArchitecture,
  checkForeignInstallation,
  checkFreeDisk,
  checkFreePorts,
  checkHostName,
  requirePrograms,
  CHECK_SWAP,
  preflightFunctions,
  unlessInstalled,
} from '../../../provision/shell/preflight';
import { buildScript } from '../../../provision/shell/script';
import { temporaryFolder } from '../../support/temporary-folder';
import { runScript, shells, type Run } from '../shells';

/** Functions that answer as the programs of another machine; BusyBox would not look for programs that it has built in. */
const standIns = (programs: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(programs).map(([name, text]) => `${name}() (\n${text}\n)`);

/** Programs of a machine that answers otherwise than this one. */
function machine(programs: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const folder = temporaryFolder('machine-');
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(`${folder}/${name}`, `#!/bin/sh\n${text}\n`);
    chmodSync(`${folder}/${name}`, 0o755);
  }
  return { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH ?? ''}` };
}

describe.each(shells)('%s', (_, shell) => {
  function look(pieces: readonly string[], programs: Readonly<Record<string, string>> = {}): Run {
    const stateFolder = temporaryFolder('preflight-');
    const text = buildScript({ cluster: 'one', id: 'a/preflight', doing: 'looking', stateFolder }, [
      preflightFunctions('10.0.0.1'),
      ...standIns(programs),
      ...pieces,
      'report',
    ]);
    return runScript(shell, text);
  }
  const found = (pieces: readonly string[], programs: Readonly<Record<string, string>> = {}): readonly string[] => {
    const { answer } = look(pieces, programs);
    return (answer.message ?? '').split('\n').filter((line) => line.startsWith('  - '));
  };

  test('all problems of a machine at once, and where', () => {
    const pieces = [
      requirePrograms(['awk', 'no-such-program']),
      checkArchitecture(['riscv64', 'sparc']),
      checkFreeDisk('/no/such/folder', 2 ** 40),
      CHECK_SWAP,
    ];
    const { answer, code } = look(pieces);
    expect([answer.ok, answer.changed, answer.reason, code]).toEqual([false, false, 'PreflightFailed', 1]);
    const lines = (answer.message ?? '').split('\n');
    expect(lines[0]).toBe('node 10.0.0.1: 3 thing(s) must be changed before anything is done:');
    expect(lines[1]).toBe('  - the program no-such-program: is missing; install it');
    expect(lines[2]).toMatch(/^ {2}- the processor: is \S+; the distribution is made for riscv64, sparc$/);
    expect(lines[3]).toMatch(/^ {2}- the disk of \/: has \d+ MiB free; 1099511627776 MiB are needed: make room on it$/);
  });

  test('a sound machine passes', () => {
    const pieces = [
      requirePrograms(['awk', 'sed']),
      checkArchitecture(['x86_64', 'aarch64']),
      checkFreeDisk('/tmp', 1),
      checkHostName('one'),
    ];
    expect(look(pieces).answer).toMatchObject({ ok: true, changed: false });
  });

  test.each(['localhost', '', 'a_b', '-a', 'a.', 'a..b', 'a-.b', 'a.-b', 'a b', 'My_Host'])(
    'the host name %j is none, and shows',
    (name) => {
      expect(found([checkHostName(undefined)], { hostname: `echo '${name}'` })).toEqual([
        `  - the machine's host name: is "${name.toLowerCase()}", which no node can be called; give it one of letters, digits and - ` +
          '(hostnamectl hostname NAME), or set hostnameOverride',
      ]);
    },
  );

  test('a host name shows where something else has that name', () => {
    expect(found([checkHostName('kubelet'), "problem 'port 10250' 'is in use by kubelet'"])).toEqual([
      '  - port 10250: is in use by kubelet',
    ]);
  });

  test('a host name that is too long for a label', () => {
    const longest = `${'a'.repeat(31)}.${'b'.repeat(31)}`;
    expect(decodeOutput(look([checkHostName(longest)]).answer, 'hostname')).toBe(longest);
    expect(found([checkHostName(`${longest}c`)])).toEqual([
      `  - hostnameOverride: is "${longest}c", of 64 characters; a node's name has at most 63: give it a shorter one ` +
        '(hostnamectl hostname NAME), or set hostnameOverride',
    ]);
  });

  test('the host name is given, as the node will have it', () => {
    expect(
      decodeOutput(look([checkHostName(undefined)], { hostname: 'echo Node-1.Example.com' }).answer, 'hostname'),
    ).toBe('node-1.example.com');
    expect(decodeOutput(look([checkHostName('given')], { hostname: 'echo localhost' }).answer, 'hostname')).toBe(
      'given',
    );
  });

  test('a port that is in use', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '::', resolve));
    const { port } = server.address() as AddressInfo;
    expect(found([checkFreePorts([1, port])])).toEqual([
      `  - port ${port}: is in use on the machine (ss -ltnp says by what); stop that`,
    ]);
    await new Promise((resolve) => server.close(resolve));
    expect(found([checkFreePorts([1, port])])).toEqual([]);
  });

  test('the kernel module, the clock, the downloader', () => {
    // Where the module is loaded there is nothing to find.
    const module = found([CHECK_BRIDGE_MODULE.replaceAll('/proc/sys/net/bridge', '/no/such')], { modprobe: 'exit 1' });
    expect(module).toEqual([expect.stringContaining('the kernel module br_netfilter: is neither loaded')]);
    expect(found([CHECK_BRIDGE_MODULE.replaceAll('/proc/sys/net/bridge', '/no/such')], { modprobe: 'exit 0' })).toEqual(
      [],
    );
    expect(found([CHECK_CLOCK], { date: 'echo 1970' })).toEqual([
      '  - the clock: says 1970; set it, and let chrony or systemd-timesyncd keep it',
    ]);
    expect(found([CHECK_CLOCK], { timedatectl: 'echo no' })).toEqual([]);
    expect(look([CHECK_CLOCK], { timedatectl: 'echo no' }).answer.message).toContain(
      'node 10.0.0.1: the clock is not kept by NTP',
    );
    expect(found([REQUIRE_DOWNLOADER], { curl: 'exit 0' })).toEqual([]);
  });

  test('firewalls are a warning', () => {
    const { answer } = look([CHECK_NETWORK_SERVICES], { systemctl: 'exit 0' });
    expect([answer.ok, answer.message?.split('\n')[0]]).toEqual([
      true,
      'node 10.0.0.1: firewalld runs: open the ports of the distribution and the networks of pods and Services, or stop it',
    ]);
  });

  test('what others installed, and what is ours', () => {
    const stateFolder = temporaryFolder('foreign-');
    const foreign = {
      stateFolder,
      programs: ['foreign-program', 'no-such-program'],
      folders: [stateFolder, '/no/such'],
    };
    const pieces = [checkForeignInstallation(foreign), unlessInstalled([`problem 'the rest' 'was looked at'`])];
    const run = (cluster: string): Run['answer'] =>
      runScript(
        shell,
        buildScript({ cluster, id: 'a', doing: 'looking', stateFolder }, [
          preflightFunctions('10.0.0.1'),
          ...pieces,
          'report',
        ]),
        [],
        machine({ 'foreign-program': 'exit 0' }),
      ).answer;
    expect(run('one').message).toMatch(
      /3 thing\(s\).*\n {2}- .*foreign-program: is on the machine.*\n {2}- .*: is left of another installation.*\n {2}- the rest/,
    );
    mkdirSync(`${stateFolder}/one`, { recursive: true });
    writeFileSync(`${stateFolder}/one/installation`, 'rke2 server\n');
    expect(run('one')).toEqual({ ok: true, changed: false });
    expect(run('two').message).toMatch(/1 thing\(s\).*\n {2}- the machine: belongs to the cluster one; take it out/);
  });
});
