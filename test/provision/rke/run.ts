import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  decodeOutput,
  parseScriptResult,
  renderSource,
  encodeStdin,
  type ScriptResult,
  type ExternalSource,
  type RkeInput,
  type Task,
} from '../../../provision';
import { rkeTasks, type RkeTaskOptions } from '../../../provision/rke/tasks';
import { installFakeRke, startFakeSshServer, type FakeRkeBinary, type FakeSshServer } from '../../support/rke/rke';
import { waitForPid } from '../../support/processes';
import { temporaryFolder } from '../../support/temporary-folder';
import { node, rkeInput } from './fixtures';

/** Secrets by `name/key`; all of them have a canary in them. */
export type Secrets = Map<string, string>;

/** Two or more machines that keep RKE's state, a stand-in for `rke`, and what carries tasks out. */
export interface Lab {
  /** With the machines' homes, and the SSH key `id`. */
  readonly folder: string;
  readonly rke: FakeRkeBinary;
  /** The machines as they are now. */
  readonly homes: readonly FakeSshServer[];
  /** Closes a machine's SSH server, if it is open, and starts another for the same home at the same address and port. */
  restart(machine: number, options: { readonly key: 'same' | 'new' }): Promise<void>;
  readonly secrets: Secrets;
  /** What the tasks gave so far, by `task/name`. */
  readonly outputs: Map<string, string>;
  /** An input for the first machines. */
  input(count: number, fields?: Parameters<typeof rkeInput>[0]): RkeInput;
  /** @param shell - @default `sh` */
  start(task: Task, script: string, shell?: readonly [string, ...string[]]): Running;
  /** Runs a task to its end and keeps its outputs, as a carrier does. */
  carry(task: Task, shell?: readonly [string, ...string[]]): Promise<ScriptResult>;
  /** The same for a task of an input's plan. */
  apply(input: RkeInput, id: string, options?: RkeTaskOptions): Promise<ScriptResult>;
  remove(input: RkeInput): Promise<ScriptResult>;
  /** Starts a task of an input's plan whose `rke` does not end. @returns the run, and the pid of `rke` */
  startHanging(input: RkeInput, id: string): Promise<{ readonly running: Running; readonly rke: number }>;
  /** Looks at all processes of this machine during each run from now on. That takes half of a core. */
  watchProcesses(): void;
  /** All that was seen of any process' command line and environment since `watchProcesses`. */
  readonly seen: Set<string>;
  close(): Promise<void>;
}

/** A script that runs. */
export interface Running {
  readonly pid: number;
  readonly done: Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>;
}

/** Starts a lab before each test, and closes it after it. @param use - gets the lab */
export function labForEachTest(machines: number, use: (lab: Lab) => void): void {
  const folder = temporaryFolder('kindred-rke-');
  let lab: Lab;
  let count = 0;
  beforeEach(async () => {
    lab = await startLab(join(folder, `lab-${(count += 1)}`), machines);
    use(lab);
  });
  afterEach(async () => {
    await lab.close();
  });
}

