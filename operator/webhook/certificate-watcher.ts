import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { systemClock, type Clock } from '../process/clock';
import { StartupError } from '../process/lifecycle';
import type { Logger } from '../process/logger';

/** Options of `CertificateWatcher`. */
export interface CertificateWatcherOptions {
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
export class CertificateWatcher {
  private cancel: (() => void) | undefined;
  private stopped = false;
  private lastFailure: string | undefined;

  private constructor(
    private readonly options: CertificateWatcherOptions,
    private readonly clock: Clock,
    private now: ServingCertificate,
  ) {}

  /** @throws CertificateError when there is no certificate to begin with */
  static async open(options: CertificateWatcherOptions): Promise<CertificateWatcher> {
    const { directory, clock = systemClock } = options;
    return new CertificateWatcher(options, clock, await readCertificate(directory));
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

/** The names of the files, as a Secret of type `kubernetes.io/tls` holds them and cert-manager writes them. */
const FILES = { certificate: 'tls.crt', key: 'tls.key' } as const;

/** What a TLS server shows its clients. Both PEM. */
export interface ServingCertificate {
  /** The server's certificate, then the intermediate ones. */
  readonly certificate: string;
  readonly key: string;
  /** When the first of them ends, in milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** A certificate cannot be read, or cannot be served with. */
class CertificateError extends StartupError {}

/**
 * Reads `tls.crt` and `tls.key` of a directory.
 *
 * @param known what was read before: it is the answer where the files have not changed, since what OpenSSL makes of them lives until it is collected
 *
 * Errors: CertificateError when one is missing, is no PEM, or when the key is another certificate's, as it is for a moment while both
 * are being replaced.
 */
async function readCertificate(directory: string, known?: ServingCertificate): Promise<ServingCertificate> {
  // One after the other: where both are missing, the error always names the same one.
  const certificate = await read(directory, FILES.certificate);
  const key = await read(directory, FILES.key);
  if (known?.certificate === certificate && known.key === key) return known;
  try {
    createSecureContext({ cert: certificate, key });
    const expiresAt = Date.parse(new X509Certificate(certificate).validTo);
    return { certificate, key, expiresAt };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const files = `${FILES.certificate} and ${FILES.key}`;
    throw new CertificateError(`${files} in ${directory} are no certificate with its key (PEM): ${reason}`, {
      cause: error,
    });
  }
}

async function read(directory: string, file: string): Promise<string> {
  const path = join(directory, file);
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new CertificateError(`${path} cannot be read (${code}): mount the Secret with the certificate there`, {
      cause: error,
    });
  }
}
