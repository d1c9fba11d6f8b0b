import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { K3sInput } from '../../../../constructs/provision';
import { clusterTasks, outputText } from '../../../../constructs/provision';
import { nodeGeneration } from '../../../../constructs/provision/server/config';
import { GIVE_TURN } from '../../../../constructs/provision/server/turn';
import { preflightStart } from '../../../../constructs/provision/shell/preflight';
import { script } from '../../../../constructs/provision/shell/script';
import { temporaryFolder } from '../../../support/temporary-folder';
import { inputOf, node } from '../inputs';
import type { GivenInput } from '../inputs';
import { missingShells, runScript, shells } from '../shells';
import type { Run } from '../shells';

/** What the scripts make of a change that failed halfway and was taken back, on folders of this machine, under each shell that is here. */

if (missingShells.length > 0) console.warn(`not tested, because not installed: ${missingShells.join(', ')}`);

const ADDRESS = '10.0.0.1';
const input = (given: GivenInput = {}): K3sInput =>
  inputOf({ distribution: 'k3s', nodes: [node(ADDRESS)], ...given }) as K3sInput;
const [OLD, NEW] = [input(), input({ version: 'v1.34.9+k3s1' })];
const BAD = input({ options: { extraArgs: { kubelet: { 'no-such-flag': 'x' } } } });

/** A machine with one node: programs that keep what they are told in files. */
class StandInMachine {
  readonly #folder = temporaryFolder('taken-back-');

  constructor(private readonly shell: readonly string[]) {
    for (const name of ['bin', 'db', 'etc']) mkdirSync(this.path(name));
    this.set('version', OLD.version);
    this.#program('k3s', K3S);
    this.#program('systemctl', SYSTEMCTL);
    // Of an administrator; without it there is no cluster yet.
    mkdirSync(this.path('etc/k3s'));
    writeFileSync(this.path('etc/k3s/k3s.yaml'), 'x');
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  get(name: string): string {
    return existsSync(this.path(`db/${name}`)) ? readFileSync(this.path(`db/${name}`), 'utf8') : '';
  }

  set(name: string, value: string): void {
    writeFileSync(this.path(`db/${name}`), value);
  }

  unset(name: string): void {
    rmSync(this.path(`db/${name}`), { force: true });
  }

  /** Runs a step of a plan, with what was given to it. */
  run(wanted: K3sInput, step: 'drain' | 'install', values: Readonly<Record<string, string>> = {}): Run {
    const task = clusterTasks(wanted).find(({ id }) => id === `${ADDRESS}/${step}`)!;
    const text = task.apply
      .replaceAll('/var/lib/kindred', this.path('state'))
      .replaceAll('/etc/rancher', this.path('etc'))
      .replaceAll('wait_for 600', 'wait_for 0');
    const env = { ...process.env, PATH: `${this.path('bin')}:${process.env['PATH'] ?? ''}` };
    const stdin = Object.entries(values).map(([name, value]) => ({ name, value }));
    return runScript(this.shell, text, stdin, env);
  }

  #program(name: string, text: string): void {
    writeFileSync(this.path(`bin/${name}`), `#!/bin/sh\ncd '${this.path('db')}'\n${text}`);
    chmodSync(this.path(`bin/${name}`), 0o755);
  }
}

const K3S = String.raw`if [ "$1" = --version ]; then echo "k3s version $(cat version) (abc)"; exit 0; fi
shift 3 # kubectl --kubeconfig FILE
case "$*" in
  'get nodes -l '*) printf n1 ;;
  *unschedulable*) cat unschedulable 2>/dev/null ;;
  *'annotations.kindred\.dev/'*) key=${'$'}{*##*/}; cat "${'$'}{key%\}}" 2>/dev/null ;;
  'annotate node '*)
    for each; do
      each=${'$'}{each#kindred.dev/}
      case $each in *=*) printf %s "${'$'}{each#*=}" >"${'$'}{each%%=*}" ;; *-) rm -f "${'$'}{each%-}" ;; esac
    done ;;
  'cordon '*) printf true >unschedulable ;;
  'uncordon '*) if [ -e refuses ]; then exit 1; fi; rm -f unschedulable ;;
esac
exit 0
`;

/** A service that starts, unless its configuration has what it does not know. */
const SYSTEMCTL = `case "$1" in
  start) echo start >>calls; if ! grep -q no-such-flag ../etc/k3s/config.yaml; then touch active; fi ;;
  stop) rm -f active ;;
  is-active) [ -e active ] ;;
esac
`;

const TOKEN = { token: 't'.repeat(64), secret_config: 'token: "t"\n' };

describe.each(shells)('%s', (_, shell) => {
  test('drain takes back a cordon of ours', () => {
    const machine = new StandInMachine(shell);
    machine.set('applied', nodeGeneration(OLD, OLD.nodes[0]!));
    expect(machine.run(NEW, 'drain').answer).toEqual({ ok: true, changed: true });
    expect([machine.get('unschedulable'), machine.get('cordoned')]).toEqual([
      'true',
      expect.stringMatching(/^\w{16}$/),
    ]);
    machine.set('refuses', '');
    expect(machine.run(OLD, 'drain').answer).toMatchObject({ ok: false, reason: 'UncordonFailed' });
    expect(machine.get('cordoned')).not.toBe('');
    machine.unset('refuses');
    expect(machine.run(OLD, 'drain').answer).toEqual({ ok: true, changed: true });
    expect([machine.get('unschedulable'), machine.get('cordoned')]).toEqual(['', '']);
    expect(machine.run(OLD, 'drain').answer).toEqual({ ok: true, changed: false });
  });

  test("drain leaves somebody else's cordon alone", () => {
    const machine = new StandInMachine(shell);
    machine.set('applied', nodeGeneration(OLD, OLD.nodes[0]!));
    machine.set('unschedulable', 'true');
    for (const wanted of [NEW, OLD]) {
      expect(machine.run(wanted, 'drain').answer).toEqual({ ok: true, changed: false });
      expect([machine.get('unschedulable'), machine.get('cordoned')]).toEqual(['true', '']);
    }
  });

  test('install writes again what was there before, even though the service came up late', () => {
    const machine = new StandInMachine(shell);
    const config = (): string => readFileSync(machine.path('etc/k3s/config.yaml'), 'utf8');
    expect(machine.run(OLD, 'install', TOKEN).answer).toEqual({ ok: true, changed: true });
    const before = config();
    expect(machine.run(OLD, 'install', { ...TOKEN, turn: 'another' }).answer).toEqual({ ok: true, changed: false });
    expect(machine.run(BAD, 'install', TOKEN).answer).toMatchObject({ ok: false, reason: 'NotUp' });
    expect(config()).not.toBe(before);
    machine.set('active', '');
    expect(machine.run(OLD, 'install', TOKEN).answer).toEqual({ ok: true, changed: true });
    expect(config()).toBe(before);
    expect(machine.get('calls')).toBe('start\n'.repeat(3));
  });

  test('the preflight gives each change a turn of its own, one that is asked again the same, and one that it refuses none', () => {
    const stateFolder = temporaryFolder('turns-');
    const look = (change: string, refuse = ':'): string | undefined => {
      const value = { name: 'change', from: { text: '' } };
      const props = { cluster: 'prod', id: `${ADDRESS}/preflight`, doing: 'looking', stdin: [value], stateFolder };
      const text = script(props, [preflightStart(ADDRESS), refuse, GIVE_TURN, 'report']);
      return outputText(runScript(shell, text, [{ name: 'change', value: change }]).answer, 'turn');
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
