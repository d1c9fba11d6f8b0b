import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { CertificateAuthority, type KeyedCertificate } from '../../../local/certificates';
import { staticAccess, type TlsSettings } from '../../../operator/client/cluster-access';
import { Connections } from '../../../operator/client/connections';
import { createApiClient } from '../../../operator/client/http-api-client';
import { exchange } from '../../../operator/client/exchange';

const authority = new CertificateAuthority('ca');
const host = '127.0.0.1';
let server: Server;
let origin: string;
let connections: Connections;

beforeAll(async () => {
  const { certificate: cert, key } = authority.server('server', [host]);
  const options = { cert, key, ca: authority.certificate, requestCert: true, rejectUnauthorized: false };
  // It answers with the name in the client's certificate.
  server = createServer(options, (request, response) => {
    const { subject } = (request.socket as Socket & Pick<TLSSocket, 'getPeerCertificate'>).getPeerCertificate();
    response.end(String((subject as { CN?: string } | undefined)?.CN));
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  origin = `https://${host}:${String((server.address() as AddressInfo).port)}`;
});

afterAll(() => new Promise((resolve) => server.close(resolve)));

beforeEach(() => {
  connections = new Connections(origin, { maxConnections: 1 });
});

afterEach(() => connections.destroy(new Error('the test is over')));

function settings({ certificate: cert, key }: KeyedCertificate): TlsSettings {
  return { ca: authority.certificate, cert, key };
}

async function whoami(tls: TlsSettings): Promise<string> {
  const { body } = await exchange(connections.for(tls).requests, {
    ...{ method: 'GET', path: '/', headers: [], timeoutMs: 5000 },
  });
  return body;
}

test('a renewed client certificate is presented on new connections; the same bytes keep the old ones', async () => {
  const first = settings(authority.client({ commonName: 'first' }));
  expect(await whoami(first)).toBe('first');
  const pools = connections.for(first);
  expect(connections.for({ ...first })).toBe(pools);
  expect(await whoami(settings(authority.client({ commonName: 'second' })))).toBe('second');
  expect(connections.for(first)).not.toBe(pools);
});

test('a server that another authority vouches for is refused', async () => {
  const { certificate: ca } = new CertificateAuthority('another');
  await expect(whoami({ ca })).rejects.toThrow('certificate');
  expect(await whoami({ ca, rejectUnauthorized: false })).toBe('undefined');
});

test('a certificate that cannot be read is the error of the request, and a good one after it works', async () => {
  const broken = createApiClient(staticAccess(origin, { headers: {}, tls: { ca: authority.certificate, cert: 'x' } }));
  await expect(broken.getPath('/version')).rejects.toThrow(`GET /version at ${origin} failed: `);
  await broken.close();
  expect(() => connections.for({ cert: 'x' })).toThrow();
  expect(await whoami(settings(authority.client({ commonName: 'good' })))).toBe('good');
});
