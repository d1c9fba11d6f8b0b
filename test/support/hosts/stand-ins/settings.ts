import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, readdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'yaml';

/** What the stand-in knows from its configuration files, as RKE2 and K3s have them. */
export interface Settings {
  readonly program: 'rke2' | 'k3s';
  readonly version: string;
  readonly token: string;
  /** Host of the server to join. None: this one begins the cluster. */
  readonly join: string | undefined;
  readonly nodeName: string;
  readonly nodeIp: string;
  readonly labels: readonly string[];
  readonly taints: readonly string[];
  readonly sans: readonly string[];
  readonly data: string;
  /** Where the administrator's kubeconfig is written. */
  readonly kubeconfig: string;
  readonly kubeconfigMode: number;
}

type Values = Readonly<Record<string, unknown>>;

/** Reads `config.yaml`, then `config.yaml.d/*.yaml`, which win. */
export function readSettings(program: 'rke2' | 'k3s', version: string): Settings {
  const folder = `/etc/rancher/${program}`;
  const values: Values = Object.fromEntries(
    configFiles(folder).flatMap((file) => Object.entries(parse(readFileSync(file, 'utf8')) as Values)),
  );
  const text = (key: string): string | undefined => (typeof values[key] === 'string' ? values[key] : undefined);
  const list = (key: string): readonly string[] => [values[key] ?? []].flat().map(String);
  const server = text('server');
  return {
    program,
    version,
    token: text('token') ?? '',
    join: server === undefined ? undefined : new URL(server).hostname,
    nodeName: text('node-name') ?? hostname(),
    nodeIp: text('node-ip') ?? '127.0.0.1',
    labels: list('node-label'),
    taints: list('node-taint'),
    sans: list('tls-san'),
    data: text('data-dir') ?? `/var/lib/rancher/${program}`,
    kubeconfig: join(folder, `${program}.yaml`),
    kubeconfigMode: Number.parseInt(text('write-kubeconfig-mode') ?? '600', 8),
  };
}

function configFiles(folder: string): readonly string[] {
  const more = join(folder, 'config.yaml.d');
  const files = existsSync(more) ? readdirSync(more).sort() : [];
  return [
    join(folder, 'config.yaml'),
    ...files.filter((name) => name.endsWith('.yaml')).map((name) => join(more, name)),
  ];
}

const parts = '/opt/stand-in/bin';

/** Starts a part; when it ends, so does this process, and the service manager starts all of it again. */
export function startPart(name: string, args: readonly string[], logFolder: string): void {
  mkdirSync(logFolder, { recursive: true, mode: 0o700 });
  const log = openSync(join(logFolder, `${name}.log`), 'a', 0o600);
  const env = { PATH: process.env['PATH'], HOME: '/root', TMPDIR: '/tmp' };
  const child = spawn(join(parts, name), args, { stdio: ['ignore', log, log], env });
  closeSync(log);
  child.once('error', (error) => fail(`${name} cannot be started: ${error.message}`));
  child.once('exit', (code, signal) => fail(`${name} ended (${String(code ?? signal)}); see ${logFolder}/${name}.log`));
  process.once('exit', () => child.kill('SIGKILL'));
}

/** Ends this process with a word in the service's log. */
export function fail(message: string): never {
  console.log(`level=fatal msg=${JSON.stringify(message)}`);
  process.exit(1);
}

/** Repeats until it gives something. What it throws counts as nothing. @throws after the time, with what it last threw */
export async function waitUntil<T>(
  what: string,
  seconds: number,
  act: () => Promise<T | undefined | false>,
): Promise<T> {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    let last = 'no';
    try {
      const value = await act();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    if (Date.now() > end) throw new Error(`${what} took more than ${seconds} s: ${last}`);
    await delay(200);
  }
}
