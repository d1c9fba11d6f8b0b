import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CredentialCache } from '../../../operator/client/cluster-access';
import { clusterAccessFromText, KubeconfigError, loadClusterAccess } from '../../../operator/client/kubeconfig';
import { OidcTokenSource, oidcSettings } from '../../../operator/client/oidc';
import { CertificateAuthority } from '../../../local/certificates';

const HOUR = 3600;
const authority = new CertificateAuthority('test-ca');
const provider = authority.server('idp', ['127.0.0.1']);

/** What the identity provider saw and how it answers; anew for each test. */
let seen: { form: Record<string, string>; authorization: string | undefined }[];
let answer: (form: Record<string, string>) => { status?: number; body: unknown };
let metadata: object;
let server: Server;
let issuer: string;

function jwt(lifetime: number, more: object = {}): string {
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: issuer, aud: 'kindred', sub: 'jane', iat: now - HOUR, exp: now + lifetime, ...more };
  return [{ alg: 'RS256' }, claims, 'hush']
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
}

const tokens = (idToken: string | undefined, refreshToken?: string): { body: unknown } => ({
  body: { access_token: 'hush-access', token_type: 'Bearer', id_token: idToken, refresh_token: refreshToken },
});

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const send = (status: number, body: unknown): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  if (request.url === '/realm/.well-known/openid-configuration') {
    send(200, { issuer, token_endpoint: `${issuer}/token`, ...metadata });
    return;
  }
  let text = '';
  for await (const chunk of request) text += String(chunk);
  const form = Object.fromEntries(new URLSearchParams(text));
  seen.push({ form, authorization: request.headers.authorization });
  const { status = 200, body } = answer(form);
  send(status, body);
}

