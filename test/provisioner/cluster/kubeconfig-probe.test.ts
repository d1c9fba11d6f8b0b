import { createServer } from 'node:https';
import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CertificateAuthority } from '../../../local/certificates';
import { PlanError, type PlanRun } from '../../../operator/effects/plan-runner';
import { probeKubeconfig } from '../../../provisioner/cluster/kubeconfig-probe';

const authority = new CertificateAuthority('ca');
const HOST = '127.0.0.1';
let server: Server;
let answer: (response: ServerResponse) => void;

/** A server that is whatever somebody put behind a kubeconfig. */
async function listen(names: readonly string[]): Promise<void> {
  const { certificate: cert, key } = authority.server('server', names);
  server = createServer({ cert, key }, (_, response) => answer(response));
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
}
afterEach(() => new Promise((resolve) => server.close(resolve)));

/** A probe of it. */
function probe(): ReturnType<typeof probeKubeconfig> {
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'c',
        cluster: {
          server: `https://${HOST}:${String((server.address() as AddressInfo).port)}`,
          'certificate-authority-data': Buffer.from(authority.certificate).toString('base64'),
        },
      },
    ],
    users: [{ name: 'u', user: { token: 'token' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  const run = {
    run: { input: { secret: { namespace: 'n', name: 's', key: 'k' } } },
    secret: () => Promise.resolve(JSON.stringify(kubeconfig)),
    timeout: new AbortController().signal,
    warn: () => undefined,
  };
  return probeKubeconfig(run as unknown as PlanRun, { nowMs: () => Date.now() });
}

async function failure(): Promise<PlanError> {
  const error: unknown = await probe().catch((thrown: unknown) => thrown);
  if (!(error instanceof PlanError)) throw new Error('the probe went well', { cause: error });
  return error;
}

describe('what a foreign server says', () => {
  const hidden = '\u001b[31mred\u0000\u202e';
  beforeEach(() => listen([HOST]));

  test('as its version is short and printable', async () => {
    answer = (response) => response.end(JSON.stringify({ gitVersion: `v1.36.0${hidden}${'x'.repeat(5000)}` }));
    const { message, status } = await probe();
    const version = (status as { kubernetesVersion: string }).kubernetesVersion;
    expect(version).toMatch(/^v1\.36\.0red {2}x+\.\.\.$/);
    expect(version).toHaveLength(64);
    expect(message).toContain(`answers: ${version}.`);
  });

  test.each([
    ['a Status', (text: string) => JSON.stringify({ kind: 'Status', message: text })],
    ['a page', (text: string) => text],
  ])('as it refuses is short and printable: %s', async (_, body) => {
    answer = (response) => response.writeHead(418).end(body(`${hidden} page ${'x'.repeat(60_000)}`));
    const { reason, message } = await failure();
    expect(reason).toBe('ErrUnreachable');
    expect(message).toMatch(/^The API answers 418: /);
    expect(message.length).toBeLessThan(600);
    expect(message).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });
});

test('what a certificate says is short and printable', async () => {
  await listen([...Array.from({ length: 100 }, (_, i) => `n${String(i)}.example`)]);
  answer = (response) => response.end('{}');
  const { reason, message } = await failure();
  expect(reason).toBe('ErrUnreachable');
  expect(message.length).toBeLessThanOrEqual(512);
});
