import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clusterTasks, type K3sInput, type PlanOptions } from '../../../provision';
import { temporaryFolder } from '../../support/temporary-folder';
import { inputOf, node, type GivenInput } from '../inputs';
import { runScript, type Run } from '../shells';

export const ADDRESS = '10.0.0.1';

/** A cluster of one server, which is the machine's. */
export const input = (given: GivenInput = {}): K3sInput =>
  inputOf({ distribution: 'k3s', nodes: [node(ADDRESS)], ...given }) as K3sInput;

/** What is done for a node; `leave` takes back what `ready` did, `uninstall` what `install` did. */
type Step = 'drain' | 'install' | 'ready' | 'snapshot' | 'members' | 'leave' | 'uninstall';

const STEPS: Readonly<Partial<Record<Step, { readonly applied?: Step; readonly id?: string }>>> = {
  snapshot: { id: 'snapshot' },
  members: { id: 'members' },
  leave: { applied: 'ready' },
  uninstall: { applied: 'install' },
};

/** A machine with one node: programs that keep what they are told in files. */
export class StandInServer {
  readonly #folder = temporaryFolder('taken-back-');

  constructor(private readonly shell: readonly string[]) {
    for (const name of ['bin', 'db', 'etc']) mkdirSync(this.path(name));
    this.set('version', input().version);
    this.#program('k3s', K3S);
    this.#program('systemctl', SYSTEMCTL);
    this.#program('curl', CURL);
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

  set(name: string, value: string | Uint8Array): void {
    writeFileSync(this.path(`db/${name}`), value);
  }

  unset(name: string): void {
    rmSync(this.path(`db/${name}`), { force: true });
  }

  /** Runs a step of a plan, with what was given to it. */
  run(wanted: K3sInput, step: Step, values: Readonly<Record<string, string>> = {}, options: PlanOptions = {}): Run {
    const { applied = step, id = `${ADDRESS}/${applied}` } = STEPS[step] ?? {};
    const task = clusterTasks(wanted, options).find((one) => one.id === id)!;
    const text = (applied === step ? task.apply : task.remove!)
      .replaceAll('/var/lib/kindred', this.path('state'))
      .replaceAll('/etc/rancher', this.path('etc'))
      .replaceAll('wait_for 600', 'wait_for 0')
      .replaceAll('wait_for 60 leave_etcd', 'wait_for 0 leave_etcd')
      .replaceAll('/var/lib/rancher', this.path('data'))
      // What is installed on this very machine is none of the test's.
      .replaceAll('/usr/local/bin/k3s /usr/bin/k3s /opt/rke2/bin/k3s', this.path('k3s'))
      .replaceAll(/k3s-(agent-)?uninstall\.sh/g, 'no-such-uninstaller');
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
echo "$*" >>asked
if [ -e fails ]; then case "$*" in *"$(cat fails)"*) echo 'the server is currently unable to handle the request' >&2; exit 1 ;; esac; fi
case "$*" in
  'get nodes -l kindred.dev/node -o '*) cat nodelist ;;
  'delete node '*) grep -v "^$3|" nodelist >left || :; mv left nodelist ;;
  'get nodes -l node-role.kubernetes.io/etcd=true '*) cat members 2>/dev/null || printf 'n1 n2' ;;
  'get nodes -l '*) printf n1 ;;
  'get nodes -o '*) cat nodes 2>/dev/null || printf n1 ;;
  *status.conditions*) printf 'True it is ready' ;;
  *kubeletVersion*) cat version ;;
  *spec.taints*) cat taints 2>/dev/null ;;
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

/** A service that starts, unless its configuration has what it does not know; it does so while it is asked as often as `starting` has lines. */
const SYSTEMCTL = `case "$1" in
  start) echo start >>calls; if ! grep -q no-such-flag ../etc/k3s/config.yaml; then touch active; fi ;;
  stop) echo stop >>stops; rm -f active starting ;;
  is-active)
    if [ -s starting ]; then sed -i 1d starting; state=activating; elif [ -e active ]; then state=active; else state=inactive; fi
    if [ "$2" != --quiet ]; then echo "$state"; fi
    [ "$state" = active ] ;;
esac
`;

/**
 * etcd of another machine: `etcd` is its answer to MemberList, without which nobody answers, `etcd-after` that after a removal, unless
 * `etcd-refuses`. What it was asked is in `asked-etcd`, the message of a removal in `etcd-removal`. This machine's own is healthy while its service is active.
 */
const CURL = String.raw`for word; do url=$word; done
case $url in
  */health) if [ -e active ]; then echo '{"health":"true"}'; exit 0; fi; exit 7 ;;
  */etcdserverpb.Cluster/*) ;;
  *) exit 7 ;;
esac
echo "${'$'}{url#https://}" >>asked-etcd
if [ ! -e etcd ]; then exit 7; fi
while [ "$1" != -D ]; do shift; done
status=0
case $url in
  *MemberList) cat >/dev/null; cp etcd "$4" ;;
  *) cat >etcd-removal; : >"$4"; if [ -e etcd-refuses ]; then status=14; else mv etcd-after etcd; fi ;;
esac
printf 'HTTP/2 200 \r\ngrpc-status: %s\r\n\r\n' "$status" >"$2"
`;
