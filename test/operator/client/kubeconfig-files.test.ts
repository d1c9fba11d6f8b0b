import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { loadClusterAccess } from '../../../operator/client/kubeconfig';
import {
  KubeconfigError,
  loadKubeconfig,
  pathField,
  type Kubeconfig,
  type KubeconfigEntry,
} from '../../../operator/client/kubeconfig-files';
import { hasKubectl } from '../../support/kubectl';
import { temporaryFolder } from '../../support/temporary-folder';

// The rules for the files of KUBECONFIG, held against the kubectl of this machine.

const folder = temporaryFolder('kindred-kubeconfig-files-');
const at = (file: string): string => join(folder, file);

function file(path: string, content: string | object): string {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), typeof content === 'string' ? content : JSON.stringify(content));
  return at(path);
}

beforeAll(() => {
  const cluster = (server: string) => ({ server: `https://${server}`, 'certificate-authority': 'pki/ca.pem' });
  file('pki/ca.pem', 'authority beside a');
  file('far/pki/ca.pem', 'authority of another one');
  file('a', {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'one' },
    clusters: [{ name: 'one', cluster: cluster('a.test') }],
    contexts: [
      { name: 'one', context: { cluster: 'one', user: 'one', namespace: 'of-a' } },
      { name: 'a-namespace-alone', context: { namespace: 'x' } },
    ],
    users: [{ name: 'one', user: { token: 'of a' } }, { name: 'none' }],
  });
  file('far/b', {
    'current-context': 'two',
    clusters: [
      { name: 'one', cluster: { server: 'https://not-this.test' } },
      { name: 'two', cluster: cluster('b.test') },
    ],
    contexts: [
      { name: 'one', context: { cluster: 'two', user: 'two', namespace: 'of-b' } },
      { name: 'two', context: { cluster: 'two', user: 'two' } },
    ],
    // Of two users of the same name, nothing of the second is taken, not even what the first does not say.
    users: [
      { name: 'one', user: { username: 'of b' } },
      { name: 'two', user: { token: 'of b' } },
    ],
  });
  file('no-current', 'current-context: ""\nclusters:\n- name: no-server\ncontexts:\n- name: three\n');
  file('.kube/config', 'current-context: home\ncontexts: [{name: home, context: {cluster: c}}]');
  file('empty', '');
  file('blank', ' \n\n');
  file('comment', '# nothing here\n');
  file('null', 'null');
  file('unknown-fields', 'a: 1\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, color: red}}]');
  file('two-documents', 'current-context: x\ncontexts: [{name: x}]\n---\ncurrent-context: y\n');
  file('two-keys', 'current-context: x\ncurrent-context: z\ncontexts: [{name: z}]\n');
  file('a-date', 'current-context: 2024-01-01\ncontexts: [{name: 2024-01-01}]\n');
  file(
    'merged-keys',
    'x: &x {server: "https://m.test"}\nclusters: [{name: m, cluster: {<<: *x}}]\ncontexts: [{name: m}]',
  );
  file('byte-order-mark', '\uFEFFcurrent-context: x\ncontexts: [{name: x}]');
  file('not-yaml', 'users: [{name: hush');
  file('text', 'hush');
  file('list', '[1]');
  file('pod', 'apiVersion: v1\nkind: Pod\n');
  file('version', 'apiVersion: v2\nkind: Config\n');
  file('mapping', 'clusters: {hush: {}}');
  file('twice', 'users: [{name: u}, {name: u}]');
  file('number', 'current-context: 5');
  mkdirSync(at('folder'));
  symlinkSync(at('nosuch'), at('broken-link'));
  symlinkSync(at('loop'), at('loop'));
});

function loadFiles(list: string): Kubeconfig {
  return loadKubeconfig({
    ...{ env: { KUBECONFIG: list.replaceAll('@', `${folder}/`) }, home: folder },
    ...{ serviceAccount: at('nosuch'), first: 'home' },
  });
}

interface Flat {
  readonly current: string | undefined;
  readonly clusters: Record<string, string>;
  readonly contexts: Record<string, string>;
  readonly users: Record<string, string>;
}

