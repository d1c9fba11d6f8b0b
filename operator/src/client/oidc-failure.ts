import { errorCode } from './transport-failure';

/** No id-token can be had. The message says why and what to do, and holds nothing of what was sent or answered. */
export class OidcError extends Error {
  override readonly name = 'OidcError';
}

/** An error code as RFC 6749 and OpenID Connect have them; anything else may be a token that the provider repeats. */
const REFUSAL = /^[a-z]{1,20}(_[a-z]{1,20}){1,4}$/;

const CERTIFICATE = /CERT|SIGNATURE|ISSUER/;

/**
 * Says why a refresh failed. The error itself is not passed on, not as a cause either: it holds the answer, and a provider's
 * description of a refusal may repeat the token.
 */
export function oidcFailure(issuer: string, error: unknown): OidcError {
  const provider = `the identity provider ${withoutSecrets(issuer)}`;
  const { error: refusal, status } = error as { readonly error?: unknown; readonly status?: unknown };
  if (typeof status === 'number') {
    const code = typeof refusal === 'string' && REFUSAL.test(refusal) ? `, ${refusal}` : '';
    const advice = status < 500 ? '; log in again' : '';
    return new OidcError(`${provider} refused to refresh the id-token (HTTP ${status}${code})${advice}`);
  }
  const system = chain(error).find((each) => /^(E[A-Z_]+|[A-Z]+(_[A-Z]+)+)$/.test(errorCode(each)) && !isOAuth(each));
  if (system === undefined) return new OidcError(`${provider} gave no usable answer: ${saidBy(error)}`);
  const code = errorCode(system);
  const advice = CERTIFICATE.test(code)
    ? 'check idp-certificate-authority(-data) of the kubeconfig'
    : 'check idp-issuer-url and the network';
  return new OidcError(`${provider} cannot be reached: ${code}; ${advice}`);
}

/** The library's own errors have texts that quote nothing; what others say, or hold as their cause, is not repeated. */
function saidBy(error: unknown): string {
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
