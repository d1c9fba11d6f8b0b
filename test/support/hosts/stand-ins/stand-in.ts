import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fail, readSettings, waitUntil, type Settings } from './settings';
import { saveSnapshot } from './etcd';
import { registerNode } from './node-object';
import { ready, runServer } from './server';
import { joinAsAgent } from './registration';

/** The program behind the stand-ins for `rke2` and `k3s`. Usage: `stand-in PROGRAM VERSION server|agent|etcd-snapshot ...`. */
async function main([program, version = '', command, ...rest]: readonly string[]): Promise<void> {
  if (program !== 'rke2' && program !== 'k3s') fail(`no stand-in for ${String(program)}`);
  process.once('SIGTERM', () => process.exit(0));
  const settings = readSettings(program, version);
  switch (command) {
    case 'server':
      return runServer(settings);
    case 'agent':
      return runAgent(settings);
    case 'etcd-snapshot':
      return snapshot(settings, rest);
    default:
      fail(`no stand-in for ${program} ${String(command)}`);
  }
}

async function runAgent(settings: Settings): Promise<void> {
  const identity = await waitUntil('joining', 300, () => joinAsAgent(settings));
  const api = { url: `https://${settings.join ?? ''}:6443`, identity };
  await waitUntil('the node', 60, () => registerNode(api, settings, false).then(() => true));
  ready();
  setInterval(() => undefined, 60_000);
}

/** `save --name N` and `prune --name N --snapshot-retention K`. */
async function snapshot({ data, nodeName }: Settings, [action, ...options]: readonly string[]): Promise<void> {
  const folder = join(data, 'server', 'db', 'snapshots');
  const option = (name: string): string => options[options.indexOf(`--${name}`) + 1] ?? '';
  if (existsSync('/etc/stand-in/fail-snapshot')) fail('the snapshot failed');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (action === 'save') {
    const name = `${option('name')}-${nodeName}-${Math.floor(Date.now() / 1000)}`;
    await saveSnapshot(join(folder, name));
    console.log(`Snapshot ${name} saved.`);
    return;
  }
  if (action !== 'prune') fail(`no stand-in for etcd-snapshot ${String(action)}`);
  const kept = Number(option('snapshot-retention'));
  const found = readdirSync(folder)
    .filter((name) => name.startsWith(`${option('name')}-`))
    .sort()
    .reverse();
  for (const name of found.slice(kept)) rmSync(join(folder, name));
}

main(process.argv.slice(2)).catch((error: unknown) => fail(error instanceof Error ? error.message : String(error)));
