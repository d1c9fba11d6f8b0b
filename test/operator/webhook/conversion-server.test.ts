import { once } from 'node:events';
import { Agent } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { connect } from 'node:tls';
import { CertificateAuthority } from '../../../local/certificates';
import { createLogger } from '../../../operator/process/logger';
import { OperatorMetrics } from '../../../operator/metrics/operator-metrics';
import { ConversionMetrics } from '../../../operator/webhook/conversion-handler';
import {
  startConversionServer,
  type ConversionServer,
  type ConversionServerOptions,
} from '../../../operator/webhook/conversion-server';
import { Shop } from '../../constructs/kind/versions-kind';
import { ManualClock } from '../support/manual-clock';
import { CertificateDirectory } from './certificates';
import { ask, type Answer, type Question } from './https-client';

const directory = new CertificateDirectory();
const logger = createLogger({ level: 'silent' });
const open: ConversionServer[] = [];
let metrics: OperatorMetrics;

async function start(options: Partial<ConversionServerOptions> = {}): Promise<ConversionServer> {
  metrics = new OperatorMetrics({ defaults: false });
  const server = await startConversionServer({
    port: 0,
    host: '127.0.0.1',
    certDir: directory.path,
    kinds: [Shop],
    logger,
    metrics: new ConversionMetrics(metrics.registry),
    ...options,
  });
  open.push(server);
  return server;
}

function post(server: ConversionServer, body: unknown, further: Partial<Question> = {}): Promise<Answer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const { certificate: ca } = directory.authority;
  return ask({ port: server.port, ca, type: 'application/json', body: text, ...further });
}

function reviewOf(...specs: readonly object[]): object {
  const objects = specs.map((spec, i) => ({
    apiVersion: 'test.example.com/v1beta1',
    kind: 'Shop',
    metadata: { name: `shop-${i}`, namespace: 'default' },
    spec,
  }));
  const request = { uid: 'u', desiredAPIVersion: 'test.example.com/v1', objects };
  return { apiVersion: 'apiextensions.k8s.io/v1', kind: 'ConversionReview', request };
}

/** Sends half a body, and no more. */
async function goAway({ port }: ConversionServer): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', ca: directory.authority.certificate });
  await new Promise((done) => socket.once('secureConnect', done));
  const head = 'POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{';
  await new Promise((done) => socket.write(head, done));
  socket.destroy();
}

beforeEach(() => void directory.renew('first'));
afterEach(() => Promise.all(open.splice(0).map((server) => server.close())));
afterAll(() => directory.remove());

describe('POST /convert', () => {
  it('answers a review with a review, and counts it', async () => {
    const server = await start();
    const answer = await post(server, reviewOf({ image: 'a', replicas: 3 }), {
      path: '/convert?timeout=30s',
      type: 'application/json; charset=utf-8',
    });
    expect(answer).toMatchObject({ status: 200, headers: { 'content-type': 'application/json' } });
    expect(JSON.parse(answer.body)).toMatchObject({
      response: { uid: 'u', result: { status: 'Success' }, convertedObjects: [{ spec: { image: 'a', size: 3 } }] },
    });
    expect(await metrics.render()).toContain(
      'kindred_conversion_requests_total{kind="shops.test.example.com",result="success"} 1',
    );
  });

  it('fails a review with one bad object, and goes on', async () => {
    const server = await start();
    const answer = await post(server, reviewOf({ image: 'a' }, { image: 'b', replicas: 'many' }));
    expect(answer.status).toBe(200);
    const { response } = JSON.parse(answer.body) as { response: Record<string, unknown> };
    expect(response).toMatchObject({ uid: 'u', result: { status: 'Failed' } });
    expect(response).not.toHaveProperty('convertedObjects');
    expect(answer.body).toContain('Shop default/shop-1 cannot be converted to test.example.com/v1');
    expect(answer.body).toContain('spec.replicas');
    expect((await post(server, reviewOf({ image: 'a' }))).body).toContain('"Success"');
    expect(await metrics.render()).toContain('{kind="shops.test.example.com",result="failure"} 1');
  });

  it.each<[string, Partial<Question>, number, string]>([
    ['another path', { path: '/' }, 404, '/convert'],
    ['another method', { method: 'GET' }, 405, 'only POST'],
    ['another type', { type: 'text/plain' }, 415, 'must be application/json, not text/plain'],
    ['no type', { type: undefined }, 415, 'not absent'],
    ['a body that is not JSON', { body: '{' }, 400, 'not JSON'],
    ['a body that is no review', { body: '{}' }, 400, 'a ConversionReview of apiextensions.k8s.io/v1 is expected'],
  ])('refuses %s', async (_, question, status, text) => {
    const server = await start();
    const answer = await post(server, '{}', question);
    expect(answer.status).toBe(status);
    expect(answer.body).toContain(text);
    expect(await metrics.render()).toContain('kindred_conversion_requests_total{kind="",result="invalid"} 1');
  });

  it('refuses a body beyond the limit, to the end of it', async () => {
    const server = await start({ maxBodyBytes: 1000 });
    const answer = await post(server, 'x'.repeat(500_000));
    expect(answer).toMatchObject({ status: 413, body: 'a review of more than 1000 bytes is not taken\n' });
    expect((await post(server, reviewOf({ image: 'a' }))).status).toBe(200);
  });

  it('takes one object as large as may be', async () => {
    const server = await start();
    const review = reviewOf({ image: 'a', memory: 'x'.repeat(2_500_000) });
    expect((await post(server, review)).body).toContain('spec.memory');
    expect((await post(server, 'x'.repeat(3 * 1024 * 1024 + 1))).status).toBe(413);
  });
});

