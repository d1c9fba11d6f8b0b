import { request } from 'node:http';
import { connect } from 'node:net';
import { OperatorMetrics } from '../../../operator/metrics/operator-metrics';
import {
  startHealthServer,
  type HealthServer,
  type HealthServerOptions,
} from '../../../operator/process/health-server';
import { createLogger } from '../../../operator/process/logger';

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly type: string | undefined;
}

describe('startHealthServer', () => {
  const open: HealthServer[] = [];

  const start = async (options: Partial<HealthServerOptions> = {}): Promise<HealthServer> => {
    const logger = createLogger({ level: 'silent' });
    const server = await startHealthServer({ port: 0, host: '127.0.0.1', logger, ...options });
    open.push(server);
    return server;
  };

  afterEach(async () => {
    await Promise.all(open.splice(0).map((server) => server.close()));
  });

  it('answers ok while every check is well, and lists them when asked', async () => {
    const server = await start({ readyz: { caches: () => undefined, watches: () => undefined } });
    await expect(get(server, '/readyz')).resolves.toMatchObject({ status: 200, body: 'ok' });
    await expect(get(server, '/healthz')).resolves.toMatchObject({ status: 200, body: 'ok' });
    await expect(get(server, '/readyz?verbose')).resolves.toMatchObject({
      status: 200,
      body: '[+]caches ok\n[+]watches ok\nreadyz check passed\n',
    });
  });

  it('answers 503 with the reasons of every check that fails or throws', async () => {
    const broken = (): undefined => {
      throw new Error('a bug');
    };
    const server = await start({
      readyz: { caches: () => 'Deployment: not synced yet', watches: () => undefined, broken },
    });
    await expect(get(server, '/readyz')).resolves.toMatchObject({
      status: 503,
      body:
        '[-]caches failed: Deployment: not synced yet\n[+]watches ok\n' +
        '[-]broken failed: the check itself failed: a bug\nreadyz check failed\n',
    });
    await expect(get(server, '/healthz')).resolves.toMatchObject({ status: 200 });
    await expect(get(server, '/readyz/watches')).resolves.toMatchObject({ status: 200 });
    await expect(get(server, '/readyz/caches')).resolves.toMatchObject({ status: 503 });
    await expect(get(server, '/readyz/nonsense')).resolves.toMatchObject({
      status: 404,
      body: 'readyz has no such check; it has: caches, watches, broken\n',
    });
  });

  it('serves metrics', async () => {
    const metrics = new OperatorMetrics({ defaults: false });
    metrics.leader('kindred', true);
    const server = await start({ metrics: metrics.registry });
    const answer = await get(server, '/metrics');
    expect(answer.type).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(answer.body).toContain('leader_election_master_status{name="kindred"} 1');
  });

  it('answers 500 without details when the metrics cannot be rendered', async () => {
    const metrics = { contentType: 'text/plain', metrics: () => Promise.reject(new Error('secret detail')) };
    const answer = await get(await start({ metrics }), '/metrics');
    expect(answer.status).toBe(500);
    expect(answer.body).not.toContain('secret');
  });

  it('serves nothing else, by no other method', async () => {
    const server = await start();
    await expect(get(server, '/')).resolves.toMatchObject({ status: 404 });
    await expect(get(server, '/metrics')).resolves.toMatchObject({ status: 404 });
    await expect(get(server, '/healthz', 'POST')).resolves.toMatchObject({ status: 405 });
    await expect(get(server, '/healthz', 'HEAD')).resolves.toMatchObject({ status: 200, body: '' });
  });

  it('refuses headers beyond 8 KiB', async () => {
    const server = await start();
    await expect(get(server, '/healthz', 'GET', { 'x-long': 'x'.repeat(9000) })).resolves.toMatchObject({
      status: 431,
    });
  });

  it('says clearly that the port is taken', async () => {
    const { port } = await start();
    await expect(start({ port })).rejects.toThrow(
      `cannot serve health and metrics on 127.0.0.1:${port}: the port is in use by another process; stop that one or`,
    );
  });

  it("says clearly that the address is not this machine's", async () => {
    await expect(start({ host: '192.0.2.1' })).rejects.toThrow(/on 192\.0\.2\.1:0: this machine has no such address/);
  });

  it('closes while idle connections are open, and twice', async () => {
    const server = await start();
    const socket = connect(server.port, '127.0.0.1');
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await new Promise((resolve) => socket.once('data', resolve));
    const ended = new Promise((resolve) => socket.once('close', resolve));
    await Promise.all([server.close(), server.close()]);
    await ended;
  });
});

function get(
  server: HealthServer,
  path: string,
  method = 'GET',
  headers: Record<string, string> = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const call = request({ port: server.port, host: '127.0.0.1', path, method, headers }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (body += chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body, type: response.headers['content-type'] }),
      );
    });
    call.on('error', reject);
    call.end();
  });
}
