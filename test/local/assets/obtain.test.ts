import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { PartSource, type ObtainOptions } from '../../../local/assets/obtain';
import { hostPlatform, versions, type PartName } from '../../../local/assets/parts';
import { temporaryFolder } from '../../support/temporary-folder';

const { os, arch } = hostPlatform();
const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

/** A download host: what it serves, and what it was asked for. */
class Releases {
  readonly files = new Map<string, Buffer>();
  readonly asked: string[] = [];
  silent = false;
  readonly #server: Server = createServer((request, response) => {
    this.asked.push(request.url ?? '');
    if (this.silent) return;
    const file = this.files.get(request.url ?? '');
    response.writeHead(file === undefined ? 404 : 200).end(file);
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Publishes a Kubernetes program with its checksum file. */
  kubernetes(name: string, content: string, checksum = sha256(Buffer.from(content))): void {
    const url = `/release/${versions.kubernetes}/bin/${os}/${arch}/${name}`;
    this.files.set(url, Buffer.from(content)).set(`${url}.sha256`, Buffer.from(checksum));
  }
}

let folder: string;
let releases: Releases;
let url: string;
let lines: string[];

beforeEach(async () => {
  folder = temporaryFolder('kindred-obtain-');
  lines = [];
  releases = new Releases();
  url = await releases.start();
});
afterEach(() => releases.stop());