/** What both are compared by; certificates by content. */
function ours(list: string): Flat | 'refused' | 'nothing' {
  let found: Kubeconfig;
  try {
    found = loadFiles(list);
  } catch (error) {
    expect(error).toBeInstanceOf(KubeconfigError);
    const { message } = error as Error;
    expect(message).not.toContain('hush');
    return /^KUBECONFIG (leads to no cluster|is not set)/.test(message) ? 'nothing' : 'refused';
  }
  const of = (entries: ReadonlyMap<string, KubeconfigEntry>, value: (entry: KubeconfigEntry) => string) =>
    Object.fromEntries([...entries].map(([name, entry]) => [name, value(entry)]));
  const text = ({ fields }: KubeconfigEntry, ...keys: readonly string[]): string =>
    keys.map((key) => (fields[key] as string | undefined) ?? '').join(' ');
  return {
    current: found.currentContext,
    clusters: of(found.clusters, (entry) => {
      const authority = pathField(entry, 'certificate-authority');
      return `${text(entry, 'server')} ${authority === undefined ? '' : readFileSync(authority, 'utf8')}`;
    }),
    contexts: of(found.contexts, (entry) => text(entry, 'cluster', 'user', 'namespace')),
    users: of(found.users, (entry) => text(entry, 'token', 'username')),
  };
}

type Named = readonly ({ readonly name: string } & Readonly<Record<string, Readonly<Record<string, string>>>>)[];

function ofKubectl(list: string): Flat | 'refused' | 'nothing' {
  const { status, stdout } = spawnSync('kubectl', ['config', 'view', '--raw', '--flatten', '--output=json'], {
    ...{ cwd: folder, encoding: 'utf8' },
    env: { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: list.replaceAll('@', `${folder}/`) },
  });
  if (status !== 0) return 'refused';
  const view = JSON.parse(stdout) as Readonly<Record<string, Named | null>> & { readonly 'current-context': string };
  if (view['contexts'] === null) return 'nothing';
  const of = (list_: string, inner: string, keys: readonly string[]) =>
    Object.fromEntries(
      (view[list_] ?? []).map((entry) => [
        entry.name,
        keys
          .map((key) => entry[inner]?.[key] ?? '')
          .map((value, i) => (keys[i]?.endsWith('-data') === true ? Buffer.from(value, 'base64').toString() : value))
          .join(' '),
      ]),
    );
  return {
    current: view['current-context'] === '' ? undefined : view['current-context'],
    clusters: of('clusters', 'cluster', ['server', 'certificate-authority-data']),
    contexts: of('contexts', 'context', ['cluster', 'user', 'namespace']),
    users: of('users', 'user', ['token', 'username']),
  };
}

const used = [
  ...['@a', '@a:@far/b', '@far/b:@a', '@a:@a', '@far/b:@a:@far/b', '@no-current:@a', '@a:@no-current', '@no-current'],
  // Files that do not exist or are empty are skipped, wherever they stand.
  ...['@nosuch:@a', '@a:@nosuch', '@broken-link:@a', ':@a', '@a::@far/b:', '@empty:@a', '@blank:@comment:@null:@a'],
  // Names are not trimmed.
  ...['@a :@far/b', '/dev/null:@a', ''],
  ...['@unknown-fields', '@two-documents', '@two-keys', '@a-date', '@merged-keys', '@byte-order-mark'],
];
const nothing = ['@nosuch', '@nosuch:@broken-link', '@empty', '@a ', ':', ' ', '@blank:@null', '/dev/null'];
const refused = [
  ...[
    '@folder',
    '@folder:@a',
    '@a:@folder',
    '@a/below:@a',
    '@loop:@a',
    '@not-yaml',
    '@a:@not-yaml',
    '@text',
    '@list',
    '@pod',
  ],
  ...['@version', '@mapping', '@twice', '@number'],
];

test.each(used)('KUBECONFIG=%s is used', (list) => {
  expect(ours(list)).toMatchObject({ contexts: expect.any(Object) as object });
  if (hasKubectl) expect(ours(list)).toEqual(ofKubectl(list));
});

test.each(nothing)('KUBECONFIG=%s is no kubeconfig, and ~/.kube/config is not taken instead', (list) => {
  expect(ours(list)).toBe('nothing');
  if (hasKubectl) expect(ofKubectl(list)).toBe('nothing');
});

