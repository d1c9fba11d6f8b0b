import { OidcError } from './oidc-failure';
import { refreshTokens } from './oidc-refresh';
import type { OidcSettings } from './oidc-settings';

/** An id-token with the end of its life, in milliseconds since the epoch; absent when it does not say. */
export interface IdToken {
  readonly token: string;
  readonly expiresAt?: number;
}

/** An id-token is refreshed when less than this is left of it, in milliseconds. */
const MARGIN_MS = 60_000;

/** For so long after a failure the provider is left alone: the watches of all kinds ask again and again. In milliseconds. */
const PAUSE_MS = 10_000;

/**
 * The id-token of a kubeconfig's user.
 *
 * Guarantees: a token with some time left is handed out as it is; one refresh runs at a time, and all who wait share it; a rotated
 * refresh token is used from then on; what cannot be refreshed yet is used until it expires; a provider that fails is asked again
 * after a pause.
 *
 * Caveats: new tokens live in memory, and the file is not rewritten. Where the identity provider takes each refresh token once, the
 * one in the file is spent after the first refresh.
 */
export class OidcTokens {
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
   * @param rejected the server refused the last one, which is refreshed then, if it can be
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
    this.pending ??= this.trade()
      .catch((error: unknown) => {
        this.failure = { error: error as Error, until: this.now() + PAUSE_MS };
        throw error;
      })
      .finally(() => (this.pending = undefined));
    return this.pending;
  }

  private async trade(): Promise<IdToken> {
    if (this.refreshToken === undefined) {
      throw new OidcError('the kubeconfig has no valid id-token, and no refresh-token to get one with; log in again');
    }
    const answer = await refreshTokens(this.settings, this.refreshToken);
    this.refreshToken = answer.refreshToken ?? this.refreshToken;
    this.current = idToken(answer.idToken);
    return this.current;
  }
}

/** Reads the `exp` of a JWT (RFC 7519), without a look at its signature: that is for the server. */
function idToken(token: string): IdToken {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    const expiry = (claims as { readonly exp?: unknown } | null)?.exp;
    return typeof expiry === 'number' ? { token, expiresAt: expiry * 1000 } : { token };
  } catch {
    return { token };
  }
}
