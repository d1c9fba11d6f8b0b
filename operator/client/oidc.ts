import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import {
  ClientSecretBasic,
  ClientSecretPost,
  None,
  customFetch,
  discovery,
  refreshTokenGrant,
  type ClientAuth,
  type CustomFetch,
} from 'openid-client';
import { errorCode } from './errors';

/** The settings of a kubeconfig's auth provider `oidc`; one that is missing or not a string is absent. */
interface OidcSettings {
  readonly issuer?: string;
  readonly clientId?: string;
  readonly clientSecret?: string;
  readonly idToken?: string;
  readonly refreshToken?: string;
  /** The authority that signs the identity provider's certificate, as PEM. @default the system's authorities */
  readonly authority?: () => Buffer;
}

/** An id-token and its expiry, in milliseconds since the epoch; absent when the token has none. */
interface IdToken {
  readonly token: string;
  readonly expiresAt?: number;
}

/** An id-token with less than this left, in milliseconds, is refreshed. */
const MARGIN_MS = 60_000;

/**
 * How long the provider is not called again after a failure, in milliseconds: the watches of all kinds keep
 * asking for a token.
 */
const PAUSE_MS = 10_000;

/**
 * The id-token of a kubeconfig's user.
 *
 * Guarantees:
 * - A token with enough time left is returned as it is.
 * - One refresh runs at a time, and all callers share it.
 * - A rotated refresh token is used from then on.
 * - A token whose refresh fails is used until it expires.
 * - A provider that fails is called again only after a pause.
 *
 * Caveats: new tokens are kept in memory only; the file is not rewritten. If the identity provider accepts
 * each refresh token once, the one in the file is used up by the first refresh.
 */
export class OidcTokenSource {
  private current: IdToken | undefined;
  private refreshToken: string | undefined;
  private pending: Promise<IdToken> | undefined;
  private failure: { readonly error: Error; readonly until: number } | undefined;

  constructor(
    private readonly settings: OidcSettings,
    private readonly now: () => number = Date.now,
  ) {
    this.current = settings.idToken === undefined ? undefined : idToken(settings.idToken);
    this.refreshToken = settings.refreshToken;
  }

  /**
   * The token to use now.
   * @param rejected the server rejected the last one, which is then refreshed, if possible
   * @throws OidcError
   */
  async get(rejected: boolean): Promise<IdToken> {
    const { current } = this;
    const left = (current?.expiresAt ?? 0) - this.now();
    const usable = current !== undefined && left > 0;
    if (usable && (this.refreshToken === undefined || (left > MARGIN_MS && !rejected))) return current;
    try {
      return await this.refresh();
    } catch (error) {
      if (usable && !rejected) return current;
      throw error;
    }
  }

  private refresh(): Promise<IdToken> {
    if (this.failure !== undefined && this.now() < this.failure.until) return Promise.reject(this.failure.error);
    this.pending ??= this.exchangeRefreshToken()
      .catch((error: unknown) => {
        this.failure = { error: error as Error, until: this.now() + PAUSE_MS };
        throw error;
      })
      .finally(() => (this.pending = undefined));
    return this.pending;
  }

  private async exchangeRefreshToken(): Promise<IdToken> {
    if (this.refreshToken === undefined) {
      throw new OidcError('the kubeconfig has no valid id-token, and no refresh-token to get one with; log in again');
    }
    const answer = await refreshTokens(this.settings, this.refreshToken);
    this.refreshToken = answer.refreshToken ?? this.refreshToken;
    this.current = idToken(answer.idToken);
    return this.current;
  }
}

/**
 * No id-token is available. The message says why and what to do, and contains nothing of the request or the
 * response.
 */
class OidcError extends Error {
  override readonly name = 'OidcError';
}

/** Reads the `exp` of a JWT (RFC 7519) without verifying the signature: that is the server's task. */
function idToken(token: string): IdToken {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    const expiry = (claims as { readonly exp?: unknown } | null)?.exp;
    return typeof expiry === 'number' ? { token, expiresAt: expiry * 1000 } : { token };
  } catch {
    return { token };
  }
}