test.each(refused)('KUBECONFIG=%s is refused', (list) => {
  expect(ours(list)).toBe('refused');
  if (hasKubectl) expect(ofKubectl(list)).toBe('refused');
});

test('the first file counts, for each cluster, context and user as a whole, and for the current context', () => {
  expect(ours('@nosuch:@a:@far/b')).toEqual({
    current: 'one',
    clusters: { one: 'https://a.test authority beside a', two: 'https://b.test authority of another one' },
    contexts: { one: 'one one of-a', two: 'two two ', 'a-namespace-alone': '  x' },
    users: { one: 'of a ', none: ' ', two: 'of b ' },
  });
});

describe('what is wrong is said of the file that it is wrong with', () => {
  test.each([
    ['@nosuch:@empty', /"@nosuch" does not exist, "@empty" defines no contexts, and this is no pod with a ServiceAcc/],
    ['@a:@folder', /^@folder cannot be read as a kubeconfig: EISDIR/],
    ['@a/below:@a', /^@a\/below cannot be read as a kubeconfig: ENOTDIR/],
    ['@a:@not-yaml', /^@not-yaml is not a kubeconfig: it is not valid YAML at line \d+, column \d+$/],
    ['@a:@pod', /^@pod is not a kubeconfig: its kind is not Config$/],
    ['@a:@mapping', /^@mapping is not a kubeconfig: clusters is not a list$/],
    ['@a:@twice', /^@twice is not a kubeconfig: users has "u" twice$/],
    ['@number:@a', /^@number is not a kubeconfig: current-context is not text; put it in quotes$/],
  ])('%s', (list, message) => {
    const where = new RegExp(message.source.replaceAll('@', `${folder}/`));
    expect(() => loadFiles(list)).toThrow(where);
  });

  const asRoot = process.getuid?.() === 0;
  (asRoot ? test.skip : test)('a file without permission to read it', () => {
    chmodSync(file('locked', ''), 0);
    expect(() => loadFiles('@locked:@a')).toThrow(/locked cannot be read as a kubeconfig: EACCES/);
  });
});

describe('in a pod', () => {
  const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' };
  const server = (KUBECONFIG: string, more: object = {}): string =>
    loadClusterAccess({
      env: { ...env, KUBECONFIG: KUBECONFIG.replaceAll('@', `${folder}/`) },
      home: folder,
      rootPrefix: folder,
      ...more,
    }).server;
  const account = (name: string): string => file(`var/run/secrets/kubernetes.io/serviceaccount/${name}`, name);
  beforeAll(() => ['token', 'ca.crt', 'namespace'].forEach(account));
  afterAll(() => rmSync(at('var'), { recursive: true }));

  test.each(['', '@nosuch:@empty', ':', '@no-current'])('KUBECONFIG=%s leads to its own cluster', (list) => {
    expect(server(list)).toBe('https://[fd00::1]:6443');
  });

  test('what files name is not passed over', () => {
    expect(server('@nosuch:@a')).toBe('https://a.test');
    expect(server('@nosuch:@far/b:@a', { context: 'one' })).toBe('https://b.test');
    expect(() => server('@folder')).toThrow(/EISDIR/);
    expect(() => server('@no-current', { context: 'three' })).toThrow(/the context "three" of .* names no cluster/);
    expect(() => server('', { path: at('empty') })).toThrow(/empty is not a kubeconfig: it defines no contexts/);
    expect(() => server('', { path: at('nosuch') })).toThrow(/nosuch cannot be read as a kubeconfig: ENOENT/);
  });

  test('a context that is asked for is one of the files', () => {
    expect(() => server('@nosuch', { context: 'one' })).toThrow(/leads to no cluster: ".*nosuch" does not exist\. Set/);
    expect(() => server('', { context: 'one' })).toThrow(/^there is no context "one" in .*config; there are home$/);
  });

  test('without a port, or a token, it is none', () => {
    const without = { ...env, KUBERNETES_SERVICE_PORT: undefined, KUBECONFIG: at('nosuch') };
    expect(() => loadClusterAccess({ env: without, rootPrefix: folder })).toThrow(
      /this is no pod with a ServiceAccount/,
    );
    expect(() => loadClusterAccess({ env: { ...env, KUBECONFIG: ':' }, rootPrefix: at('nosuch') })).toThrow(
      /this is no pod/,
    );
  });
});
