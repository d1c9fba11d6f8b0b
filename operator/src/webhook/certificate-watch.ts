import { systemClock, type Clock } from '../runtime/clock';
import type { Logger } from '../runtime/logger';
import { readCertificate, type ServingCertificate } from './certificate';

/** Options of `CertificateWatch`. */
export interface CertificateWatchOptions {
  /** Where `tls.crt` and `tls.key` are. */
  readonly directory: string;
  readonly logger: Logger;
  /** How often to look, in milliseconds. @default 10000 */
  readonly everyMs?: number;
  /** @default systemClock */
  readonly clock?: Clock;
}

/**
 * The certificate in a directory, followed as it is rotated.
 *
 * It looks at the files' content now and then instead of waiting for events: the kubelet replaces a mounted Secret by moving a symbolic
 * link two levels up, of which watches on the files hear nothing.
 *
 * Guarantees: what does not fit together, such as one file of two replaced, is never handed on; the last good certificate stays, and the
 * next look tries again.
 */
export class CertificateWatch {
  private cancel: (() => void) | undefined;
  private stopped = false;
  private lastFailure: string | undefined;

  private constructor(
    private readonly options: CertificateWatchOptions,
    private readonly clock: Clock,
    private now: ServingCertificate,
  ) {}

  /** @throws CertificateError when there is no certificate to begin with */
  static async open(options: CertificateWatchOptions): Promise<CertificateWatch> {
    const { directory, clock = systemClock } = options;
    return new CertificateWatch(options, clock, await readCertificate(directory));
  }

  /** What to serve with. */
  get current(): ServingCertificate {
    return this.now;
  }

  /** Tells of every new certificate from now on. */
  follow(onChange: (certificate: ServingCertificate) => void): void {
    const look = (): void => {
      void this.look(onChange).then(() => {
        if (!this.stopped) this.cancel = this.clock.setTimer(look, everyMs, { background: true });
      });
    };
    const { everyMs = 10_000 } = this.options;
    this.cancel = this.clock.setTimer(look, everyMs, { background: true });
  }

  /** Why the certificate is of no use, or undefined when it is. */
  problem(): string | undefined {
    const { expiresAt } = this.now;
    if (this.clock.wallMs() < expiresAt) return undefined;
    const since = new Date(expiresAt).toISOString();
    return `the certificate in ${this.options.directory} expired at ${since}, and no new one has come`;
  }

  stop(): void {
    this.stopped = true;
    this.cancel?.();
  }

  private async look(onChange: (certificate: ServingCertificate) => void): Promise<void> {
    const { directory, logger } = this.options;
    try {
      const found = await readCertificate(directory, this.now);
      this.lastFailure = undefined;
      if (this.stopped || found === this.now) return;
      onChange(found);
      this.now = found;
      logger.info({ directory, expiresAt: new Date(found.expiresAt).toISOString() }, 'serving with a new certificate');
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason === this.lastFailure) return;
      this.lastFailure = reason;
      logger.warn({ directory, reason }, 'the new certificate cannot be used; the one before stays');
    }
  }
}
