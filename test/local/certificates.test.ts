import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { CertificateAuthority, type KeyedCertificate } from '../../local/certificates';

const authority = new CertificateAuthority('test-ca');
const server = authority.server('kube-apiserver', ['localhost', '127.0.0.1']);
const client = authority.client({ commonName: 'jane', organizations: ['system:masters', 'dev'] });

test('the authority signs itself and what it issues, and each key fits its certificate', () => {
  const root = new X509Certificate(authority.certificate);
  expect(root.ca).toBe(true);
  for (const { certificate, key } of [authority, server, client]) {
    const issued = new X509Certificate(certificate);
    expect(issued.verify(root.publicKey)).toBe(true);
    expect(issued.checkIssued(root)).toBe(true);
    expect(issued.checkPrivateKey(createPrivateKey(key))).toBe(true);
  }
  expect(new X509Certificate(client.certificate).ca).toBe(false);
});

test('a client certificate carries the user as its common name and the groups as organizations', () => {
  expect(new X509Certificate(client.certificate).subject).toBe('O=system:masters\nO=dev\nCN=jane');
});

test('a server certificate is good for its hosts and for no others', () => {
  const issued = new X509Certificate(server.certificate);
  expect(issued.checkHost('localhost')).toBe('localhost');
  expect(issued.checkIP('127.0.0.1')).toBe('127.0.0.1');
  expect(issued.checkHost('example.com')).toBeUndefined();
});

test('certificates are valid now, for a week, and each has a serial number of its own', () => {
  const issued = [authority, server, client].map(({ certificate }) => new X509Certificate(certificate));
  for (const { validFrom, validTo } of issued) {
    expect(Date.parse(validFrom)).toBeLessThan(Date.now());
    expect(Date.parse(validTo)).toBeGreaterThan(Date.now() + 6 * 24 * 3600 * 1000);
  }
  expect(new Set(issued.map(({ serialNumber }) => serialNumber)).size).toBe(3);
});

describe('in a TLS handshake', () => {
  /** Whether a server that wants client certificates lets this one in. */
  async function letIn(user: KeyedCertificate, usage: KeyedCertificate = server): Promise<string> {
    const listening = createServer(
      {
        cert: usage.certificate,
        key: usage.key,
        ca: authority.certificate,
        requestCert: true,
        rejectUnauthorized: true,
      },
      (message, response) => {
        const { socket } = message as typeof message & { readonly socket: TLSSocket };
        response.end(socket.getPeerCertificate().subject.CN);
      },
    );
    await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
    const { port } = listening.address() as AddressInfo;
    const options = { port, host: '127.0.0.1', ca: authority.certificate, cert: user.certificate, key: user.key };
    try {
      return await new Promise((resolve, reject) => {
        request({ ...options, agent: false }, (response) => {
          response.on('data', (chunk: Buffer) => resolve(chunk.toString()));
        })
          .on('error', reject)
          .end();
      });
    } finally {
      listening.closeAllConnections();
      await new Promise((resolve) => listening.close(resolve));
    }
  }

  test('both sides are accepted', async () => {
    await expect(letIn(client)).resolves.toBe('jane');
  });

  test('a client of another authority is refused', async () => {
    await expect(letIn(new CertificateAuthority('test-ca').client({ commonName: 'jane' }))).rejects.toThrow();
  });

  test('a client certificate does not make a server', async () => {
    await expect(letIn(client, client)).rejects.toThrow();
  });
});
