import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { KubeconfigError, minifyKubeconfig, type KubeconfigSource } from '../../../stacks/kubeconfig';
import { temporaryFolder } from '../../support/temporary-folder';

let made = '';
beforeEach(() => {
  made = temporaryFolder('kindred-kubeconfig-');
});
const folder = (): string => made;

function write(path: string, content: unknown): string {
  const file = join(folder(), path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
}

interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: string;
  readonly current?: string;
}

const server = (name: string): object => ({ server: `https://${name}.test:6443` });

function config(name: string, { cluster = server(name), user = { token: name }, current = name }: Parts = {}): object {
  return {
    'current-context': current,
    contexts: [{ name, context: { cluster: `${name}-cluster`, user: `${name}-user`, namespace: 'mine' } }],
    clusters: [{ name: `${name}-cluster`, cluster }],
    users: [{ name: `${name}-user`, user }],
  };
}

interface Minimal {
  readonly 'current-context': string;
  readonly clusters: readonly [{ readonly cluster: Record<string, unknown> }];
  readonly users: readonly [{ readonly user: Record<string, unknown> & { readonly exec?: { command: string } } }];
}

/** Nothing of the machine that the test runs on. */
const read = (source: KubeconfigSource): string => minifyKubeconfig({ env: {}, home: folder(), ...source });

function parts(source: KubeconfigSource) {
  const { clusters, users } = JSON.parse(read(source)) as Minimal;
  return { cluster: clusters[0].cluster, user: users[0].user };
}

function errorOf(source: KubeconfigSource): string {
  try {
    read(source);
  } catch (error) {
    expect(error).toBeInstanceOf(KubeconfigError);
    return (error as Error).message;
  }
  throw new Error('it is not refused');
}

describe('which file counts', () => {
  test('without KUBECONFIG, ~/.kube/config, and its current context', () => {
    write('.kube/config', config('a'));
    expect(parts({}).cluster).toEqual(server('a'));
  });

  test('of the files of KUBECONFIG, the first to say something; those that do not exist are passed over', () => {
    const a = write('a', { ...config('a'), 'current-context': '' });
    const b = write('b', { ...config('b'), users: [{ name: 'a-user', user: { token: 'not this one' } }] });
    const env = { KUBECONFIG: [join(folder(), 'nosuch'), '', a, b, a].join(':') };
    write('.kube/config', config('home'));
    expect(parts({ env, context: 'a' })).toEqual({ cluster: server('a'), user: { token: 'a' } });
    expect(errorOf({ env })).toContain('names the user "b-user", which');
    expect(errorOf({ env, context: 'home' })).toBe(`there is no context "home" in ${a}:${b}; there are a, b`);
  });

  test('a context of one file may lead to a cluster of another, and an empty file is none', () => {
    const contexts = write('contexts', { contexts: config('a')['contexts' as never] });
    const rest = write('rest', { ...config('a'), contexts: null });
    const env = { KUBECONFIG: `${contexts}:${write('empty', '')}:${rest}` };
    expect(parts({ env }).user).toEqual({ token: 'a' });
  });

  test('in a pod, its ServiceAccount, unless a context is asked for', () => {
    write('account/token', 'of-the-pod\n');
    write('account/ca.crt', 'authority');
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
    const pod = { env, serviceAccount: join(folder(), 'account') };
    const authority = Buffer.from('authority').toString('base64');
    expect(parts(pod)).toEqual({
      cluster: { server: 'https://[fd00::1]:443', 'certificate-authority-data': authority },
      user: { token: 'of-the-pod' },
    });
    expect(errorOf({ ...pod, context: 'prod' })).toMatch(
      /^KUBECONFIG is not set, ".*\/\.kube\/config" does not exist\. Set KUBECONFIG/,
    );
  });

  test('in a pod, its ServiceAccount too where the files name no current context, and never instead of a wrong one', () => {
    write('account/token', 'of-the-pod');
    write('account/ca.crt', 'authority');
    const serviceAccount = join(folder(), 'account');
    const a = write('a', config('a', { current: '' }));
    const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443', KUBECONFIG: `/nosuch:${a}` };
    expect(parts({ env, serviceAccount }).user).toEqual({ token: 'of-the-pod' });
    expect(parts({ env, serviceAccount, context: 'a' }).user).toEqual({ token: 'a' });
    const wrong = { ...env, KUBECONFIG: write('b', { ...config('b'), 'current-context': 'nosuch' }) };
    expect(errorOf({ env: wrong, serviceAccount })).toMatch(/^there is no context "nosuch" in /);
    write('.kube/config', config('home'));
    expect(parts({ env: { ...env, KUBECONFIG: '' }, serviceAccount }).user).toEqual({ token: 'home' });
    expect(errorOf({ env: { KUBECONFIG: ':' } })).toMatch(/^KUBECONFIG leads to no cluster: it names no file, /);
  });

  test('a text goes before the files', () => {
    const text = JSON.stringify(config('text'));
    expect(parts({ text, env: { KUBECONFIG: write('a', config('a')) } }).cluster).toEqual(server('text'));
  });
});

