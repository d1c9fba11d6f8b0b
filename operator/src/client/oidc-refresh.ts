// Client-node's own refresh does not work: it hands openid-client a text where that takes a URL.
import { ClientSecretBasic, ClientSecretPost, customFetch, discovery, None, refreshTokenGrant } from 'openid-client';
import type { ClientAuth } from 'openid-client';
import { OidcError, oidcFailure } from './oidc-failure';
import { fetchTrusting } from './oidc-fetch';
import type { OidcSettings } from './oidc-settings';

/** What an identity provider gives for a refresh token. */
export interface RefreshedTokens {
  readonly idToken: string;
  /** Where the provider rotates them: the one to use from now on. */
  readonly refreshToken?: string;
}

/** For each of the two requests; both have to fit into what a request of the operator waits for credentials. */
const TIMEOUT_S = 20;

/**
 * Trades a refresh token for a new id-token: OpenID Connect Core 1.0, section 12, at the provider found by its discovery document.
 * @throws OidcError
 */
export async function refreshTokens(settings: OidcSettings, refreshToken: string): Promise<RefreshedTokens> {
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
    throw oidcFailure(issuer, error);
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

/** A secret goes where the provider says that it takes it; a provider that says nothing takes it in a header, by the standard. */
function authentication(secret: string | undefined): ClientAuth {
  if (secret === undefined) return None();
  const [inBody, inHeader] = [ClientSecretPost(secret), ClientSecretBasic(secret)];
  return (server, client, body, headers) => {
    const posts = server.token_endpoint_auth_methods_supported?.includes('client_secret_post') === true;
    const authenticate = posts ? inBody : inHeader;
    authenticate(server, client, body, headers);
  };
}
