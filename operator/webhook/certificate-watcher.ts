import { errorMessage } from '../../constructs/kube/errors';
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { systemClock, type Clock } from '../process/clock';
import { StartupError } from '../process/lifecycle';
import type { Logger } from '../process/logger';

/** Options of `CertificateWatcher`. */
export interface CertificateWatcherOptions {
  /** The directory of `tls.crt` and `tls.key`. */
  readonly directory: string;
  readonly logger: Logger;
  /** How often to read the files, in milliseconds. @default 10000 */
  readonly everyMs?: number;
  /** @default systemClock */
  readonly clock?: Clock;
}

/** A TLS server's certificate and key, both PEM. */
export interface ServingCertificate {
  /** The server's certificate, followed by the intermediate ones. */
  readonly certificate: string;
  readonly key: string;
  /** When the server's certificate expires, in milliseconds since the epoch. */
  readonly expiresAt: number;
}

/**
 * The certificate in a directory, read again as it is rotated.
 *
 * It polls the files' content instead of watching them: the kubelet replaces a mounted Secret by moving a
 * symbolic link two levels up, which watches on the files do not report.
 *
 * Guarantees: files that do not match, for example because only one of them has been replaced, are never
 * passed on; the last good certificate stays, and the next read tries again.
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

  /** @throws CertificateError when there is no usable certificate */
  static async open(options: CertificateWatcherOptions): Promise<CertificateWatcher> {
    const { directory, clock = systemClock } = options;
    return new CertificateWatcher(options, clock, await readCertificate(directory));
  }

  /** The certificate to serve with. */
  get current(): ServingCertificate {
    return this.now;
  }

  /** Calls back with every new certificate from now on. */
  follow(onChange: (certificate: ServingCertificate) => void): void {
    const look = (): void => {
      void this.look(onChange).then(() => {
        if (!this.stopped) this.cancel = this.clock.setTimer(look, everyMs, { background: true });
      });
    };
    const { everyMs = 10_000 } = this.options;
    this.cancel = this.clock.setTimer(look, everyMs, { background: true });
  }

  /** Why the certificate cannot be used, or undefined when it can. */
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
      const reason = errorMessage(error);
      if (reason === this.lastFailure) return;
      this.lastFailure = reason;
      logger.warn({ directory, reason }, 'the new certificate cannot be used; the one before stays');
    }
  }
}

/** A certificate cannot be read or used. */
class CertificateError extends StartupError {}

/** The names of the files, as in a Secret of type `kubernetes.io/tls` and as cert-manager writes them. */
const FILES = { certificate: 'tls.crt', key: 'tls.key' } as const;

/**
 * Reads `tls.crt` and `tls.key` of a directory.
 *
 * @param known the previous result, which is returned when the files have not changed: each parse by OpenSSL
 * takes memory until it is garbage collected
 * @throws CertificateError when a file is missing or is not PEM, or when the key belongs to another
 * certificate, as it does for a moment while both are being replaced
 */
async function readCertificate(directory: string, known?: ServingCertificate): Promise<ServingCertificate> {
  // One after the other: when both are missing, the error always names the same one.
  const certificate = await read(directory, FILES.certificate);
  const key = await read(directory, FILES.key);
  if (known?.certificate === certificate && known.key === key) return known;
  try {
    createSecureContext({ cert: certificate, key });
    const expiresAt = Date.parse(new X509Certificate(certificate).validTo);
    return { certificate, key, expiresAt };
  } catch (error) {
    const reason = errorMessage(error);
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