describe('what stands in it', () => {
  test('only the cluster and the user of the context, and no name of theirs', () => {
    const text = read({ text: JSON.stringify(config('prod', { user: { token: 'secret' } })) });
    expect(text).not.toMatch(/prod-|mine/);
    const renamed = JSON.stringify(config('prod', { user: { token: 'secret' } })).replace(/prod-/g, 'other-');
    expect(read({ text: renamed })).toBe(text);
  });

  test.each([
    ['certificate-authority', 'cluster', 'certificate-authority-data'],
    ['client-certificate', 'user', 'client-certificate-data'],
    ['client-key', 'user', 'client-key-data'],
    ['tokenFile', 'user', 'token'],
  ] as const)('what the file of %s holds, wherever the kubeconfig lies', (key, part, data) => {
    const content = data === 'token' ? 'content' : Buffer.from('content').toString('base64');
    const with_ = (path: string): object => {
      const cluster = { ...server('a'), ...(part === 'cluster' ? { [key]: path } : {}) };
      return config('a', { cluster, user: part === 'user' ? { [key]: path } : {} });
    };
    const file = write('far/away/pki/file', 'content');
    const env = { KUBECONFIG: write('far/away/config', with_('pki/file')) };
    expect(parts({ env })[part]).toMatchObject({ [data]: content });
    expect(parts({ env })[part]).not.toHaveProperty(key);
    expect(read({ env })).toBe(read({ text: JSON.stringify(with_(file)) }));
    expect(read({ env })).not.toContain('pki');
    expect(errorOf({ text: JSON.stringify(with_('pki/file')) })).toMatch(
      new RegExp(`^${key} of the kubeconfig is the relative path pki/file, .*--flatten`),
    );
    expect(errorOf({ text: JSON.stringify(with_(`${file}.nosuch`)) })).toContain('file.nosuch cannot be read (ENOENT)');
  });

  test('data goes before a path, as with kubectl, and a token file before a token', () => {
    const user = { 'client-key': '/nosuch', 'client-key-data': 'a2V5', token: 'old', tokenFile: write('token', 'new') };
    expect(parts({ text: JSON.stringify(config('a', { user })) }).user).toEqual({
      'client-key-data': 'a2V5',
      token: 'new',
    });
  });

  test('what says how to reach the cluster, and none of the notes of tools', () => {
    const told = { name: 'client.authentication.k8s.io/exec', extension: { audience: 'a' } };
    const note = { name: 'cluster_info', extension: { 'last-update': 'today' } };
    const reach = { 'tls-server-name': 'api', 'proxy-url': 'http://proxy:1', 'insecure-skip-tls-verify': true };
    const cluster = { ...server('a'), ...reach, extensions: [note, told] };
    expect(parts({ text: JSON.stringify(config('a', { cluster })) }).cluster).toEqual({
      ...{ ...server('a'), ...reach },
      extensions: [told],
    });
  });

  test('an exec plugin by its name, where PATH leads to the same file', () => {
    const plugin = write('opt/plugin', '#!/bin/sh\n');
    chmodSync(plugin, 0o755);
    mkdirSync(join(folder(), 'bin'));
    symlinkSync(plugin, join(folder(), 'bin', 'plugin'));
    const file = write('config', config('a', { user: { exec: { command: 'opt/plugin', args: ['-x'] } } }));
    const command = (PATH: string): unknown => parts({ env: { KUBECONFIG: file, PATH } }).user.exec?.command;
    expect(command(`/nosuch:${join(folder(), 'bin')}`)).toBe('plugin');
    expect(command('')).toBe(plugin);
    write('other/plugin', 'another one');
    expect(command(`${join(folder(), 'other')}:${join(folder(), 'bin')}`)).toBe(plugin);
  });

  test('the authority of an OpenID Connect issuer', () => {
    const issuer = (path: string): object => ({ name: 'oidc', config: { 'idp-certificate-authority': path } });
    const user = { 'auth-provider': issuer(write('idp.pem', 'content')) };
    expect(parts({ text: JSON.stringify(config('a', { user })) }).user).toEqual({
      'auth-provider': { name: 'oidc', config: { 'idp-certificate-authority-data': 'Y29udGVudA==' } },
    });
  });

  test('a bare command and what it is told stay as they are', () => {
    const exec = { apiVersion: 'v1', command: 'aws', args: ['eks'], env: [{ name: 'AWS_PROFILE', value: 'p' }] };
    expect(parts({ text: JSON.stringify(config('a', { user: { exec } })) }).user).toEqual({ exec });
  });
});

