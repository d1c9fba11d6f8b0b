import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CertificateAuthority, type KeyedCertificate } from '../../../local/certificates';

/** A directory with a serving certificate, as a mounted Secret is one. */
export class CertificateDirectory {
  readonly authority = new CertificateAuthority('webhook-ca');
  readonly path = mkdtempSync(join(tmpdir(), 'kindred-webhook-'));

  /** Puts a new certificate there; its common name is `name`. */
  renew(name: string): KeyedCertificate {
    const issued = this.authority.server(name, ['127.0.0.1']);
    this.write('tls.crt', issued.certificate);
    this.write('tls.key', issued.key);
    return issued;
  }

  write(file: 'tls.crt' | 'tls.key', text: string): void {
    writeFileSync(join(this.path, file), text);
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
