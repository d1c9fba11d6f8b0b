/**
 * Certificates for one run, all P-256: a certificate authority and the certificates that it issues. Node can
 * sign but not issue X.509, and only one simple shape of certificate is needed here; the authority's key
 * lives as long as the run's data directory.
 */
import { createPrivateKey, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { loopback } from './ports';
import type { RunFolder } from './run-folder';

/** A certificate with its private key, both PEM. */
export interface KeyedCertificate {
  readonly certificate: string;
  readonly key: string;
}

/**
 * The subject of a certificate. Kubernetes reads `commonName` as the user and `organizations` as its groups.
 */
interface Subject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
}

/** A certificate authority that lives in memory. */
export class CertificateAuthority implements KeyedCertificate {
  readonly certificate: string;
  readonly key: string;
  readonly #subject: Subject;
  readonly #key: KeyObject;

  /**
   * Creates a self-signed authority.
   *
   * @param existing - the certificate and key of an authority created earlier with the same name, to be used
   * again
   */
  constructor(commonName: string, existing?: KeyedCertificate) {
    this.#subject = { commonName };
    if (existing !== undefined) {
      this.#key = createPrivateKey(existing.key);
      this.key = existing.key;
      this.certificate = existing.certificate;
      return;
    }
    const pair = newKeyPair();
    this.#key = pair.privateKey;
    this.key = pem(pair.privateKey);
    this.certificate = this.#issue(this.#subject, pair.publicKey, [
      extension('2.5.29.19', sequence(boolean(true)), true), // basic constraints: an authority
      extension('2.5.29.15', bitString(Buffer.from([0x06]), 1), true), // key usage: sign certificates and CRLs
    ]);
  }

  /** Issues a server certificate for host names and IPv4 addresses. */
  server(commonName: string, hosts: readonly string[]): KeyedCertificate {
    return this.#leaf({ commonName }, usages.server, [extension('2.5.29.17', sequence(...hosts.map(generalName)))]);
  }

  /** Issues a client certificate. */
  client(subject: Subject): KeyedCertificate {
    return this.#leaf(subject, usages.client, []);
  }

  #leaf(subject: Subject, usage: string, more: readonly Buffer[]): KeyedCertificate {
    const pair = newKeyPair();
    const certificate = this.#issue(subject, pair.publicKey, [
      extension('2.5.29.15', bitString(Buffer.from([0x80]), 7), true), // key usage: digital signature
      extension('2.5.29.37', sequence(oid(usage))), // extended key usage
      ...more,
    ]);
    return { certificate, key: pem(pair.privateKey) };
  }

  #issue(subject: Subject, publicKey: KeyObject, extensions: readonly Buffer[]): string {
    const now = Date.now();
    const body = sequence(
      tagged(0, integer(Buffer.from([2]))), // X.509 version 3
      integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
      ecdsaWithSha256,
      name(this.#subject),
      sequence(utcTime(new Date(now - backdatedMs)), utcTime(new Date(now + validForMs))),
      name(subject),
      publicKey.export({ type: 'spki', format: 'der' }),
      tagged(3, sequence(...extensions)),
    );
    const signature = sign('sha256', body, this.#key);
    const der = sequence(body, ecdsaWithSha256, bitString(signature));
    const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
    return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
  }
}

/** The certificate authority and the key files of one run. */
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

/**
 * Creates a certificate authority and the certificates and keys of one run, and writes them into its
 * directory.
 */
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
    apiServerInCluster.address,
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

/** The cluster IPs of Services, which only real nodes route; the first is that of the `kubernetes` Service. */
export const serviceNetwork = { range: '10.96.0.0/16', firstAddress: '10.96.0.1' } as const;

/** Where real nodes and their pods reach the API server: an address of the first node. */
export const apiServerInCluster = { address: '10.200.0.1', port: 6443 } as const;

/**
 * A key pair for signing service account tokens, both PEM.
 *
 * @testonly
 */
export function signingKeyPair(): { readonly privateKey: string; readonly publicKey: string } {
  const { privateKey, publicKey } = newKeyPair();
  return { privateKey: pem(privateKey), publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString() };
}

const validForMs = 7 * 24 * 3600 * 1000;
// The clocks of containers on one machine agree, but that of a restored virtual machine may lag for a moment.
const backdatedMs = 3600 * 1000;

const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'));
const usages = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' } as const;

function newKeyPair(): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

/** SEC1 ("EC PRIVATE KEY"), which all of Kubernetes can read. */
function pem(key: KeyObject): string {
  return key.export({ type: 'sec1', format: 'pem' }).toString();
}

function name({ commonName, organizations = [] }: Subject): Buffer {
  const part = (type: string, value: string) => set(sequence(oid(type), utf8String(value)));
  return sequence(...organizations.map((value) => part('2.5.4.10', value)), part('2.5.4.3', commonName));
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  return sequence(oid(id), ...(critical ? [boolean(true)] : []), octetString(value));
}

/** A subject alternative name: an IPv4 address as its four bytes, anything else as a DNS name. */
function generalName(host: string): Buffer {
  return isIPv4(host)
    ? element(0x87, Buffer.from(host.split('.').map(Number)))
    : element(0x82, Buffer.from(host, 'ascii'));
}

/**
 * A DER element (ITU-T X.690) with any tag. The functions from here on each return a whole tag-length-value
 * element.
 */
function element(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

function sequence(...items: readonly Buffer[]): Buffer {
  return element(0x30, ...items);
}

function set(...items: readonly Buffer[]): Buffer {
  return element(0x31, ...items);
}

/** An element with a context-specific tag: `[number]`. */
function tagged(number: number, ...contents: readonly Buffer[]): Buffer {
  return element(0xa0 | number, ...contents);
}

/** A non-negative integer, given as big-endian bytes. */
function integer(bytes: Buffer): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const shortest = first === -1 ? Buffer.from([0]) : bytes.subarray(first);
  // A leading 1 bit would make it negative.
  const positive = (shortest[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.from([0]), shortest]) : shortest;
  return element(0x02, positive);
}

function boolean(value: boolean): Buffer {
  return element(0x01, Buffer.from([value ? 0xff : 0x00]));
}

/** An object identifier, given in dots: `1.2.840.10045.4.3.2`. */
function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return element(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function utf8String(text: string): Buffer {
  return element(0x0c, Buffer.from(text, 'utf8'));
}

function octetString(content: Buffer): Buffer {
  return element(0x04, content);
}

/** A bit string with `unused` bits at the end of its last byte. */
function bitString(content: Buffer, unused = 0): Buffer {
  return element(0x03, Buffer.from([unused]), content);
}

/** A time before 2050, in seconds, as in certificates. */
function utcTime(moment: Date): Buffer {
  const digits = moment.toISOString().replace(/[-:T]/g, '').slice(2, 14);
  return element(0x17, Buffer.from(`${digits}Z`, 'ascii'));
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = value >> 7; rest > 0; rest >>= 7) bytes.unshift(0x80 | (rest & 0x7f));
  return bytes;
}
