import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CertificateAuthority, signingKeyPair } from '../../../../local/plane/certificates';
import type { Pki } from '../../../../local/plane/pki';
import type { Identity } from './requests';
import type { Settings } from './settings';

/** What all servers of a cluster share; those that join get it from one that is there. */
export interface Bootstrap {
  readonly authorityCertificate: string;
  readonly authorityKey: string;
  readonly serviceAccountKey: string;
  readonly serviceAccountPublicKey: string;
}

const files = {
  authorityCertificate: 'server-ca.crt',
  authorityKey: 'server-ca.key',
  serviceAccountKey: 'service.key',
  serviceAccountPublicKey: 'service.pub',
} as const;

const folderOf = ({ data }: Settings): string => join(data, 'server', 'tls');

/** What was kept by an earlier run on this machine. */
export function keptBootstrap(settings: Settings): Bootstrap | undefined {
  const folder = folderOf(settings);
  if (!existsSync(join(folder, 'complete'))) return undefined;
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
  return {
    authorityCertificate: read(files.authorityCertificate),
    authorityKey: read(files.authorityKey),
    serviceAccountKey: read(files.serviceAccountKey),
    serviceAccountPublicKey: read(files.serviceAccountPublicKey),
  };
}

export function newBootstrap(): Bootstrap {
  const authority = new CertificateAuthority('stand-in-ca');
  const tokens = signingKeyPair();
  return {
    authorityCertificate: authority.certificate,
    authorityKey: authority.key,
    serviceAccountKey: tokens.privateKey,
    serviceAccountPublicKey: tokens.publicKey,
  };
}

/** Writes what is shared, and this server's own certificate, into its data folder. */
export function writePki(settings: Settings, bootstrap: Bootstrap): Pki {
  const folder = folderOf(settings);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const write = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  const { authorityCertificate: certificate, authorityKey: key } = bootstrap;
  const authority = new CertificateAuthority('stand-in-ca', { certificate, key });
  const names = ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc', '127.0.0.1', '10.96.0.1'];
  const hosts = [...new Set([...names, settings.nodeIp, settings.nodeName, ...settings.sans])];
  const server = authority.server('kube-apiserver', hosts);
  const shared = Object.fromEntries(
    Object.entries(files).map(([what, name]) => [what, write(name, bootstrap[what as keyof Bootstrap])]),
  ) as Record<keyof Bootstrap, string>;
  const own = {
    serverCertificate: write('apiserver.crt', server.certificate),
    serverKey: write('apiserver.key', server.key),
  };
  write('complete', '');
  return { authority, files: { ...shared, ...own } };
}

/** A client of the API, in a group if need be. */
export function identity(authority: CertificateAuthority, commonName: string, organizations: string[]): Identity {
  const { certificate: cert, key } = authority.client({ commonName, organizations });
  return { ca: authority.certificate, cert, key };
}
