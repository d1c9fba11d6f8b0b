import { buildSync } from 'esbuild';
import { copyFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { prepare } from '../../../local';
import { pathOf } from './start-hosts';
import type { TestHost } from './ssh-host';

/** Where hosts find what the stand-ins are made of. */
const TARGET = '/opt/stand-in';

/** The stand-in for the installers, as a plan's `installer.path`. */
export const FAKE_INSTALLER = `${TARGET}/code/install.sh`;

/** The stand-ins, for one set of hosts. */
export interface FakeDistributions {
  /** For `startHosts`. */
  readonly mounts: Readonly<Record<string, string>>;
  /** Makes systemctl and what else the scripts look for known on a host. */
  setUp(host: Pick<TestHost, 'exec'>): Promise<void>;
}

/** Puts the stand-ins for installers, systemd and the distributions together. @param folder - empty; where the program is built */
export async function buildFakeDistributions(folder: string): Promise<FakeDistributions> {
  buildSync({
    entryPoints: [join(__dirname, 'stand-ins', 'stand-in.ts')],
    outfile: join(folder, 'stand-in.cjs'),
    ...{ bundle: true, platform: 'node', format: 'cjs', target: 'node20', logLevel: 'error' },
  });
  for (const name of ['install.sh', 'program.sh', 'uninstall.sh', 'systemctl.sh', 'journalctl.sh']) {
    copyFileSync(join(__dirname, 'stand-ins', name), join(folder, name));
  }
  const kubectl = pathOf('kubectl');
  const parts = await prepare({ components: 'full', kubectl: kubectl === undefined });
  const all = { ...parts, kubectl: kubectl ?? parts.kubectl, node: process.execPath };
  const mounts = Object.entries(all).flatMap(([name, path]) =>
    path === undefined ? [] : [[`${TARGET}/bin/${name}`, realpathSync(path)] as const],
  );
  return {
    mounts: Object.fromEntries([...mounts, [`${TARGET}/code`, folder]]),
    setUp: async (host) => {
      await host.exec(`
mkdir -p /etc/stand-in
for name in systemctl journalctl; do
  rm -f /usr/bin/$name
  sed '' ${TARGET}/code/$name.sh >/usr/bin/$name
  chmod 755 /usr/bin/$name
done
printf '#!/bin/sh\\n' >/usr/local/sbin/modprobe
chmod 755 /usr/local/sbin/modprobe`);
    },
  };
}
