import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { StartupError } from '../runtime/startup-error';

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
export class CertificateError extends StartupError {}

/**
 * Reads `tls.crt` and `tls.key` of a directory.
 *
 * @param known what was read before: it is the answer where the files have not changed, since what OpenSSL makes of them lives until it is collected
 *
 * Errors: CertificateError when one is missing, is no PEM, or when the key is another certificate's, as it is for a moment while both
 * are being replaced.
 */
export async function readCertificate(directory: string, known?: ServingCertificate): Promise<ServingCertificate> {
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