/** A PATH with a `go` on it that writes what it was told into its output file, or fails. */
function pathWithGo(script: string): string {
  const bin = path.join(folder, 'bin');
  mkdirSync(bin, { recursive: true });
  writeFileSync(path.join(bin, 'go'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return bin;
}

const goThatBuilds = 'while [ "$1" != -o ]; do shift; done; echo "built $3 in $(basename "$PWD")" > "$2"';

async function get(name: PartName, more: ObtainOptions = {}): Promise<string> {
  const source = new PartSource({
    cache: path.join(folder, 'cache'),
    hosts: { kubernetes: url, github: url, githubApi: url },
    env: { PATH: '/nowhere' },
    onProgress: (line) => lines.push(line),
    ...more,
  });
  try {
    return await source.get(name);
  } finally {
    await source.close();
  }
}

describe('the order of sources', () => {
  test('a folder comes first, and nothing is asked or written', async () => {
    const assets = path.join(folder, 'assets');
    mkdirSync(assets);
    writeFileSync(path.join(assets, 'kubectl'), '', { mode: 0o755 });
    for (const more of [{ assets }, { env: { KUBEBUILDER_ASSETS: assets } }]) {
      expect(await get('kubectl', more)).toBe(path.join(assets, 'kubectl'));
    }
    expect([releases.asked, existsSync(path.join(folder, 'cache'))]).toEqual([[], false]);
    expect(lines[0]).toContain('from the assets option');
    expect(lines[1]).toContain('from KUBEBUILDER_ASSETS');
  });

  test('a part that is not in the folder is downloaded, and from then on comes from the cache', async () => {
    releases.kubernetes('kubectl', 'the release');
    const file = await get('kubectl', { assets: folder });
    expect(readFileSync(file, 'utf8')).toBe('the release');
    expect(releases.asked.map((asked) => path.basename(asked))).toEqual(['kubectl.sha256', 'kubectl']);
    expect(lines.at(-1)).toMatch(/^kubectl v1.36.3: downloaded .* checksum verified$/);
    expect(await get('kubectl')).toBe(file);
    expect(releases.asked).toHaveLength(2);
  });

  test('what no host serves is built', async () => {
    const file = await get('kubectl', { env: { PATH: `${pathWithGo(goThatBuilds)}:/usr/bin:/bin` } });
    expect(readFileSync(file, 'utf8')).toBe('built k8s.io/kubernetes/cmd/kubectl in kubernetes\n');
    expect(lines).toContainEqual(expect.stringMatching(/kubectl.sha256 answered 404/));
    expect(lines.at(-1)).toMatch(/^kubectl v1.36.3: built in/);
  });

  test('downloads can be switched off', async () => {
    releases.kubernetes('kubectl', 'the release');
    const env = { PATH: `${pathWithGo(goThatBuilds)}:/usr/bin:/bin`, KINDRED_DOWNLOADS: 'off' };
    await get('kubectl', { env });
    expect(releases.asked).toEqual([]);
  });

  test('a broken cache entry is said, and made anew', async () => {
    releases.kubernetes('kubectl', 'the release');
    const file = await get('kubectl');
    writeFileSync(file, 'cut');
    await get('kubectl');
    expect(readFileSync(file, 'utf8')).toBe('the release');
    expect(lines).toContainEqual(
      `kubectl v1.36.3: the cached ${file} is not used: it has 3 bytes, not the 11 it was stored with`,
    );
  });

  test('the draft of a process that died at it is removed', async () => {
    releases.kubernetes('kubectl', 'the release');
    const file = await get('kubectl');
    writeFileSync(`${file}.1234.tmp`, 'half');
    writeFileSync(file, 'half');
    await get('kubectl');
    expect(readdirSync(path.dirname(file)).sort()).toEqual(['kubectl', 'kubectl.sha256.json']);
  });

  test('two that ask at once make it once', async () => {
    releases.kubernetes('kubectl', 'the release');
    const [one, two] = await Promise.all([get('kubectl'), get('kubectl')]);
    expect(one).toBe(two);
    expect(releases.asked).toHaveLength(2);
  });
});

describe('checksums', () => {
  test('a download that does not match is an error that names both sums, and nothing is built in its place', async () => {
    const [published, served] = ['the release', 'something else'].map((content) => sha256(Buffer.from(content)));
    releases.kubernetes('kubectl', 'something else', published);
    const getting = get('kubectl', { env: { PATH: `${pathWithGo(goThatBuilds)}:/usr/bin:/bin` } });
    const file = `${url}/release/${versions.kubernetes}/bin/${os}/${arch}/kubectl`;
    await expect(getting).rejects.toThrow(
      `checksum mismatch: ${file} has sha256 ${served}, but ${file}.sha256 says ${published}. `,
    );
    await expect(getting).rejects.toThrow('KINDRED_DOWNLOADS=off');
    expect(lines).not.toContainEqual(expect.stringContaining('building'));
    const entry = path.join(folder, 'cache/parts/kubectl', versions.kubernetes, `${os}-${arch}`);
    expect(readdirSync(entry).filter((name) => name.startsWith('kubectl'))).toEqual([]);
  });

  test('a checksum that is none is not taken for one', async () => {
    releases.kubernetes('kubectl', 'the release', '<html>');
    await expect(get('kubectl')).rejects.toThrow('holds no sha256');
  });

  const onLinux = os === 'linux' ? test : test.skip;
  onLinux('etcd is unpacked from an archive that its SHA256SUMS name', async () => {
    const name = `etcd-${versions.etcd}-${os}-${arch}`;
    mkdirSync(path.join(folder, name));
    writeFileSync(path.join(folder, name, 'etcd'), 'the etcd');
    expect(spawnSync('tar', ['-czf', `${name}.tar.gz`, name], { cwd: folder }).status).toBe(0);
    const archive = readFileSync(path.join(folder, `${name}.tar.gz`));
    const release = `/etcd-io/etcd/releases/download/${versions.etcd}`;
    releases.files.set(`${release}/${name}.tar.gz`, archive);
    releases.files.set(`${release}/SHA256SUMS`, Buffer.from(`0123  other\n${sha256(archive)}  ${name}.tar.gz\n`));
    expect(readFileSync(await get('etcd'), 'utf8')).toBe('the etcd');
  });

  test('KWOK is verified by the digest in its release', async () => {
    const content = Buffer.from('stages');
    const asset = { name: 'stage-fast.yaml', digest: `sha256:${sha256(content)}` };
    releases.files.set(`/kubernetes-sigs/kwok/releases/download/${versions.kwok}/stage-fast.yaml`, content);
    const api = `/repos/kubernetes-sigs/kwok/releases/tags/${versions.kwok}`;
    releases.files.set(api, Buffer.from(JSON.stringify({ assets: [{ name: 'other' }, asset] })));
    expect(readFileSync(await get('kwok-stages'), 'utf8')).toBe('stages');
  });
});

describe('without internet', () => {
  test('a host that cannot be reached is tried once for all parts', async () => {
    await releases.stop();
    const source = new PartSource({
      cache: path.join(folder, 'cache'),
      hosts: { kubernetes: url, github: url, githubApi: url },
      env: { PATH: `${pathWithGo(goThatBuilds)}:/usr/bin:/bin` },
      onProgress: (line) => lines.push(line),
    });
    for (const name of ['kubectl', 'kwok', 'kwok'] as const) await source.get(name);
    await source.close();
    expect(lines.filter((line) => line.includes('cannot be reached'))).toHaveLength(1);
    expect(lines.filter((line) => line.includes('built in'))).toHaveLength(2);
    releases = new Releases();
    url = await releases.start();
  });

  test('a host that takes the connection and says nothing is given up', async () => {
    releases.silent = true;
    const env = { PATH: `${pathWithGo(goThatBuilds)}:/usr/bin:/bin` };
    await get('kubectl', { env, timeouts: { idleMs: 300 } });
    expect(lines).toContainEqual(expect.stringMatching(/cannot be reached: .*[Tt]imeout/));
  }, 15_000);

  test('and without Go: what was tried, and what to do', async () => {
    const failing = get('kubectl', { downloads: false });
    await expect(failing).rejects.toThrow(/^cannot get kubectl v1.36.3 for .*Tried:\n {2}- assets folder/);
    await expect(failing).rejects.toThrow('  - build: there is no `go` on PATH\n');
    await expect(failing).rejects.toThrow(/What to do: install Go .*KUBEBUILDER_ASSETS/);
  });
});

describe('a build that fails', () => {
  const build = (script: string): Promise<string> =>
    get('kubectl', { downloads: false, env: { PATH: `${pathWithGo(script)}:/usr/bin:/bin` } });

  test('is told with its last lines', async () => {
    await expect(build('echo "cannot find module" >&2; exit 1')).rejects.toThrow(
      /`go build` failed in .*:\n.*cannot find module/,
    );
  });

  test('for want of disk space says so', async () => {
    await expect(build('echo "link: write: no space left on device" >&2; exit 1')).rejects.toThrow('the disk ran full');
  });
});

test('too little disk space is found before anything is made', async () => {
  releases.kubernetes('kubectl', 'the release');
  await expect(get('kubectl', { freeSpace: () => Promise.resolve(5_000_000) })).rejects.toThrow(
    /not enough disk space for kubectl v1.36.3: .*cache has 5 MB free, 400 MB are needed/,
  );
  expect(releases.asked).toEqual([]);
});

test('a folder that is named but does not exist is an error, not a miss', async () => {
  await expect(get('kubectl', { assets: '/no/such/folder' })).rejects.toThrow(
    'the assets option names /no/such/folder',
  );
});

test('a program that may not be executed is an error with the cure', async () => {
  writeFileSync(path.join(folder, 'kubectl'), '');
  chmodSync(path.join(folder, 'kubectl'), 0o644);
  await expect(get('kubectl', { assets: folder })).rejects.toThrow(`Run: chmod +x ${folder}/kubectl`);
});

test('the search can be called off', async () => {
  releases.silent = true;
  const abort = new AbortController();
  const getting = get('kubectl', { signal: abort.signal });
  setTimeout(() => abort.abort(), 50);
  await expect(getting).rejects.toThrow(/abort/i);
});
