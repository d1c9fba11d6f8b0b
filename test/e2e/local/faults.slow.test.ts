import { request as httpsRequest } from 'node:https';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { useControlPlane } from '../../support/use-control-plane';
import { kubectl } from '../../../testing/kubectl';
import { waitFor } from '../../../testing/wait-for';
import type { PartExit } from '../../../local';
import { runTool } from '../../../local/assets/process';

const cp = useControlPlane({ components: 'api' });

/** Asks as the administrator, with Node's own client, so that nothing of the code under test stands in between. */
function get(path: string, timeoutMs = 3000): Promise<{ readonly status: number; readonly body: string }> {
  const config = parse(readFileSync(cp.adminKubeconfig, 'utf8')) as {
    clusters: [{ cluster: { 'certificate-authority-data': string } }];
    users: [{ user: { 'client-certificate-data': string; 'client-key-data': string } }];
  };
  const decode = (text: string): Buffer => Buffer.from(text, 'base64');
  const { user } = config.users[0];
  return new Promise((resolve, reject) => {
    const request = httpsRequest(`${cp.url}${path}`, {
      ca: decode(config.clusters[0].cluster['certificate-authority-data']),
      cert: decode(user['client-certificate-data']),
      key: decode(user['client-key-data']),
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
    });
    request.on('error', reject);
    request.on('response', (response) => {
      let body = '';
      response.on('error', reject);
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    request.end();
  });
}

async function create(name: string): Promise<void> {
  expect(await kubectl(cp, ['create', 'configmap', name])).toMatchObject({ code: 0 });
}

test('a killed API server answers nobody; started again, it has kept everything on the same address', async () => {
  const exits: PartExit[] = [];
  cp.onPartExit((exit) => exits.push(exit));
  await create('kept');
  await cp.faults.killApiServer();
  await expect(get('/readyz')).rejects.toThrow('ECONNREFUSED');
  await cp.faults.killApiServer();
  await cp.faults.startApiServer();
  expect((await get('/api/v1/namespaces/default/configmaps/kept')).status).toBe(200);
  expect(exits).toEqual([]);
});

test('a paused API server is silent until it may go on', async () => {
  cp.faults.pauseApiServer();
  await expect(get('/readyz', 500)).rejects.toThrow('aborted');
  await expect(cp.auditLog()).resolves.not.toHaveLength(0);
  cp.faults.resumeApiServer();
  expect((await get('/readyz')).status).toBe(200);
});

test('after a compaction, a watch from before is answered with 410', async () => {
  const list = JSON.parse((await get('/api/v1/configmaps')).body) as { metadata: { resourceVersion: string } };
  const watch = `/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersion=${list.metadata.resourceVersion}`;
  expect((await get(watch)).status).toBe(200);
  await create('later');
  await cp.faults.compactEtcd();
  const { status, body } = await get(watch);
  const told = JSON.parse(body.split('\n')[0]!) as { code?: number; object?: { code?: number } };
  expect([status, told.code, told.object?.code]).toContain(410);
});

test('after a compaction, the rest of a list from before is answered with 410', async () => {
  await create('one-more');
  const page = JSON.parse((await get('/api/v1/configmaps?limit=1')).body) as { metadata: { continue: string } };
  await cp.faults.compactEtcd();
  const rest = await get(`/api/v1/configmaps?limit=1&continue=${encodeURIComponent(page.metadata.continue)}`);
  expect(rest.status).toBe(410);
});

test('a watch streams its initial events', async () => {
  const query = 'watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan';
  const { body } = await get(`/api/v1/configmaps?${query}&timeoutSeconds=1`);
  expect(body).toContain('"k8s.io/initial-events-end":"true"');
});

test('there is no controller manager to restart', async () => {
  await expect(cp.faults.restartControllerManager()).rejects.toThrow("components: 'full'");
});

test('a part that dies by itself is told of, with its last log lines', async () => {
  const exits: PartExit[] = [];
  const forget = cp.onPartExit((exit) => exits.push(exit));
  process.kill(await serverPid(), 'SIGTERM');
  const [exit] = await waitFor(() => exits.length > 0 && exits, { timeout: 30_000, describe: 'the exit to be told' });
  expect(exit).toMatchObject({ part: 'kube-apiserver', code: 0, signal: null });
  expect(exit!.lastLines).not.toBe('');
  forget();
  await cp.faults.startApiServer();
}, 60_000);

/** The pid of our API server: the one whose command line names our port, and is not its watcher. */
async function serverPid(): Promise<number> {
  const listed = await runTool('ps', ['-eo', 'pid=,args=']);
  const port = new URL(cp.url).port;
  const line = listed?.stdout
    .split('\n')
    .find((text) => text.includes(`--secure-port=${port}`) && !text.includes('guard'));
  return Number(line?.trim().split(' ')[0]);
}
