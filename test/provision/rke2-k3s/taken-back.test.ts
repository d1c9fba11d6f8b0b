import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { base64, decodeOutput } from '../../../provision';
import { nodeConfigHash } from '../../../provision/rke2-k3s/config';
import { ISSUE_CHANGE_TOKEN } from '../../../provision/rke2-k3s/change-token';
import { preflightFunctions } from '../../../provision/shell/preflight';
import { buildScript } from '../../../provision/shell/script';
import { temporaryFolder } from '../../support/temporary-folder';
import { missingShells, runScript, shells } from '../shells';
import { ADDRESS, StandInServer, input } from './stand-in-server';

/** What the scripts make of a change that failed halfway and was taken back, on folders of this machine, under each shell that is here. */

if (missingShells.length > 0) console.warn(`not tested, because not installed: ${missingShells.join(', ')}`);

const [OLD, NEW] = [input(), input({ version: 'v1.34.9+k3s1' })];
const BAD = input({ options: { extraArgs: { kubelet: { 'no-such-flag': 'x' } } } });

/** What draining answers about a node that the cluster knows. */
const known = (changed: boolean) => ({ ok: true, changed, outputs: { node: base64('yes') } });
const GIVEN = { node: 'yes', token: 't'.repeat(64), secret_config: 'token: "t"\n' };

describe.each(shells)('%s', (_, shell) => {
  test('drain takes back a cordon of ours', () => {
    const machine = new StandInServer(shell);
    machine.set('applied', nodeConfigHash(OLD, OLD.nodes[0]!));
    expect(machine.run(NEW, 'drain').answer).toEqual(known(true));
    expect([machine.get('unschedulable'), machine.get('cordoned')]).toEqual([
      'true',
      expect.stringMatching(/^\w{16}$/),
    ]);
    machine.set('refuses', '');
    expect(machine.run(OLD, 'drain').answer).toMatchObject({ ok: false, reason: 'UncordonFailed' });
    expect(machine.get('cordoned')).not.toBe('');
    machine.unset('refuses');
    expect(machine.run(OLD, 'drain').answer).toEqual(known(true));
    expect([machine.get('unschedulable'), machine.get('cordoned')]).toEqual(['', '']);
    expect(machine.run(OLD, 'drain').answer).toEqual(known(false));
  });

  test("drain leaves somebody else's cordon alone", () => {
    const machine = new StandInServer(shell);
    machine.set('applied', nodeConfigHash(OLD, OLD.nodes[0]!));
    machine.set('unschedulable', 'true');
    for (const wanted of [NEW, OLD]) {
      expect(machine.run(wanted, 'drain').answer).toEqual(known(false));
      expect([machine.get('unschedulable'), machine.get('cordoned')]).toEqual(['true', '']);
    }
  });

  test('install writes again what was there before, even though the service came up late', () => {
    const machine = new StandInServer(shell);
    const config = (): string => readFileSync(machine.path('etc/k3s/config.yaml'), 'utf8');
    expect(machine.run(OLD, 'install', GIVEN).answer).toEqual({ ok: true, changed: true });
    const before = config();
    expect(machine.run(OLD, 'install', { ...GIVEN, turn: 'another' }).answer).toEqual({ ok: true, changed: false });
    expect(machine.run(BAD, 'install', GIVEN).answer).toMatchObject({ ok: false, reason: 'NotUp' });
    expect(config()).not.toBe(before);
    machine.set('active', '');
    expect(machine.run(OLD, 'install', GIVEN).answer).toEqual({ ok: true, changed: true });
    expect(config()).toBe(before);
    expect(machine.get('calls')).toBe('start\n'.repeat(3));
  });

  test('the preflight gives each change a turn of its own, one that is asked again the same, and one that it refuses none', () => {
    const stateFolder = temporaryFolder('turns-');
    const look = (change: string, refuse = ':'): string | undefined => {
      const value = { name: 'change', from: { text: '' } };
      const props = { cluster: 'prod', id: `${ADDRESS}/preflight`, doing: 'looking', stdin: [value], stateFolder };
      const text = buildScript(props, [preflightFunctions(ADDRESS), refuse, ISSUE_CHANGE_TOKEN, 'report']);
      return decodeOutput(runScript(shell, text, [{ name: 'change', value: change }]).answer, 'turn');
    };
    const first = look('aa');
    expect(first).toMatch(/^[0-9a-f]{16}$/);
    expect(look('bb', 'problem a b')).toBeUndefined();
    expect(look('aa')).toBe(first);
    const turns = [first, look('bb'), look('aa')];
    expect(look('aa')).toBe(turns[2]);
    rmSync(join(stateFolder, 'prod'), { recursive: true });
    expect(new Set([...turns, look('aa')]).size).toBe(4);
  });
});
