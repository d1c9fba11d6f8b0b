import { CertificateAuthority, signingKeyPair } from './certificates';
import { loopback } from './ports';
import type { RunFolder } from './run-folder';

/** The files that prove who is who in one run. */
export interface Pki {
  readonly authority: CertificateAuthority;
  readonly files: {
    readonly authorityCertificate: string;
    readonly authorityKey: string;
    readonly serverCertificate: string;
    readonly serverKey: string;
    readonly serviceAccountKey: string;
    readonly serviceAccountPublicKey: string;
  };
}

/** Makes a certificate authority and what it signs for one run, and writes them into its folder. */
export function createPki(run: RunFolder): Pki {
  const authority = new CertificateAuthority('kindred-local-ca');
  const server = authority.server('kube-apiserver', [
    'localhost',
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.cluster.local',
    loopback,
    serviceNetwork.firstAddress,
  ]);
  const tokens = signingKeyPair();
  return {
    authority,
    files: {
      authorityCertificate: run.write('pki/ca.crt', authority.certificate),
      authorityKey: run.write('pki/ca.key', authority.key),
      serverCertificate: run.write('pki/apiserver.crt', server.certificate),
      serverKey: run.write('pki/apiserver.key', server.key),
      serviceAccountKey: run.write('pki/service-account.key', tokens.privateKey),
      serviceAccountPublicKey: run.write('pki/service-account.pub', tokens.publicKey),
    },
  };
}

/** Cluster IPs of Services. Nothing routes them; the first is the `kubernetes` Service's. */
export const serviceNetwork = { range: '10.96.0.0/16', firstAddress: '10.96.0.1' } as const;
