import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Pki } from '../../../../local/certificates';
import { renderKubeconfig } from '../../../../local/rest-client';
import { apiServerArgs, controllerManagerArgs, kwokArgs, schedulerArgs } from '../../../../local/component-flags';
import { CLIENT_URL, etcdFlags, peerUrl, removeMember } from './etcd';
import { ETCD_FINALIZER, listNodes, registerNode, removeEtcdFinalizer, type Api } from './node-object';
import {
  identity,
  joinAsServer,
  loadBootstrap,
  newBootstrap,
  promote,
  serveRegistration,
  writePki,
  type Bootstrap,
} from './registration';
import { sendRequest } from './requests';
import { startPart, waitUntil, type Settings } from './settings';

const API = 'https://127.0.0.1:6443';

/**
 * A server: etcd, the API server, and on the one that began the cluster the controllers, the scheduler and KWOK, all real.
 */
export async function runServer(settings: Settings): Promise<void> {
  const { data, nodeName, nodeIp } = settings;
  const db = join(data, 'server', 'db', 'etcd');
  const logs = join(data, 'server', 'logs');
  const kept = existsSync(join(db, 'member')) ? loadBootstrap(settings) : undefined;
  const { bootstrap, cluster } =
    kept === undefined ? await bootstrapOrJoin(settings) : { bootstrap: kept, cluster: '' };
  const pki = writePki(settings, bootstrap);
  mkdirSync(dirname(db), { recursive: true, mode: 0o700 });
  startPart('etcd', etcdFlags(nodeName, nodeIp, db, cluster, settings.join !== undefined), logs);
  if (settings.join !== undefined) await untilMember(settings);
  await waitUntil('etcd', 60, async () => (await sendRequest('GET', `${CLIENT_URL}/health`)).status === 200);
  startPart('kube-apiserver', apiServerFlags(settings, pki), logs);
  const api: Api = { url: API, identity: identity(pki.authority, 'system:admin', ['system:masters']) };
  await waitUntil('the API', 120, async () => (await sendRequest('GET', `${API}/readyz`, api)).status === 200);
  if (settings.join === undefined) startControllers(settings, pki, logs);
  writeAccess(settings, pki);
  serveRegistration(settings, bootstrap, pki);
  await waitUntil('the node', 60, () => registerNode(api, settings, true).then(() => true));
  ready();
  await removeLeavingMembers(settings, api);
}

async function bootstrapOrJoin(
  settings: Settings,
): Promise<{ readonly bootstrap: Bootstrap; readonly cluster: string }> {
  const { join: server, nodeName, nodeIp } = settings;
  if (server !== undefined) return waitUntil('joining', 300, () => joinAsServer(settings));
  return { bootstrap: loadBootstrap(settings) ?? newBootstrap(), cluster: `${nodeName}=${peerUrl(nodeIp)}` };
}

/** A member that was promoted once needs nobody's word any more. */
async function untilMember(settings: Settings): Promise<void> {
  // With the data: a member that joins anew is promoted anew.
  const mark = join(settings.data, 'server', 'db', 'etcd', 'promoted');
  if (existsSync(mark)) return;
  await waitUntil('being taken into etcd', 120, () => promote(settings));
  writeFileSync(mark, '');
}

function apiServerFlags({ nodeIp, data }: Settings, pki: Pki): readonly string[] {
  const certFolder = join(data, 'server', 'tls');
  const auditPolicyFile = join(certFolder, 'audit-policy.yaml');
  writeFileSync(auditPolicyFile, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n');
  const settings = { pki, port: 6443, etcdUrl: CLIENT_URL, certFolder, auditPolicyFile, auditLogFile: '/dev/null' };
  const extra = ['--bind-address=0.0.0.0', `--advertise-address=${nodeIp}`];
  return apiServerArgs({ ...settings, serviceAccountAdmission: true, extra });
}

function startControllers({ data }: Settings, pki: Pki, logs: string): void {
  const credentials = (user: string, groups: string[] = []): string => {
    const { ca, cert, key } = identity(pki.authority, user, groups);
    const file = join(data, 'server', `${user.replace('system:', '')}.kubeconfig`);
    const content = { server: API, authority: ca, user, credentials: { certificate: cert, key } };
    writeFileSync(file, renderKubeconfig(content), { mode: 0o600 });
    return file;
  };
  startPart('kube-controller-manager', controllerManagerArgs(credentials('system:kube-controller-manager'), pki), logs);
  startPart('kube-scheduler', schedulerArgs(credentials('system:kube-scheduler')), logs);
  const stages = '/opt/stand-in/bin/kwok-stages';
  startPart('kwok', kwokArgs(credentials('stand-in-kwok', ['system:masters']), stages), logs);
}

/** The administrator's kubeconfig and kubectl, where the real ones put them. */
function writeAccess(settings: Settings, { authority }: Pki): void {
  const { ca, cert, key } = identity(authority, 'system:admin', ['system:masters']);
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const text = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${base64(ca)}
    server: ${API}
  name: default
contexts:
- context:
    cluster: default
    user: default
  name: default
current-context: default
kind: Config
preferences: {}
users:
- name: default
  user:
    client-certificate-data: ${base64(cert)}
    client-key-data: ${base64(key)}
`;
  writeFileSync(settings.kubeconfig, text, { mode: settings.kubeconfigMode });
  const bin = join(settings.data, 'bin');
  mkdirSync(bin, { recursive: true });
  rmSync(join(bin, 'kubectl'), { force: true });
  symlinkSync('/opt/stand-in/bin/kubectl', join(bin, 'kubectl'));
  writeFileSync(join(settings.data, 'server', 'token'), `${settings.token}\n`, { mode: 0o600 });
}

/** Other servers' nodes that are being deleted leave etcd, and then go. */
async function removeLeavingMembers(settings: Settings, api: Api): Promise<never> {
  for (;;) {
    await delay(1000);
    const nodes = await listNodes(api).catch(() => []); // the API is busy or on its way down; it is asked again
    const leaving = nodes.filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
    for (const node of leaving.filter(({ metadata }) => metadata.finalizers?.includes(ETCD_FINALIZER))) {
      if (node.metadata.name === settings.nodeName) continue;
      await removeMember(node.metadata.name)
        .then(() => removeEtcdFinalizer(api, node))
        .catch((error: unknown) => console.log(`level=warning msg=${JSON.stringify(String(error))}`));
    }
  }
}

/** Tells the service manager that the service is up. */
export function ready(): void {
  const file = process.env['READY_FILE'];
  if (file !== undefined) writeFileSync(file, String(process.pid));
}