describe('the server', () => {
  it('bears a client that goes away, or that does not trust it', async () => {
    const server = await start();
    await goAway(server);
    const stranger = new CertificateAuthority('stranger').certificate;
    await expect(post(server, reviewOf(), { ca: stranger })).rejects.toThrow('unable to verify');
    expect((await post(server, reviewOf({ image: 'a' }))).status).toBe(200);
  });

  it('serves a certificate that is renewed, and keeps the old one while the new one is unfit', async () => {
    const server = await start({ watch: { everyMs: 10 } });
    expect((await post(server, reviewOf())).servedBy).toBe('first');
    directory.write('tls.key', directory.authority.server('other', ['127.0.0.1']).key);
    await new Promise((done) => setTimeout(done, 50));
    expect((await post(server, reviewOf())).servedBy).toBe('first');
    directory.renew('second');
    // How soon it is taken is the machine's affair; Jest bounds the wait.
    while ((await post(server, reviewOf())).servedBy === 'first');
    expect((await post(server, reviewOf())).servedBy).toBe('second');
    expect(server.problem()).toBeUndefined();
  });

  it('says when it does not listen any more', async () => {
    const server = await start();
    expect(server.problem()).toBeUndefined();
    await Promise.all([server.close(), server.close()]);
    expect(server.problem()).toBe('the conversion server does not listen');
  });

  it('goes on converting after a stop has begun, but keeps no connection, until the time is over', async () => {
    const [clock, stop, agent] = [
      new ManualClock(),
      new AbortController(),
      new Agent({ keepAlive: true, maxCachedSessions: 0 }),
    ];
    const server = await start({ clock, signal: stop.signal });
    const convert = (): Promise<Answer> => post(server, reviewOf({ image: 'a' }), { agent });
    try {
      expect((await convert()).headers.connection).toBe('keep-alive');
      stop.abort();
      // The time counts from the stop, not from the closing.
      await clock.advance(2_000);
      let closed = false;
      const closing = server.close().then(() => (closed = true));
      for (const _ of [1, 2]) expect(await convert()).toMatchObject({ status: 200, headers: { connection: 'close' } });
      await clock.advance(2_999);
      expect(closed).toBe(false);
      expect(await convert()).toMatchObject({ status: 200 });
      await clock.advance(1);
      await closing;
      await expect(convert()).rejects.toThrow('ECONNREFUSED');
    } finally {
      await clock.advance(5_000);
      agent.destroy();
    }
  });

  it('does not wait where it is closed without a stop, as after a failed start', async () => {
    const server = await start({ clock: new ManualClock(), signal: new AbortController().signal });
    await server.close();
    expect(server.problem()).toBe('the conversion server does not listen');
  });

  // A handshake may take 10 s.
  it('does not wait for a client that never begins its TLS handshake', async () => {
    const server = await start();
    const client = connectTcp({ port: server.port, host: '127.0.0.1' });
    await once(client, 'connect');
    // Once this is answered, the server has accepted the connection before it too.
    expect(await post(server, reviewOf())).toMatchObject({ status: 200 });
    await Promise.all([server.close(), once(client, 'close')]);
  }, 8_000);

  it('says what is in the way of starting', async () => {
    const { port } = await start();
    await expect(start({ port })).rejects.toThrow(/cannot serve conversions on 127\.0\.0\.1:.*--webhook-port/);
    await expect(start({ certDir: '/nowhere' })).rejects.toThrow('/nowhere/tls.crt cannot be read (ENOENT)');
    directory.write('tls.crt', 'nothing');
    await expect(start()).rejects.toThrow('are no certificate with its key (PEM)');
  });
});
