import { readFileSync } from 'node:fs';

/** What the auth provider `oidc` of a kubeconfig says; what it leaves out, or has as something other than text, is absent. */
export interface OidcSettings {
  readonly issuer?: string;
  readonly clientId?: string;
  readonly clientSecret?: string;
  readonly idToken?: string;
  readonly refreshToken?: string;
  /** The authority that signs the identity provider's certificate, as PEM. @default the system's authorities */
  readonly authority?: () => Buffer;
}

/** The part of a kubeconfig's user that is looked at. */
export interface OidcUser {
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
