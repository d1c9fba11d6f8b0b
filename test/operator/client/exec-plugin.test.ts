import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { loadClusterAccess } from '../../../operator/client/kubeconfig';
import { hasKubectl } from '../../support/kubectl';
import { temporaryFolder } from '../../support/temporary-folder';

const folder = temporaryFolder('kindred-exec-plugin-');
const at = (file: string): string => join(folder, file);

function file(path: string, content: string | object): string {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), typeof content === 'string' ? content : JSON.stringify(content));
  return at(path);
}

describe('the command of an exec plugin', () => {
  const credential = JSON.stringify({
    ...{ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status: { token: 'of-the-plugin' } },
  });
  const kubeconfig = (command: string): string =>
    file('plugins/config', {
      'current-context': 'c',
      clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      users: [
        {
          name: 'u',
          user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command, interactiveMode: 'Never' } },
        },
      ],
    });
  const plugin = (path: string): void => {
    const text = `#!/bin/sh\ntouch "${at('ran')}"\ncat <<'EOT'\n${credential}\nEOT\n`;
    chmodSync(file(path, text), 0o755);
  };
  const token = async (): Promise<string | undefined> =>
    (await loadClusterAccess({ path: at('plugins/config'), env: {} }).credentials(false)).headers['authorization'];
  afterEach(() => rmSync(at('ran'), { force: true }));

  test.each(['./get-token', 'bin/get-token', '../plugins/bin/get-token'])(
    '%s is relative to the file',
    async (command) => {
      plugin('plugins/get-token');
      plugin('plugins/bin/get-token');
      kubeconfig(command);
      expect(await token()).toBe('Bearer of-the-plugin');
      if (!hasKubectl) return;
      rmSync(at('ran'));
      const env = { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: at('plugins/config') };
      spawnSync('kubectl', ['get', '--raw=/version', '--request-timeout=5s'], { cwd: '/', env });
      expect(existsSync(at('ran'))).toBe(true);
    },
  );

  test('without a slash it is looked up in PATH, and not beside the file', async () => {
    plugin('plugins/kindred-get-token');
    kubeconfig('kindred-get-token');
    await expect(token()).rejects.toThrow(/kindred-exec-plugin-\w+\/plugins\/config: no credentials: .*ENOENT/);
    const before = process.env['PATH'];
    process.env['PATH'] = [at('plugins'), before].join(delimiter);
    try {
      expect(await token()).toBe('Bearer of-the-plugin');
    } finally {
      process.env['PATH'] = before;
    }
  });
});
