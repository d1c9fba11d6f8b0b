/**
 * A stand-in for RKE 1.x: the same commands, files, log lines and exit codes, without machines. What the real one does was seen with v1.6.3.
 * It is started as `node stand-in.cjs CONTROL_FOLDER <arguments of rke>`; what it is to do stands in CONTROL_FOLDER/control.json:
 *
 * - `fail`: `before-state`, `after-state`, `after-nodes` (with `nodes`: how many), `disk-full` or `hang`; once, unless `always`
 * - `unreachable`: addresses of machines that do not answer
 * - `hook`: a program that is given the address of the first control plane machine, and prints a kubeconfig
 *
 * It keeps in CONTROL_FOLDER: `calls.jsonl` (argv and environment of every start), `machines/ADDRESS` (the certificate authority that a machine was
 * set up with: another one is refused, as a kubelet would) and `pid`.
 */
'use strict';
const { spawnSync } = require('node:child_process');
const crypto = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');

const [folder, ...argv] = process.argv.slice(2);
const at = (...names) => path.join(folder, ...names);
fs.mkdirSync(at('machines'), { recursive: true });
fs.appendFileSync(at('calls.jsonl'), `${JSON.stringify({ argv, env: process.env, cwd: process.cwd() })}\n`);
const control = fs.existsSync(at('control.json')) ? JSON.parse(fs.readFileSync(at('control.json'), 'utf8')) : {};

function log(level, message) {
  process.stderr.write(
    `time="${new Date().toISOString().slice(0, 19)}Z" level=${level} msg=${JSON.stringify(message)}\n`,
  );
}

function fatal(message) {
  log('fatal', message);
  process.exit(1);
}

function fails(what) {
  if (control.fail !== what) return false;
  if (control.always !== true) fs.writeFileSync(at('control.json'), JSON.stringify({ ...control, fail: undefined }));
  return true;
}

function options() {
  const config = argv.indexOf('--config');
  const known = new Set(['--config', '--init', '--force', '--ignore-docker-version']);
  const unknown = argv.slice(1).find((word, i) => word.startsWith('-') && !known.has(word) && argv[i] !== '--config');
  if (unknown !== undefined) fatal(`flag provided but not defined: ${unknown}`);
  return {
    init: argv.includes('--init'),
    force: argv.includes('--force'),
    config: config < 0 ? 'cluster.yml' : argv[config + 1],
  };
}

function readConfig(file) {
  const config = JSON.parse(fs.readFileSync(file, 'utf8'));
  if (!Array.isArray(config.nodes) || config.nodes.length === 0) fatal('Failed to validate cluster: no nodes');
  config.nodes.forEach((node, i) => {
    if (!node.address) fatal(`Failed to validate cluster: Address for host (${i + 1}) is not provided`);
    if (!node.user) fatal(`Failed to validate cluster: User for host (${i + 1}) is not provided`);
    if (!node.role?.length) fatal(`Failed to validate cluster: Role for host (${i + 1}) is not provided`);
    if (typeof (node.port ?? '') !== 'string') fatal('yaml: unmarshal errors: cannot unmarshal !!int into string');
  });
  return config;
}

/** What a tunnel needs; the real one slices the path's first two characters. */
function checkKey(node, config) {
  const key = node.ssh_key_path || config.ssh_key_path || '~/.ssh/id_rsa';
  if (key.length < 2) throw new Error('panic: runtime error: slice bounds out of range [:2] with length 1');
  const file = key.startsWith('~/') ? path.join(process.env.HOME ?? '', key.slice(2)) : key;
  if (!fs.existsSync(file)) return `Error while reading SSH key file: open ${key}: no such file or directory`;
  if ((fs.statSync(file).mode & 0o077) !== 0) return `key file ${key} may be read by others`;
  if (!fs.readFileSync(file, 'utf8').includes('PRIVATE KEY-----')) return 'ssh: no key found';
  return undefined;
}

const pem = (name) =>
  `-----BEGIN RSA PRIVATE KEY-----\n${name}-${crypto.randomBytes(48).toString('base64')}\n-----END RSA PRIVATE KEY-----\n`;

function readState(file) {
  return fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : { desiredState: {}, currentState: {} };
}

function writeState(file, state) {
  if (fails('disk-full')) fatal(`[state] Failed to write state file: write ${file}: no space left on device`);
  fs.writeFileSync(file, JSON.stringify(state, null, 2), { mode: 0o600 });
  log('info', `Successfully Deployed state file at [${file}]`);
}

function initialise(config, stateFile) {
  log('info', 'Initiating Kubernetes cluster');
  if (fails('before-state')) fatal('Failed to validate cluster: v0.0.0 is an unsupported Kubernetes version');
  const state = readState(stateFile);
  const before = state.desiredState.rkeConfig?.clusterName;
  if (before !== undefined && before !== (config.cluster_name ?? 'local')) {
    fatal(`the state file is that of the cluster ${before}`);
  }
  const bundle = state.desiredState.certificatesBundle ?? { 'kube-ca': { keyPEM: pem('kube-ca') } };
  if (state.desiredState.certificatesBundle === undefined)
    log('info', '[certificates] Generating CA kubernetes certificates');
  const nodes = config.nodes.map(({ address, port, user, role, ssh_key_path }) => ({
    address,
    port: port || '22',
    user,
    role,
    sshKeyPath: ssh_key_path,
  }));
  const rkeConfig = {
    clusterName: config.cluster_name ?? 'local',
    kubernetesVersion: config.kubernetes_version,
    nodes,
  };
  state.desiredState = {
    rkeConfig,
    certificatesBundle: { ...bundle, 'kube-admin': bundle['kube-admin'] ?? { keyPEM: pem('kube-admin') } },
  };
  writeState(stateFile, state);
  return state;
}

