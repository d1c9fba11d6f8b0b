import type { Dispatcher } from 'undici';
import type { Credentials } from './credentials';
import { ImageError, readAll } from './oci';

/** Options of {@link RegistryAuth}. */
interface RegistryAuthOptions {
  /** The registry as references name it. */
  readonly host: string;
  /** Sends a request without authorization of its own. */
  readonly send: (
    url: URL,
    request: Pick<Dispatcher.RequestOptions, 'method' | 'headers' | 'body'>,
  ) => Promise<Dispatcher.ResponseData>;
  /** Docker's configuration, for messages. */
  readonly configFile: string;
  readonly credentials: () => Promise<Credentials | undefined>;
}

/** A challenge of the header WWW-Authenticate. */
interface Challenge {
  readonly scheme: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * Gets what the header Authorization needs: the user's password where the registry asks for it itself (Basic), otherwise
 * a token of the server that it names (Bearer). Secrets stay in here, and in headers.
 */
export class RegistryAuth {
  /** Values of the header, by what they are for. */
  private readonly authorizations = new Map<string, string>();
  private found: Promise<Credentials | undefined> | undefined;
  private credentials: Credentials | undefined;

  constructor(
    private readonly registry: URL,
    private readonly options: RegistryAuthOptions,
  ) {}

  /** The authorization that an earlier request with these scopes had. */
  known(scopes: readonly string[]): string | undefined {
    return this.authorizations.get(scopes.join(' '));
  }

  /**
   * Answers a challenge.
   *
   * @param header WWW-Authenticate of a response
   * @throws ImageError when there are no credentials, or they are refused
   */
  async authorize(header: string | string[] | undefined, scopes: readonly string[]): Promise<string> {
    const challenges = [header ?? []].flat().map(parseChallenge);
    const challenge = challenges.find(({ scheme }) => scheme === 'bearer') ?? challenges[0];
    this.found ??= this.options.credentials();
    this.credentials = await this.found;
    const authorization =
      challenge?.scheme === 'bearer'
        ? `Bearer ${await this.token(challenge.parameters, scopes)}`
        : this.basic(challenge?.scheme);
    this.authorizations.set(scopes.join(' '), authorization);
    return authorization;
  }

  /** The error of a request that is refused although it was authorized. */
  async refused(): Promise<ImageError> {
    const { host } = this.options;
    await this.found;
    return new ImageError(
      this.credentials === undefined
        ? this.noCredentials()
        : `the registry ${host} refuses the credentials of ${this.credentials.source}. Run: docker login ${host}`,
    );
  }

  private noCredentials(): string {
    const { host, configFile } = this.options;
    return `the registry ${host} wants credentials, and there are none for it in ${configFile}. Run: docker login ${host}`;
  }

  /** Who asks, for messages. */
  describe(): string {
    return this.credentials === undefined
      ? `Somebody without credentials (there are none in ${this.options.configFile})`
      : `The user whose credentials are those of ${this.credentials.source}`;
  }

  /** Takes the secrets out of a text, should a registry repeat them. */
  redact(text: string): string {
    const secret = this.credentials?.secret;
    const secrets = secret === undefined ? [] : [secret.type === 'password' ? secret.password : secret.token];
    const sent = [...this.authorizations.values()].map((value) => value.replace(/^\w+ /, ''));
    return [...secrets, ...sent].reduce((left, value) => (value === '' ? left : left.replaceAll(value, '***')), text);
  }

  private basic(scheme: string | undefined): string {
    const { host } = this.options;
    const secret = this.credentials?.secret;
    if (secret?.type === 'password') return basicAuth(secret);
    if (scheme !== 'basic')
      throw new ImageError(`the registry ${host} asks for an unknown kind of login (${scheme ?? 'none'})`);
    throw new ImageError(
      secret === undefined
        ? this.noCredentials()
        : `the registry ${host} wants a password, and ${this.credentials?.source ?? ''} has a token. Run: docker login ${host}`,
    );
  }

  private async token(parameters: Readonly<Record<string, string>>, scopes: readonly string[]): Promise<string> {
    const { host } = this.options;
    const url = this.realm(parameters['realm']);
    const service = parameters['service'] ?? '';
    const secret = this.credentials?.secret;
    const isToken = secret?.type === 'identity-token';
    const form = new URLSearchParams({ service, scope: scopes.join(' '), client_id: 'kindred' });
    if (isToken) {
      form.set('grant_type', 'refresh_token');
      form.set('refresh_token', secret.token);
    } else {
      if (service !== '') url.searchParams.set('service', service);
      for (const scope of scopes) url.searchParams.append('scope', scope);
    }
    const response = isToken
      ? await this.options.send(url, {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: form.toString(),
        })
      : await this.options.send(url, {
          method: 'GET',
          headers: secret === undefined ? {} : { authorization: basicAuth(secret) },
        });
    const content = await readAll(response.body);
    if ([400, 401, 403].includes(response.statusCode)) throw await this.refused();
    if (response.statusCode !== 200) {
      throw new ImageError(
        `${url.host}, which gives tokens for the registry ${host}, answered with ${response.statusCode}`,
      );
    }
    const token = tokenOf(content.toString());
    if (token !== undefined) return token;
    throw new ImageError(`${url.host}, which should give a token for the registry ${host}, gave none`);
  }

  /** @throws ImageError when credentials would leave this machine without TLS */
  private realm(realm: string | undefined): URL {
    const { host } = this.options;
    if (realm === undefined || !URL.canParse(realm)) {
      throw new ImageError(`the registry ${host} asks for a token, and does not say where to get it`);
    }
    const url = new URL(realm);
    if (url.protocol === 'https:' || this.registry.protocol === 'http:') return url;
    throw new ImageError(`the registry ${host} asks to send credentials to ${url.host} without TLS, which is refused`);
  }
}

function basicAuth({ username, password }: { readonly username: string; readonly password: string }): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function parseChallenge(header: string): Challenge {
  const [, scheme = '', rest = ''] = /^\s*(\w+)\s*(.*)$/s.exec(header) ?? [];
  const parameters = [...rest.matchAll(/(\w+)=(?:"([^"]*)"|([^\s,]+))/g)].map(
    ([, name = '', quoted, bare]) => [name.toLowerCase(), quoted ?? bare ?? ''] as const,
  );
  return { scheme: scheme.toLowerCase(), parameters: Object.fromEntries(parameters) };
}

function tokenOf(text: string): string | undefined {
  try {
    const { token, access_token } = JSON.parse(text) as { readonly token?: string; readonly access_token?: string };
    return token ?? access_token;
  } catch {
    // No JSON is no token.
    return undefined;
  }
}
