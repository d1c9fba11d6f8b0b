import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { CertificateAuthority } from '../../../local/certificates';
import { downloadInstaller } from '../../../provision/rke2-k3s/install';
import { temporaryFolder } from '../../support/temporary-folder';

const HOST = '127.0.0.1';
const INSTALLER = '#!/bin/sh\n';
const folder = temporaryFolder('kindred-download-');
const state = join(folder, 'state');
const ca = join(folder, 'ca.pem');
const seen: string[] = [];
let http: Server;
let https: Server;
const origin = (server: Server): string => {
  const scheme = server === http ? 'http' : 'https';
  return `${scheme}://${HOST}:${String((server.address() as AddressInfo).port)}`;
};

/** `/installer` is one; `/to-http` and `/to-https` lead to it. */
const answer =
  (scheme: string): RequestListener =>
  (request, response) => {
    seen.push(`${scheme} ${request.url ?? ''}`);
    if (request.url === '/installer') return response.end(INSTALLER);
    const to = request.url === '/to-http' ? http : https;
    return response.writeHead(302, { location: `${origin(to)}/installer` }).end();
  };

beforeAll(async () => {
  const authority = new CertificateAuthority('ca');
  const { certificate: cert, key } = authority.server('server', [HOST]);
  writeFileSync(ca, authority.certificate);
  http = createHttpServer(answer('http'));
  https = createServer({ cert, key }, answer('https'));
  await Promise.all([http, https].map((server) => new Promise<void>((done) => server.listen(0, HOST, done))));
  mkdirSync(state);
});
afterAll(() => Promise.all([http, https].map((server) => new Promise((done) => server.close(done)))));
beforeEach(() => {
  seen.length = 0;
  rmSync(join(state, 'installer'), { force: true });
});

const which = (program: string): string =>
  execFileSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim();
const CURL = which('curl');
const WGET = which('wget');

/** Runs the download on a machine that has this program alone. */
async function get(program: string, url: string, isPinned = false): Promise<{ installer?: string; said: string }> {
  const bin = join(folder, 'bin');
  rmSync(bin, { recursive: true, force: true });
  mkdirSync(bin);
  symlinkSync(program, join(bin, program === CURL ? 'curl' : 'wget'));
  symlinkSync(which('rm'), join(bin, 'rm'));
  const script = `have() { command -v "$1" >/dev/null; }
run() { "$@"; }
broken() { echo "$1 $2"; exit 1; }
state='${state}'
${downloadInstaller(url, isPinned)}`;
  const rc = join(folder, 'wgetrc');
  writeFileSync(rc, `ca_certificate = ${ca}\ntries = 1\n`);
  const env = { PATH: bin, CURL_CA_BUNDLE: ca, SSL_CERT_FILE: ca, WGETRC: rc };
  const said = await new Promise<string>((done) => {
    execFile('/bin/sh', ['-c', script], { env }, (_, stdout) => done(stdout));
  });
  const file = join(state, 'installer');
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return { ...(text === '' ? {} : { installer: text }), said: said.trim() };
}

describe.each([
  ['curl', CURL],
  ['wget', WGET],
])('%s', (name, program) => {
  test('downloads the installer, by https and by http', async () => {
    for (const server of [https, http])
      expect(await get(program, `${origin(server)}/installer`)).toEqual({ installer: INSTALLER, said: '' });
  });

  test('follows no redirect from https to http', async () => {
    const { installer, said } = await get(program, `${origin(https)}/to-http`);
    expect(installer).toBeUndefined();
    expect(said).toContain(`DownloadFailed ${origin(https)}/to-http cannot be downloaded`);
    expect(said.includes('Install curl, or give installer.sha256')).toBe(name === 'wget');
    expect(seen.filter((request) => request.startsWith('http '))).toEqual([]);
  });

  test('follows redirects from http, as somebody asked for that', async () => {
    expect((await get(program, `${origin(http)}/to-https`)).installer).toBe(INSTALLER);
    expect((await get(program, `${origin(http)}/to-http`)).installer).toBe(INSTALLER);
  });
});

test('curl follows redirects from https to https', async () => {
  expect((await get(CURL, `${origin(https)}/to-https`)).installer).toBe(INSTALLER);
});

test('wget follows redirects to what a checksum is known of', async () => {
  expect((await get(WGET, `${origin(https)}/to-https`, true)).installer).toBe(INSTALLER);
  expect((await get(WGET, `${origin(https)}/to-https`)).installer).toBeUndefined();
});
