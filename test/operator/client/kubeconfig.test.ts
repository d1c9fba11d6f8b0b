import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { clusterAccessFromText, KubeconfigError, loadClusterAccess } from '../../../operator/client/kubeconfig';

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'kindred-kubeconfig-'));
});

afterEach(() => rmSync(home, { recursive: true }));

function kubeconfig(
  user: string,
  more: { server?: string; cluster?: string; name?: string; head?: string } = {},
): string {
  const name = more.name ?? 'one';
  return `apiVersion: v1
kind: Config
${more.head ?? `current-context: ${name}`}
clusters:
- name: ${name}
  cluster:
    server: ${more.server ?? 'https://api.example.com:6443/'}
${more.cluster ?? ''}
contexts:
- name: ${name}
  context:
    cluster: ${name}
    user: ${name}
    namespace: team
users:
- name: ${name}
  user:
${user}
`;
}

function file(path: string, text: string): string {
  const full = join(home, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, text);
  return full;
}

describe('where it is looked for', () => {
  test('an explicit path, then KUBECONFIG, then the pod, then the home folder', () => {
    const token = '    token: t';
    const explicit = file('explicit', kubeconfig(token, { server: 'https://explicit' }));
    const first = file('first', kubeconfig(token, { server: 'https://first' }));
    const second = file('second', kubeconfig(token, { server: 'https://second', name: 'two' }));
    file('.kube/config', kubeconfig(token, { server: 'https://home' }));
    file('var/run/secrets/kubernetes.io/serviceaccount/token', 't');
    file('var/run/secrets/kubernetes.io/serviceaccount/ca.crt', 'c');
    file('var/run/secrets/kubernetes.io/serviceaccount/namespace', 'kindred-system\n');
    const pod = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' };
    const env = { ...pod, KUBECONFIG: `${first}:${second}` };
    expect(loadClusterAccess({ path: explicit, env, home }).server).toBe('https://explicit');
    expect(loadClusterAccess({ env, home }).server).toBe('https://first');
    expect(loadClusterAccess({ env, home, context: 'two' }).server).toBe('https://second');
    expect(loadClusterAccess({ env: pod, home, rootPrefix: home })).toMatchObject({
      server: 'https://10.0.0.1:443',
      namespace: 'kindred-system',
    });
    expect(loadClusterAccess({ env: {}, home, rootPrefix: home })).toMatchObject({
      server: 'https://home',
      namespace: 'team',
    });
  });

  test('nowhere: the error says where it looked', () => {
    expect(() => loadClusterAccess({ env: {}, home })).toThrow(
      /KUBECONFIG is not set, ".*\.kube\/config" does not exist/,
    );
  });
});

describe('what cannot be used', () => {
  const token = '    token: hush';
  test.each([
    ['not YAML', 'a: [b\nhush: {', /is not a kubeconfig/],
    ['YAML that quotes itself in its errors', 'a: *hush', /is not valid YAML at line 1, column \d+/],
    ['a tag that nobody knows', 'a: !hush b', /is not valid YAML/],
    ['something else', 'hush', /is not a kubeconfig/],
    ['nothing', '', /is not a kubeconfig: it defines no contexts/],
    ['a token file that is no path', kubeconfig('    tokenFile: [hush]'), /tokenFile of the user "one" is not text/],
    ['no context at all', 'apiVersion: v1', /is not a kubeconfig: it defines no contexts/],
    [
      'no current context',
      kubeconfig(token, { head: '' }),
      /has no current-context: name one of its contexts; there are one$/,
    ],
    [
      'unknown context',
      kubeconfig(token, { head: 'current-context: two' }),
      /^there is no context "two" in .*; there are one$/,
    ],
    ['no server', kubeconfig(token, { server: '' }), /the cluster "one" has no server/],
    [
      'no URL',
      kubeconfig(token, { server: 'api.example.com' }),
      /has the server "api.example.com"; it must be an http\(s\) URL/,
    ],
    ['a proxy', kubeconfig(token, { cluster: '    proxy-url: http://p' }), /proxy-url, which is not supported/],
    [
      'unknown user',
      kubeconfig(token).replace('    user: one', '    user: nobody'),
      /the context "one" of .* names the user "nobody", which .* does not define/,
    ],
    [
      'unknown cluster',
      kubeconfig(token).replace('    cluster: one', '    cluster: none'),
      /the context "one" of .* names the cluster "none", which .* does not define/,
    ],
  ])('%s', (_name, text, message) => {
    expect.assertions(4);
    const path = file('config', text);
    try {
      loadClusterAccess({ path, env: {} });
    } catch (error) {
      expect(error).toBeInstanceOf(KubeconfigError);
      expect((error as Error).message).toMatch(message);
      expect((error as Error).message).toContain(path);
      expect((error as Error).message).not.toContain('hush');
    }
  });

  test('a file that is not there', () => {
    expect(() => loadClusterAccess({ path: join(home, 'none') })).toThrow(
      /none cannot be read as a kubeconfig: ENOENT/,
    );
  });
});

