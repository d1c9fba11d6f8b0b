import { createPrivateKey, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';
import { isIPv4 } from 'node:net';
import {
  bitString,
  boolean,
  element,
  integer,
  octetString,
  oid,
  sequence,
  set,
  tagged,
  utcTime,
  utf8String,
} from './der';

/**
 * Certificates for one run: an authority and what it signs, all P-256. Node can sign but not issue X.509, and the one
 * shape of certificate that is needed here is small; the authority's key lives as long as the run's data folder.
 */

/** A certificate with its private key, both PEM. */
export interface KeyedCertificate {
  readonly certificate: string;
  readonly key: string;
}

/** Who a certificate speaks for. Kubernetes reads `commonName` as the user and `organizations` as its groups. */
export interface Subject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
}

const validForMs = 7 * 24 * 3600 * 1000;
// Clocks of containers on the same machine agree, yet a restored virtual machine may lag for a moment.
const backdatedMs = 3600 * 1000;

const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'));
const usages = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' } as const;

/** A certificate authority that lives in memory. */
export class CertificateAuthority implements KeyedCertificate {
  readonly certificate: string;
  readonly key: string;
  readonly #subject: Subject;
  readonly #key: KeyObject;

  /**
   * Makes a self-signed authority.
   *
   * @param existing - takes up one that was made before under the same name
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

/** A key pair for signing service account tokens, both PEM. */
export function signingKeyPair(): { readonly privateKey: string; readonly publicKey: string } {
  const { privateKey, publicKey } = newKeyPair();
  return { privateKey: pem(privateKey), publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString() };
}

function newKeyPair(): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

/** SEC1 ("EC PRIVATE KEY"), which every reader of Kubernetes takes. */
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
