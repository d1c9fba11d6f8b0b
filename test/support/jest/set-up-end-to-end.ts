import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { SharedControlPlane } from '../shared-control-plane';

declare global {
  var sharedControlPlane: SharedControlPlane | undefined;
}

/**
 * Jest's global setup for end-to-end tests: builds the command, once, since several files run it at the same time; and serves a control
 * plane. The global teardown is tear-down-end-to-end.ts.
 */
export default async function setUpEndToEnd(): Promise<void> {
  const root = join(__dirname, '..', '..', '..');
  execFileSync(process.execPath, ['node_modules/tsx/dist/cli.mjs', 'scripts/build.ts'], {
    cwd: root,
    stdio: 'inherit',
  });
  globalThis.sharedControlPlane = await SharedControlPlane.serve();
}
