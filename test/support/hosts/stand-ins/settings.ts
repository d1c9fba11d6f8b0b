import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
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