/** The part of a kubeconfig's user that is read. */
interface OidcUser {
  readonly authProvider?: unknown;
}

/**
 * The settings of a user of the auth provider `oidc`; undefined for other users.
 *
 * Source of the names: Kubernetes documentation, "Authenticating", OpenID Connect tokens.
 */
export function oidcSettings(user: OidcUser | null): OidcSettings | undefined {
  const provider = user?.authProvider as { readonly name?: unknown; readonly config?: unknown } | null | undefined;
  if (provider?.name !== 'oidc') return undefined;
  const config = (provider.config ?? {}) as Readonly<Record<string, unknown>>;
  const text = (name: string): string | undefined => {
    const value = config[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  return {
    issuer: text('idp-issuer-url'),
    clientId: text('client-id'),
    clientSecret: text('client-secret'),
    idToken: text('id-token'),
    refreshToken: text('refresh-token'),
    authority: authorityFrom(text('idp-certificate-authority-data'), text('idp-certificate-authority')),
  };
}

function authorityFrom(data: string | undefined, file: string | undefined): (() => Buffer) | undefined {
  if (data !== undefined) return () => Buffer.from(data, 'base64');
  return file === undefined ? undefined : () => readFileSync(file);
}

/** What an identity provider returns for a refresh token. */
interface RefreshedTokens {
  readonly idToken: string;
  /** If the provider rotates them: the one to use from now on. */
  readonly refreshToken?: string;
}

/**
 * Timeout of each of the two requests; both have to fit into the time that a request waits for credentials.
 */
const TIMEOUT_S = 20;

/**
 * Exchanges a refresh token for a new id-token: OpenID Connect Core 1.0, section 12, at the provider found by
 * its discovery document. Client-node's own refresh does not work: it passes openid-client a string where a
 * URL is required.
 * @throws OidcError
 */
async function refreshTokens(settings: OidcSettings, refreshToken: string): Promise<RefreshedTokens> {
  const issuer = required(settings.issuer, 'idp-issuer-url');
  const clientId = required(settings.clientId, 'client-id');
  if (!issuer.startsWith('https://') || !URL.canParse(issuer)) {
    throw new OidcError('the id-token cannot be refreshed: idp-issuer-url of the kubeconfig is no https URL');
  }
  const ca = authorityOf(settings);
  try {
    const options = { timeout: TIMEOUT_S, [customFetch]: fetchTrusting(ca) };
    const provider = await discovery(new URL(issuer), clientId, {}, authentication(settings.clientSecret), options);
    provider.timeout = TIMEOUT_S;
    const answer = await refreshTokenGrant(provider, refreshToken);
    if (answer.id_token !== undefined) return { idToken: answer.id_token, refreshToken: answer.refresh_token };
  } catch (error) {
    throw toOidcError(issuer, error);
  }
  throw new OidcError('the identity provider answered without an id-token; log in again with the scope openid');
}

function required(value: string | undefined, name: string): string {
  if (value !== undefined) return value;
  throw new OidcError(`the id-token cannot be refreshed: the kubeconfig has no ${name}`);
}

function authorityOf({ authority }: OidcSettings): Buffer | undefined {
  try {
    return authority?.();
  } catch {
    throw new OidcError('the id-token cannot be refreshed: the file of idp-certificate-authority cannot be read');
  }
}

/**
 * Sends the client secret where the provider's metadata says that it accepts it; by default, as in the
 * standard, in a header.
 */
function authentication(secret: string | undefined): ClientAuth {
  if (secret === undefined) return None();
  const [inBody, inHeader] = [ClientSecretPost(secret), ClientSecretBasic(secret)];
  return (server, client, body, headers) => {
    const posts = server.token_endpoint_auth_methods_supported?.includes('client_secret_post') === true;
    const authenticate = posts ? inBody : inHeader;
    authenticate(server, client, body, headers);
  };
}

/**
 * An error code in the form of RFC 6749 and OpenID Connect; anything else may be a token that the provider
 * repeats.
 */
const REFUSAL = /^[a-z]{1,20}(_[a-z]{1,20}){1,4}$/;

const CERTIFICATE = /CERT|SIGNATURE|ISSUER/;

/**
 * Says why a refresh failed. The original error is not passed on, not even as a cause: it contains the
 * response, and the provider's description may repeat the token.
 */
function toOidcError(issuer: string, error: unknown): OidcError {
  const provider = `the identity provider ${withoutSecrets(issuer)}`;
  const { error: refusal, status } = error as { readonly error?: unknown; readonly status?: unknown };
  if (typeof status === 'number') {
    const code = typeof refusal === 'string' && REFUSAL.test(refusal) ? `, ${refusal}` : '';
    const advice = status < 500 ? '; log in again' : '';
    return new OidcError(`${provider} refused to refresh the id-token (HTTP ${status}${code})${advice}`);
  }
  const system = chain(error).find((each) => /^(E[A-Z_]+|[A-Z]+(_[A-Z]+)+)$/.test(errorCode(each)) && !isOAuth(each));
  if (system === undefined) return new OidcError(`${provider} gave no usable answer: ${describeError(error)}`);
  const code = errorCode(system);
  const advice = CERTIFICATE.test(code)
    ? 'check idp-certificate-authority(-data) of the kubeconfig'
    : 'check idp-issuer-url and the network';
  return new OidcError(`${provider} cannot be reached: ${code}; ${advice}`);
}

/** The library's own messages quote nothing; other messages and their causes are not repeated. */
function describeError(error: unknown): string {
  if (errorCode(error) === 'OAUTH_TIMEOUT') return 'it took too long';
  if (!isOAuth(error)) return 'it is not what OpenID Connect prescribes';
  const { message, cause } = error as { readonly message: string; readonly cause?: { readonly status?: unknown } };
  return typeof cause?.status === 'number' ? `${message} (HTTP ${cause.status})` : message;
}

function isOAuth(error: unknown): boolean {
  return errorCode(error).startsWith('OAUTH_');
}

function chain(error: unknown): readonly unknown[] {
  const all: unknown[] = [];
  for (let each = error; each !== undefined && each !== null && all.length < 5;) {
    all.push(each);
    each = (each as { readonly cause?: unknown }).cause;
  }
  return all;
}

function withoutSecrets(issuer: string): string {
  if (!URL.canParse(issuer)) return 'of idp-issuer-url';
  const { origin, pathname } = new URL(issuer);
  return `${origin}${pathname}`;
}

/** More than any metadata or token response has, in bytes. */
const MAX_BYTES = 1 << 20;

/**
 * Sends requests to an identity provider, trusting the given CA. `fetch` takes no CA, and its first use would
 * load a second HTTP client into the process for one request an hour.
 * @param ca PEM; the system's authorities when absent
 */
function fetchTrusting(ca: Buffer | undefined): CustomFetch {
  return (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const options = { method, headers, agent: false, ...(ca === undefined ? {} : { ca }), ...(signal && { signal }) };
      const sent = request(url, options, (answer) => {
        responseOf(answer)
          .finally(() => sent.destroy())
          .then(resolve, reject);
      });
      sent.on('error', reject);
      // The library sends only forms.
      sent.end(body instanceof URLSearchParams ? body.toString() : undefined);
    });
}

async function responseOf(answer: IncomingMessage): Promise<Response> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new Error('its answer is too long');
    chunks.push(chunk);
  }
  const status = answer.statusCode ?? 0;
  const bodiless = status === 204 || status === 304;
  const type = answer.headers['content-type'];
  return new Response(bodiless ? null : Buffer.concat(chunks), {
    status,
    headers: type === undefined ? {} : { 'content-type': type },
  });
}