beforeAll(async () => {
  server = createServer({ cert: provider.certificate, key: provider.key }, (...each) => void serve(...each));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}/realm`;
});

afterAll(() => new Promise((resolve) => server.close(resolve)));

beforeEach(() => {
  seen = [];
  metadata = { token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'] };
  answer = () => tokens(jwt(HOUR));
});

function kubeconfig(settings: Record<string, string | undefined>, user: object = {}): string {
  const config = {
    'idp-issuer-url': issuer,
    'client-id': 'kindred',
    'client-secret': 'hush-secret',
    'refresh-token': 'hush-first',
    'idp-certificate-authority-data': Buffer.from(authority.certificate).toString('base64'),
    ...settings,
  };
  return JSON.stringify({
    'current-context': 'one',
    clusters: [{ name: 'one', cluster: { server: 'https://api.example.com' } }],
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
    users: [{ name: 'one', user: { 'auth-provider': { name: 'oidc', config }, ...user } }],
  });
}

const access = (settings: Record<string, string | undefined>): ReturnType<typeof clusterAccessFromText> =>
  clusterAccessFromText(kubeconfig(settings), 'Secret a/b');

const bearer = (token: string): object => ({ headers: { authorization: `Bearer ${token}` } });

/** The error of asking for credentials, which holds no secret, not even in its causes. */
async function failure(settings: Record<string, string | undefined>): Promise<string> {
  const error = await access(settings)
    .credentials(false)
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(KubeconfigError);
  const { message, cause, stack } = error as KubeconfigError;
  expect(cause).toBeUndefined();
  expect(stack).not.toContain('hush');
  for (const value of Object.values(settings)) if ((value ?? '').includes('.ey')) expect(stack).not.toContain(value);
  return message;
}

test('a valid id-token is used as it is, and says when it expires', async () => {
  const idToken = jwt(HOUR);
  const credentials = await access({ 'id-token': idToken }).credentials(false);
  expect(credentials).toMatchObject(bearer(idToken));
  expect(credentials.expiresAt).toBeGreaterThan(Date.now() + 3_590_000);
  expect(seen).toEqual([]);
});

test('a token beside the auth provider goes first', async () => {
  const both = clusterAccessFromText(kubeconfig({ 'id-token': jwt(-1) }, { token: 't' }), 'x');
  expect(await both.credentials(false)).toMatchObject(bearer('t'));
  expect(seen).toEqual([]);
});

test('an expired one is refreshed once for all who wait, and kept', async () => {
  const fresh = jwt(HOUR);
  answer = () => tokens(fresh);
  const one = access({ 'id-token': jwt(-1) });
  const all = await Promise.all(Array.from({ length: 20 }, () => one.credentials(false)));
  for (const each of all) expect(each).toMatchObject(bearer(fresh));
  expect(await one.credentials(false)).toMatchObject(bearer(fresh));
  const form = { grant_type: 'refresh_token', refresh_token: 'hush-first', client_id: 'kindred' };
  expect(seen).toEqual([{ form: { ...form, client_secret: 'hush-secret' }, authorization: undefined }]);
  const cache = new CredentialCache(access({ 'id-token': jwt(-1) }));
  await Promise.all(Array.from({ length: 20 }, async () => cache.get()));
  expect(seen).toHaveLength(2);
});

test('it is refreshed before it expires, and after the server refused it, with the rotated refresh token', async () => {
  let count = 0;
  answer = () => tokens(jwt(count++ === 0 ? 30 : HOUR, { count }), `hush-${count}`);
  const one = access({ 'id-token': jwt(30) });
  await one.credentials(false);
  await one.credentials(false);
  await one.credentials(false);
  await one.credentials(true);
  expect(seen.map(({ form }) => form['refresh_token'])).toEqual(['hush-first', 'hush-1', 'hush-2']);
});

test('a refresh token that is not rotated stays in use; what cannot be refreshed yet is used until it expires', async () => {
  answer = () => tokens(jwt(30));
  const one = access({ 'id-token': undefined });
  const { headers } = await one.credentials(false);
  answer = () => ({ status: 503, body: {} });
  expect((await one.credentials(false)).headers).toEqual(headers);
  await expect(one.credentials(true)).rejects.toThrow('no credentials');
  expect(new Set(seen.map(({ form }) => form['refresh_token']))).toEqual(new Set(['hush-first']));
});

test('a provider that refuses is left alone for a while, then asked again', async () => {
  let now = Date.now();
  answer = () => ({ status: 400, body: { error: 'invalid_grant' } });
  const { users } = JSON.parse(kubeconfig({})) as { users: [{ user: { 'auth-provider': unknown } }] };
  const settings = oidcSettings({ authProvider: users[0].user['auth-provider'] });
  const tokensOf = new OidcTokenSource(settings ?? {}, () => now);
  for (let i = 0; i < 5; i++) await expect(tokensOf.get(false)).rejects.toThrow('invalid_grant');
  expect(seen).toHaveLength(1);
  now += 10_000;
  answer = () => tokens(jwt(HOUR));
  await tokensOf.get(false);
  expect(seen).toHaveLength(2);
});

test('the secret goes into a header where the provider does not take it in the form, and nowhere when there is none', async () => {
  metadata = {};
  await access({}).credentials(false);
  await access({ 'client-secret': '' }).credentials(false);
  expect(seen.map(({ form }) => form['client_secret'])).toEqual([undefined, undefined]);
  expect(seen[0]?.authorization).toMatch(/^Basic /);
  expect(seen[1]).toMatchObject({ form: { client_id: 'kindred' }, authorization: undefined });
});

test('the authority may be in a file beside the kubeconfig', async () => {
  const home = mkdtempSync(join(tmpdir(), 'kindred-oidc-'));
  try {
    writeFileSync(join(home, 'idp.pem'), authority.certificate);
    const settings = { 'idp-certificate-authority-data': undefined, 'idp-certificate-authority': 'idp.pem' };
    writeFileSync(join(home, 'config'), kubeconfig(settings));
    await loadClusterAccess({ path: join(home, 'config') }).credentials(false);
    expect(seen).toHaveLength(1);
  } finally {
    rmSync(home, { recursive: true });
  }
});

describe('what fails says why, and holds no secret', () => {
  test('a refusal, with a description that repeats the token', async () => {
    answer = (form) => ({ status: 400, body: { error: 'invalid_grant', error_description: form['refresh_token'] } });
    expect(await failure({ 'id-token': jwt(-1) })).toMatch(
      /^Secret a\/b: no credentials: the identity provider https:.*\/realm refused to refresh .* \(HTTP 400, invalid_grant\); log in again\.$/,
    );
    answer = (form) => ({ status: 401, body: { error: form['refresh_token'] } });
    expect(await failure({ 'id-token': jwt(-1) })).toContain('(HTTP 401); log in again');
  });

  test('an answer that is of no use', async () => {
    answer = () => tokens(undefined);
    expect(await failure({})).toContain('answered without an id-token');
    answer = () => tokens(jwt(HOUR, { aud: 'another' }));
    expect(await failure({})).toContain('gave no usable answer: unexpected JWT claim value encountered');
    answer = () => ({ status: 502, body: 'hush' });
    expect(await failure({})).toContain('HTTP 502');
    answer = () => ({ body: 'hush'.repeat(1 << 19) });
    expect(await failure({})).toContain('gave no usable answer');
    metadata = { issuer: 'https://hush' };
    expect(await failure({})).toContain('does not match the expected issuer');
  });

  test('no provider there, or one that is not trusted', async () => {
    const nobody = 'https://user:hush@127.0.0.1:1/realm';
    expect(await failure({ 'id-token': jwt(-1), 'idp-issuer-url': nobody })).toMatch(
      /provider https:\/\/127\.0\.0\.1:1\/realm cannot be reached: ECONNREFUSED; check idp-issuer-url/,
    );
    expect(await failure({ 'idp-certificate-authority-data': undefined })).toMatch(
      /cannot be reached: \w+; check idp-certificate-authority/,
    );
  });

  test.each([
    ['an unencrypted provider', { 'idp-issuer-url': 'http://127.0.0.1/realm' }, 'is no https URL'],
    ['no provider', { 'idp-issuer-url': '' }, 'has no idp-issuer-url'],
    ['no client', { 'client-id': '' }, 'has no client-id'],
    ['nothing to refresh with', { 'id-token': 'hush', 'refresh-token': '' }, 'no refresh-token to get one with'],
    [
      'a lost file',
      { 'idp-certificate-authority-data': '', 'idp-certificate-authority': '/nowhere' },
      'idp-certificate-authority cannot be read',
    ],
  ])('%s', async (_name, settings, message) => {
    expect(await failure(settings)).toContain(message);
    expect(seen).toEqual([]);
  });
});
