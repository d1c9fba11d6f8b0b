import type { Credentials } from './credentials';
import { discard, errorOfStatus } from './http';
import type { HttpRequest, HttpResponse } from './http';
import { ImageError, MAX_DOCUMENT_BYTES, readAll } from './oci';

/** Options of {@link RegistryAuth}. */
interface RegistryAuthOptions {
  /** The registry as references name it. */
  readonly host: string;
  /** Sends a request without authorization of its own. */
  readonly send: (url: URL, request: HttpRequest) => Promise<HttpResponse>;
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
  /** Whatever must not be shown. */
  private readonly secrets = new Set<string>();
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
   * @returns the header's value, and whether it is a token, which is given only for good credentials
   * @throws ImageError when there are no credentials, or they are refused
   */
  async authorize(
    header: string | string[] | undefined,
    scopes: readonly string[],
  ): Promise<{ readonly authorization: string; readonly isToken: boolean }> {
    const challenges = [header ?? []].flat().flatMap(parseChallenges);
    const challenge = ['bearer', 'basic'].flatMap((name) => challenges.find(({ scheme }) => scheme === name) ?? [])[0];
    this.found ??= this.options.credentials();
    this.credentials = await this.found;
    this.keepSecret(this.credentials?.secret);
    const isToken = challenge?.scheme === 'bearer';
    const authorization = isToken ? `Bearer ${await this.token(challenge.parameters, scopes)}` : this.basic(challenge);
    this.secrets.add(authorization.replace(/^\w+ /, ''));
    this.authorizations.set(scopes.join(' '), authorization);
    return { authorization, isToken: isToken && this.credentials !== undefined };
  }

  /** The error of a request that is refused although it was authorized. */
  refused(): ImageError {
    const { host } = this.options;
    return new ImageError(
      this.credentials === undefined
        ? this.noCredentials()
        : `the registry ${host} refuses the credentials of ${this.credentials.source}. Run: docker login ${host}`,
    );
  }

  private noCredentials(): string {
    const { host, configFile } = this.options;
    return (
      `the registry ${host} wants credentials, and there are none for it in ${configFile}. Check the name of the repository, since some ` +
      `registries say this of one that does not exist, or run: docker login ${host}`
    );
  }

  /** Who asks, for messages. */
  describe(): string {
    if (this.found === undefined) return 'Somebody without credentials (the registry did not ask for any)';
    return this.credentials === undefined
      ? `Somebody without credentials (there are none in ${this.options.configFile})`
      : `The user whose credentials are those of ${this.credentials.source}`;
  }

  /** Takes the secrets out of a text, should a registry repeat them. */
  redact(text: string): string {
    // A very short one would take the text itself apart, and is none that anybody should have.
    const secrets = [...this.secrets].filter((secret) => secret.length >= 4).toSorted((a, b) => b.length - a.length);
    return secrets.reduce((left, secret) => left.replaceAll(secret, '***'), text);
  }

  /** In each form in which it is sent. */
  private keepSecret(secret: Credentials['secret'] | undefined): void {
    if (secret === undefined) return;
    const value = secret.type === 'password' ? secret.password : secret.token;
    for (const form of [value, encodeURIComponent(value)]) this.secrets.add(form);
    if (secret.type === 'password') this.secrets.add(basicAuth(secret).replace(/^Basic /, ''));
  }

  private basic(challenge: Challenge | undefined): string {
    const { host } = this.options;
    if (challenge === undefined) throw new ImageError(`the registry ${host} asks for a login of an unknown kind`);
    const secret = this.credentials?.secret;
    if (secret?.type === 'password') return basicAuth(secret);
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
    if (response.status === 400 || response.status === 401) {
      await discard(response);
      throw this.refused();
    }
    if (response.status === 403) {
      await discard(response);
      throw new ImageError(
        `the registry ${host} gives no token for ${scopes.join(' ')}. ${this.describe()} may not do that, or there is no such repository: ` +
          'check its name, or log in as somebody who may.',
      );
    }
    if (response.status !== 200) {
      await discard(response);
      throw errorOfStatus(
        `${url.host}, which gives tokens for the registry ${host}, answered with ${response.status}`,
        response,
      );
    }
    const token = tokenOf((await readAll(response.body, MAX_DOCUMENT_BYTES)).toString());
    if (token !== undefined) this.secrets.add(token);
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

/** The challenges of one header. Source: RFC 9110, section 11.6.1, without tokens in the place of parameters. */
function parseChallenges(header: string): readonly Challenge[] {
  const challenges: { readonly scheme: string; readonly parameters: Record<string, string> }[] = [];
  for (const [, scheme, name, quoted, bare] of header.matchAll(
    /(?:^|,)\s*(?:(\w+)(?:\s+(?=\w+\s*=)|\s*(?=,|$)))?(?:(\w+)\s*=\s*(?:"([^"]*)"|([^\s,]+)))?/g,
  )) {
    if (scheme !== undefined) challenges.push({ scheme: scheme.toLowerCase(), parameters: {} });
    const last = challenges.at(-1);
    if (last !== undefined && name !== undefined) last.parameters[name.toLowerCase()] = quoted ?? bare ?? '';
  }
  return challenges;
}

function tokenOf(text: string): string | undefined {
  try {
    const answer: unknown = JSON.parse(text);
    const values = ['token', 'access_token'].map((name): unknown => Reflect.get(Object(answer) as object, name));
    return values.find((value): value is string => typeof value === 'string' && value !== '');
  } catch {
    // No JSON is no token.
    return undefined;
  }
}