describe('credentials', () => {
  const read = (user: string, cluster = ''): ReturnType<typeof loadClusterAccess> =>
    loadClusterAccess({ path: file('config', kubeconfig(user, { cluster })), env: {} });

  test('a token, and TLS settings', async () => {
    file('ca.pem', 'CA');
    const cluster = '    certificate-authority: ca.pem\n    tls-server-name: other\n    insecure-skip-tls-verify: true';
    const access = read('    token: t\n    client-certificate-data: Q0VSVA==\n    client-key-data: S0VZ', cluster);
    expect(await access.credentials(false)).toEqual({
      headers: { authorization: 'Bearer t' },
      tls: {
        ca: Buffer.from('CA'),
        cert: Buffer.from('CERT'),
        key: Buffer.from('KEY'),
        servername: 'other',
        rejectUnauthorized: false,
      },
    });
  });

  test('of a file and data, the data; and a context without a user is anonymous', async () => {
    const cluster = '    certificate-authority: nosuch.pem\n    certificate-authority-data: Q0E=';
    const text = kubeconfig('    token: t', { cluster }).replace('    user: one\n', '');
    const access = loadClusterAccess({ path: file('config', text), env: {} });
    expect(await access.credentials(false)).toEqual({ headers: {}, tls: { ca: Buffer.from('CA') } });
  });

  test('user and password, and impersonation', async () => {
    expect(await read('    username: u\n    password: p\n    as: other').credentials(false)).toMatchObject({
      headers: { authorization: 'Basic dTpw', 'impersonate-user': 'other' },
    });
  });

  test('a token file is read again at each renewal; its newline is dropped', async () => {
    file('token', 'first\n');
    const access = read('    tokenFile: token');
    expect((await access.credentials(false)).headers).toEqual({ authorization: 'Bearer first' });
    file('token', 'second\n');
    expect((await access.credentials(false)).headers).toEqual({ authorization: 'Bearer second' });
  });

  test.each([
    ['JSON', (user: string) => `{"name":"one","user":${user}}`],
    ['flow style', (user: string) => `{name: one, user: ${user}}`],
  ])('a token file in %s, before a token beside it', async (_name, entry) => {
    file('token', 'from the file');
    const text = kubeconfig('').replace(/users:[^]*$/, `users: [${entry('{"token":"t","tokenFile":"token"}')}]\n`);
    const access = loadClusterAccess({ path: file('config', text), env: {} });
    expect((await access.credentials(false)).headers).toEqual({ authorization: 'Bearer from the file' });
    const whole = JSON.stringify(parse(kubeconfig('    tokenFile: token')));
    const inJson = loadClusterAccess({ path: file('config', whole), env: {} });
    expect((await inJson.credentials(false)).headers).toEqual({ authorization: 'Bearer from the file' });
  });

  test('text from elsewhere', async () => {
    const access = clusterAccessFromText(kubeconfig('    token: t'), 'Secret a/b');
    expect((await access.credentials(false)).headers).toEqual({ authorization: 'Bearer t' });
    expect(() => clusterAccessFromText('x', 'Secret a/b')).toThrow(/^Secret a\/b is not a kubeconfig/);
  });

  describe('of an exec plugin', () => {
    const plugin = (body: string): string => {
      const path = file('plugin', `#!/bin/sh\necho run >> ${join(home, 'runs')}\n${body}\n`);
      chmodSync(path, 0o755);
      return `    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: ${path}`;
    };
    const runs = (): number => readFileSync(join(home, 'runs'), 'utf8').split('\n').length - 1;
    const credential = (status: object): string =>
      `cat <<'EOT'\n${JSON.stringify({ kind: 'ExecCredential', status })}\nEOT`;

    test('are kept until shortly before they expire', async () => {
      const soon = new Date(Date.now() + 30_000).toISOString();
      const access = read(plugin(credential({ token: 'x', expirationTimestamp: soon })));
      expect(await access.credentials(false)).toMatchObject({
        headers: { authorization: 'Bearer x' },
        expiresAt: Date.parse(soon),
      });
      await access.credentials(false);
      expect(runs()).toBe(2);
      const later = new Date(Date.now() + 3_600_000).toISOString();
      const lasting = read(plugin(credential({ token: 'x', expirationTimestamp: later })));
      await lasting.credentials(false);
      await lasting.credentials(false);
      expect(runs()).toBe(3);
    });

    test('without an expiry are kept until they are refused', async () => {
      const access = read(plugin(credential({ token: 'x' })));
      await access.credentials(false);
      await access.credentials(false);
      expect(runs()).toBe(1);
      await access.credentials(true);
      expect(runs()).toBe(2);
    });

    test('that fails: its words; that prints nonsense: none of it', async () => {
      await expect(read(plugin('echo "log in first" >&2; exit 1')).credentials(false)).rejects.toThrow(
        'no credentials: log in first',
      );
      const nonsense = await read(plugin('echo hush'))
        .credentials(false)
        .catch((error: unknown) => String(error));
      expect(nonsense).toContain('did not print an ExecCredential');
      expect(nonsense).not.toContain('hush');
    });

    test('is told what it is asked for', async () => {
      const access = read(`${plugin(`echo "$KUBERNETES_EXEC_INFO" >&2; exit 1`)}\n      provideClusterInfo: true`);
      const said = await access.credentials(false).catch((error: unknown) => String(error));
      expect(said).toContain('"apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false,');
      expect(said).toContain('"cluster":{"server":"https://api.example.com:6443"}');
    });

    test('may be a client certificate', async () => {
      const access = read(plugin(credential({ clientCertificateData: 'CERT', clientKeyData: 'KEY' })));
      expect((await access.credentials(false)).tls).toMatchObject({ cert: 'CERT', key: 'KEY' });
    });
  });
});