describe('what leads nowhere is refused', () => {
  const token = 'CANARY-token';
  const one = config('a', { user: { token } }) as Record<string, unknown>;
  test.each<[string, unknown, RegExp]>([
    ['no context', { ...one, 'current-context': '' }, /has no current-context: name one of its contexts; there are a$/],
    ['one that is not there', { ...one, 'current-context': 'b' }, /^there is no context "b" in .*; there are a$/],
    ['no contexts', { ...one, contexts: null }, /(it|") defines no contexts/],
    [
      'no cluster',
      { ...one, clusters: [] },
      /the context "a" of .* names the cluster "a-cluster", which .* not define/,
    ],
    ['no user', { ...one, users: null }, /the context "a" of .* names the user "a-user", which .* does not define/],
    [
      'no server',
      config('a', { cluster: {}, user: { token } }),
      /: the cluster "a-cluster" has no server; it must be an http/,
    ],
    ['twice', { ...one, users: [one['users'], one['users']].flat() }, /users has "a-user" twice/],
    ['no list', { ...one, clusters: { a: 1 } }, /is not a kubeconfig: clusters is not a list/],
    ['a nameless entry', { ...one, contexts: [{}] }, /contexts\[0\] must have a name and a context/],
    ['no YAML', `users:\n  - token: ${token}\n bad: [`, /is not valid YAML at line 3, column/],
    ['no object', token, /is not a kubeconfig: it must be a mapping/],
  ])('%s', (_, content, message) => {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    for (const source of [{ text }, { env: { KUBECONFIG: write('config', text) } }]) {
      expect(errorOf(source)).toMatch(message);
      expect(errorOf(source)).not.toContain(token);
    }
  });

  test('no file at all, or none that can be read', () => {
    expect(errorOf({ env: { KUBECONFIG: '/nosuch/a:/nosuch/b' } })).toMatch(
      /^KUBECONFIG leads to no cluster: "\/nosuch\/a" does not exist, "\/nosuch\/b" does not exist, and this is no pod .*\. Set/,
    );
    expect(errorOf({ env: { KUBECONFIG: folder() } })).toMatch(/ cannot be read as a kubeconfig: EISDIR/);
  });
});