/** The nodes that answer; without one for etcd nothing goes on. */
function tunnels(config) {
  const reachable = config.nodes.filter((node) => {
    log('info', `[dialer] Setup tunnel for host [${node.address}]`);
    const problem = control.unreachable?.includes(node.address) ? 'dial tcp: i/o timeout' : checkKey(node, config);
    if (problem === undefined) return true;
    log(
      'warning',
      `Failed to set up SSH tunneling for host [${node.address}]: Can't establish dialer connection: ${problem}`,
    );
    log('warning', `Removing host [${node.address}] from node lists`);
    return false;
  });
  const lost = config.nodes.filter((node) => !reachable.includes(node) && node.role.includes('etcd'));
  if (!reachable.some(({ role }) => role.includes('etcd'))) {
    const which = lost.map(({ address }) => address).join(' ');
    fatal(`Cluster must have at least one etcd plane host: failed to connect to the following etcd host(s) [${which}]`);
  }
  return reachable;
}

function up({ init, config: file }) {
  const config = readConfig(file);
  const stateFile = file.replace(/\.[^./]+$/, '.rkestate');
  const state = initialise(config, stateFile);
  if (init) return;
  log('info', 'Building Kubernetes cluster');
  if (fails('after-state')) fatal('Failed to bring up Etcd Plane: etcd cluster is unhealthy');
  const nodes = tunnels(config);
  const ca = crypto.createHash('sha256').update(state.desiredState.certificatesBundle['kube-ca'].keyPEM).digest('hex');
  for (const gone of (state.currentState.rkeConfig?.nodes ?? []).filter(
    ({ address }) => !config.nodes.some((node) => node.address === address),
  )) {
    const problem = checkKey({ ssh_key_path: gone.sshKeyPath }, config);
    if (problem !== undefined) fatal(`Failed to delete worker node [${gone.address}] from cluster: ${problem}`);
    log('info', `[remove/worker] Successfully removed container on host [${gone.address}]`);
    fs.rmSync(at('machines', gone.address), { force: true });
  }
  nodes.forEach((node, i) => {
    if (control.nodes === i && fails('after-nodes'))
      fatal(`[workerPlane] Failed to bring up Worker Plane on [${node.address}]: context deadline exceeded`);
    const machine = at('machines', node.address);
    const known = fs.existsSync(machine) ? fs.readFileSync(machine, 'utf8') : ca;
    if (known !== ca)
      fatal(`Failed to verify kubelet of [${node.address}]: x509: certificate signed by unknown authority`);
    fs.writeFileSync(machine, ca);
    log(
      'info',
      `[${node.role.includes('etcd') ? 'etcd' : 'worker'}] Successfully started container on host [${node.address}]`,
    );
  });
  if (fails('hang')) {
    fs.writeFileSync(at('pid'), String(process.pid));
    for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
  }
  state.currentState = state.desiredState;
  writeState(stateFile, state);
  writeKubeconfig(file, config, state);
  if (nodes.length < config.nodes.length) {
    const skipped = config.nodes.filter((node) => !nodes.includes(node)).map(({ address }) => address);
    fatal(`Provisioning incomplete, host(s) [${skipped.join(',')}] skipped because they could not be contacted`);
  }
  log('info', 'Finished building Kubernetes cluster successfully');
}

function writeKubeconfig(file, config, state) {
  const first = config.nodes.find(({ role }) => role.includes('controlplane'));
  const target = path.join(path.dirname(file), `kube_config_${path.basename(file)}`);
  const made = control.hook === undefined ? undefined : spawnSync(control.hook, [first.address], { encoding: 'utf8' });
  if (made !== undefined && made.status !== 0) fatal(`Failed to bring up Control Plane: ${made.stderr}`);
  const user = {
    name: 'kube-admin',
    user: {
      'client-key-data': Buffer.from(state.desiredState.certificatesBundle['kube-admin'].keyPEM).toString('base64'),
    },
  };
  const cluster = { name: config.cluster_name ?? 'local', cluster: { server: `https://${first.address}:6443` } };
  const text = made?.stdout ?? JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters: [cluster], users: [user] });
  fs.writeFileSync(target, text, { mode: 0o600 });
}

function remove({ config: file, force }) {
  if (!force) fatal('EOF');
  const config = readConfig(file);
  log('info', 'Tearing down Kubernetes cluster');
  const nodes = tunnels(config);
  if (fails('after-nodes')) fatal('Failed to remove Control Plane: context deadline exceeded');
  for (const { address } of nodes) fs.rmSync(at('machines', address), { force: true });
  fs.rmSync(file.replace(/\.[^./]+$/, '.rkestate'), { force: true });
  log('info', 'Cluster removed successfully');
}

if (argv[0] === '--version') {
  process.stdout.write(`rke version ${control.version ?? 'v1.6.3'}\n`);
} else {
  log('info', 'Running RKE version: v1.6.3');
  if (argv[0] === 'up') up(options());
  else if (argv[0] === 'remove') remove(options());
  else fatal(`No help topic for '${argv[0]}'`);
}
