import fc from 'fast-check';
import { PlanError } from '../../../operator/effects/plan-runner';
import { readKubeconfig } from '../../../provisioner/cluster/kubeconfig-probe';

const valid = (cluster: object = {}, user: object = {}, more: object = {}): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    clusters: [{ name: 'c', cluster: { server: 'https://192.0.2.1:6443', ...cluster } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    users: [{ name: 'u', user: { token: 'T0KEN', ...user } }],
    ...more,
  });

function refusalOf(text: string): string {
  try {
    readKubeconfig(text, 'Secret a/b, key c');
  } catch (error) {
    if (error instanceof PlanError && error.reason === 'ErrKubeconfig') return error.message;
    throw error;
  }
  throw new Error('it was taken');
}

test('what leads to a server by itself is taken, also as RKE writes it', () => {
  expect(readKubeconfig(valid({ 'api-version': 'v1' }), 'x')).toEqual({ server: 'https://192.0.2.1:6443' });
  expect(readKubeconfig(valid({}, {}, { preferences: {} }), 'x').server).toBe('https://192.0.2.1:6443');
});

test.each([
  ['users.0.user.exec', valid({}, { exec: { command: 'C4NARY' } })],
  ['users.0.user.auth-provider', valid({}, { 'auth-provider': { name: 'C4NARY' } })],
  ['users.0.user.tokenFile', valid({}, { tokenFile: '/etc/C4NARY' })],
  ['users.0.user.client-key', valid({}, { 'client-key': '/etc/C4NARY' })],
  ['users.0.user.as', valid({}, { as: 'C4NARY' })],
  ['clusters.0.cluster.certificate-authority', valid({ 'certificate-authority': '/etc/C4NARY' })],
  ['clusters.0.cluster.proxy-url', valid({ 'proxy-url': 'http://C4NARY' })],
  ['clusters.0.cluster.insecure-skip-tls-verify', valid({ 'insecure-skip-tls-verify': true })],
  ['clusters.0.cluster.server', valid({ server: 'http://C4NARY' })],
  ['clusters.0.cluster.server', valid({ server: 'https://u:C4NARY@192.0.2.1' })],
  ['clusters.0.cluster.server', valid({ server: 'https://192.0.2.1?token=C4NARY' })],
  ['clusters.0.cluster.a field that is not known', valid({ C4NARY: 1 })],
  ['there is no context', valid({}, {}, { 'current-context': 'C4NARY' })],
])('%s is refused, and no value is quoted', (field, text) => {
  const message = refusalOf(text);
  expect(message).toContain(field);
  expect(message).not.toContain('C4NARY');
  expect(message).toContain('The kubeconfig in Secret a/b, key c is refused');
});

test('every problem is told at once, up to a number', () => {
  const message = refusalOf(valid({ 'proxy-url': 'x' }, { exec: {}, tokenFile: 'x' }));
  expect(message).toMatch(/proxy-url.*exec.*tokenFile/s);
  const users = Array.from({ length: 60 }, () => ({ name: 'u', user: { exec: {} } }));
  expect(refusalOf(valid({}, {}, { users })).length).toBeLessThan(2000);
});

const WORD = 'zq7CANARYzq7';
/** Junk that may have a shape of kubeconfigs, with the word as a value and as a name here and there. */
const junk = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(WORD, `https://${WORD}`, `https://a:${WORD}@b`, 'https://b', 'v1', 'Config', ''),
    fc.double(),
    fc.constant(null),
    fc.string(),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(
      fc.constantFrom(
        ...['clusters', 'cluster', 'users', 'user', 'contexts', 'context', 'name', 'server', 'token', 'exec', WORD],
        ...['current-context', 'certificate-authority-data', 'client-certificate-data', 'apiVersion', 'kind'],
      ),
      tie('value'),
      { maxKeys: 6 },
    ),
  ),
})).value;

test('arbitrary junk is refused in our words, and never quoted', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        junk.map((value) => JSON.stringify(value)),
        fc.string(),
      ),
      (text) => {
        let message = '';
        try {
          readKubeconfig(text, 'x');
        } catch (error) {
          if (!(error instanceof PlanError)) throw error;
          message = error.message;
        }
        expect(message).not.toContain(WORD);
      },
    ),
    { numRuns: 500 },
  );
});

test('a mutated file never fails otherwise either', () => {
  fc.assert(
    fc.property(junk, fc.constantFrom('clusters', 'users', 'contexts', 'current-context', 'kind'), (value, field) => {
      try {
        readKubeconfig(valid({}, {}, { [field]: value }), 'x');
      } catch (error) {
        if (!(error instanceof PlanError)) throw error;
        expect(error.message).not.toContain(WORD);
        expect(error.message).not.toContain('T0KEN');
      }
    }),
    { numRuns: 300 },
  );
});
