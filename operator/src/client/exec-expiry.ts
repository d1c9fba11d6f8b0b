import type { Credentials } from './cluster-access';

/** The part of KubeConfig's exec authenticator that knows when a credential expires. It is not in the package's types. */
interface ExecAuthenticator {
  readonly tokenCache: Readonly<Record<string, { readonly status?: { readonly expirationTimestamp?: string } } | null>>;
}

interface ExecConfig {
  getCurrentUser(): { readonly name: string; readonly exec?: unknown } | null;
}

/** An exec credential is renewed when less than this is left of it, in milliseconds. */
const MARGIN_MS = 60_000;

const kept = new WeakMap<ExecConfig, Credentials>();

/**
 * When the credential of an exec plugin has to be asked for again: shortly before it expires, or, when it does not say so, only after the
 * server refused it (as client-go does). The package itself would run the plugin for each request in the latter case.
 */
export class ExecExpiry {
  private constructor(readonly kept: Credentials | undefined) {}

  static of(config: ExecConfig): ExecExpiry {
    return new ExecExpiry(kept.get(config));
  }

  /** Keeps the credentials of an exec plugin, with their expiry; others are passed through. */
  static remember(config: ExecConfig, credentials: Credentials): Credentials {
    const user = config.getCurrentUser();
    if (user?.exec === undefined || user.exec === null) return credentials;
    const expiresAt = expiryOf(config, user.name);
    const complete: Credentials = expiresAt === undefined ? credentials : { ...credentials, expiresAt };
    kept.set(config, complete);
    return complete;
  }

  /** False when nothing is kept, or too little is left of it. */
  isUsable(now: number): boolean {
    if (this.kept === undefined) return false;
    return this.kept.expiresAt === undefined || now < this.kept.expiresAt - MARGIN_MS;
  }
}

function expiryOf(config: ExecConfig, user: string): number | undefined {
  const { authenticators } = config as ExecConfig & { readonly authenticators?: readonly Partial<ExecAuthenticator>[] };
  const credential = authenticators
    ?.map((each) => each.tokenCache?.[user])
    .find((each) => each !== undefined && each !== null);
  const expiresAt = Date.parse(credential?.status?.expirationTimestamp ?? '');
  return Number.isNaN(expiresAt) ? undefined : expiresAt;
}