export async function startLab(folder: string, count: number): Promise<Lab> {
  mkdirSync(folder, { recursive: true });
  const key = join(folder, 'id');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', key]);
  const publicKey = readFileSync(`${key}.pub`, 'utf8');
  const rke = installFakeRke(join(folder, 'rke'));
  shortenSleep(rke.bin);
  const homes = await Promise.all(
    Array.from({ length: count }, (_, i) =>
      startFakeSshServer(join(folder, `home-${i}`), `127.0.0.${i + 11}`, publicKey),
    ),
  );
  const secrets: Secrets = new Map([
    ['ssh/ssh-privatekey', readFileSync(key, 'utf8')],
    ['registry/username', 'CANARY-user'],
    ['registry/password', 'CANARY "pass\\word'],
  ]);
  const outputs = new Map<string, string>();
  const seen = new Set<string>();
  let isWatched = false;
  const name = `lab-${process.pid}-${folder
    .replace(/[^a-z0-9]/gi, '')
    .slice(-12)
    .toLowerCase()}`;

  const lookup = (leaf: ExternalSource): string => {
    if ('secret' in leaf) return secrets.get(`${leaf.secret.name}/${leaf.secret.key}`) ?? '';
    if ('output' in leaf) return outputs.get(`${leaf.output.task}/${leaf.output.name}`) ?? '';
    return readFileSync(join(folder, leaf.file), 'utf8');
  };
  const start: Lab['start'] = (task, script, [shell, ...words] = ['sh']) => {
    const child = spawn(shell, [...words, '-c', script], {
      env: { PATH: `${rke.bin}:${pathWithoutRke()}` },
    });
    const watch = isWatched ? setInterval(() => lookAtProcesses(seen), 20) : undefined;
    child.stdin.on('error', () => undefined); // it was killed
    child.stdin.end(
      encodeStdin((task.stdin ?? []).map((value) => ({ name: value.name, value: renderSource(value.from, lookup) }))),
    );
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
    child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
    const done = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
      child.on('close', (code) => {
        clearInterval(watch);
        resolve({ code, stdout, stderr });
      }),
    );
    return { pid: child.pid!, done };
  };
  const finish = async (task: Task, running: Running): Promise<ScriptResult> => {
    const { code, stdout, stderr } = await running.done;
    const answer = parseScriptResult(stdout);
    expect(stderr).toBe('');
    expect({ code, ok: answer.ok }).toEqual({ code: answer.ok ? 0 : 1, ok: answer.ok });
    for (const output of Object.keys(answer.outputs ?? {})) {
      outputs.set(`${task.id}/${output}`, decodeOutput(answer, output)!);
    }
    return answer;
  };
  const taskOf = (input: RkeInput, id: string, options?: RkeTaskOptions): Task =>
    rkeTasks(input, options).find((task) => task.id === id)!;
  const restart: Lab['restart'] = async (i, { key: which }) => {
    const home = homes[i]!;
    const { address, port, privateKey } = home;
    await home.close();
    const former = { port, ...(which === 'same' ? { privateKey } : {}) };
    homes[i] = await startFakeSshServer(join(folder, `home-${i}`), address, publicKey, former);
  };
  return {
    ...{ folder, rke, homes, restart, secrets, outputs, seen, start },
    watchProcesses: () => (isWatched = true),
    carry: (task, shell) => finish(task, start(task, task.apply, shell)),
    input: (some, fields) =>
      rkeInput({
        name,
        nodes: homes.slice(0, some).map(({ address, port, hostKey }) => node({ address, port, hostKey })),
        ...fields,
      }),
    apply: (input, id, options) => {
      const task = taskOf(input, id, options);
      return finish(task, start(task, task.apply));
    },
    startHanging: async (input, id) => {
      rke.control({ fail: 'hang' });
      const task = taskOf(input, id);
      const running = start(task, task.apply);
      return { running, rke: await waitForPid(join(rke.folder, 'pid')) };
    },
    remove: (input) => {
      const task = taskOf(input, 'rke/up');
      return finish(task, start(task, task.remove!));
    },
    close: async () => {
      await Promise.all(homes.map((home) => home.close()));
    },
  };
}

/**
 * The scripts look at their locks each second: a run ends only when it has looked once more. Here they look five times a second. What the
 * machines wait for keeps its time.
 */
function shortenSleep(bin: string): void {
  const sleep = execFileSync('sh', ['-c', 'command -v sleep'], { encoding: 'utf8' }).trim();
  const text = `#!/bin/sh\ncase $1 in 1) set -- 0.2 ;; 0.2) set -- 0.05 ;; esac\nexec '${sleep}' "$@"\n`;
  writeFileSync(join(bin, 'sleep'), text);
  chmodSync(join(bin, 'sleep'), 0o755);
}

/** So that a real one on this machine is not taken for the stand-in. */
function pathWithoutRke(): string {
  const folders = (process.env['PATH'] ?? '').split(':');
  return folders.filter((entry) => !existsSync(join(entry, 'rke'))).join(':');
}

function lookAtProcesses(seen: Set<string>): void {
  for (const pid of readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name) && name !== String(process.pid))) {
    for (const file of ['cmdline', 'environ']) {
      try {
        seen.add(readFileSync(`/proc/${pid}/${file}`, 'utf8'));
      } catch {
        // It has ended meanwhile.
      }
    }
  }
}
