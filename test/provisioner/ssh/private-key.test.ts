import { generateKeyPairSync } from 'node:crypto';
import { MachineError } from '../../../provisioner/tasks/transport';
import { usablePrivateKey } from '../../../provisioner/ssh/ssh-transport';
import { newSshKeys } from '../../support/hosts/ssh-host';

const rsa = { modulusLength: 2048, publicKeyEncoding: { type: 'spki', format: 'pem' } } as const;
const pem = (type: 'pkcs1' | 'pkcs8', passphrase?: string): string =>
  generateKeyPairSync('rsa', {
    ...rsa,
    privateKeyEncoding: { type, format: 'pem', ...(passphrase !== undefined && { cipher: 'aes-256-cbc', passphrase }) },
  }).privateKey;
const openSsh = (): string => newSshKeys().privateKey;
const locked = (): string => newSshKeys('p').privateKey;

function problem(key: string): string {
  try {
    usablePrivateKey(key, 'the key');
  } catch (error) {
    if (error instanceof MachineError && error.reason === 'InvalidKey') return error.message;
    throw error;
  }
  throw new Error('the key is usable');
}

test.each([
  ['OpenSSH', openSsh()],
  ['PKCS#1', pem('pkcs1')],
  ['PKCS#8', pem('pkcs8')],
])('a key in the format of %s is usable, whatever its line ends', (_, key) => {
  const normal = `${key.trim()}\n`;
  expect(usablePrivateKey(key, 'the key')).toBe(normal);
  expect(usablePrivateKey(key.trim().replaceAll('\n', '\r\n'), 'the key')).toBe(normal);
});

test.each([
  ['OpenSSH', locked()],
  ['PKCS#1', pem('pkcs1', 'p')],
  ['PKCS#8', pem('pkcs8', 'p')],
])('a key in the format of %s behind a passphrase is refused', (_, key) => {
  expect(problem(key)).toContain('the key cannot be used: it asks for a passphrase');
});

test.each([
  ['nothing', ''],
  ['a public key', 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI canary'],
  ['base64 of a key', Buffer.from(openSsh()).toString('base64')],
  ['half a key', openSsh().slice(0, 150)],
  ['an empty body', '-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n'],
  ['a certificate', '-----BEGIN CERTIFICATE-----\ncanary\n-----END CERTIFICATE-----\n'],
])('%s is refused, and nothing of it told', (_, key) => {
  const message = problem(key);
  expect(message).toContain('it is not a private key');
  expect(message).not.toContain('canary');
});
