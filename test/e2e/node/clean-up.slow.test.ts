import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { serverImage, startControlPlane } from '../../../local';
import { nodePath } from '../../../local/node/available';
import { kubectlOrThrow } from '../../../testing/kubectl';
import { waitFor } from '../../../testing/wait-for';
import { temporaryFolder } from '../../support/temporary-folder';
import { describeOnNodes } from './on-nodes';

jest.setTimeout(120_000);

/** Its own temporary folder, so that no other run's folder is in sight. */
const temporary = temporaryFolder('kindred-node-');

/** What a node has of its own on this machine. */
interface Traces {
  /** The namespaces of its first process: `net:[4026532345]`. */
  readonly namespaces: readonly string[];
  /** The name of its control groups. */
  readonly group: string;
}

const namespaceTypes = ['net', 'mnt', 'pid', 'ipc', 'uts', 'cgroup'];

function namespacesOf(pid: string): string[] {
  return namespaceTypes.flatMap((type) => {
    try {
      return [readlinkSync(`/proc/${pid}/ns/${type}`)];
    } catch {
      return []; // ended while we looked
    }
  });
}

/** The traces of the node whose folder is in a run. */
function tracesOf(folder: string): Traces {
  const pid = readFileSync(path.join(folder, 'pid'), 'utf8').trim();
  const [line = ''] = readFileSync(`/proc/${pid}/cgroup`, 'utf8').split('\n');
  const group = path.basename(line.replace(/\/init$/, ''));
  expect(group).toMatch(/^kindred-node-1-\d+$/);
  return { namespaces: namespacesOf(pid), group };
}

/** The processes in the namespaces of a node. Its mounts and interfaces exist as long as one of them. */
function processesIn({ namespaces }: Traces): { readonly pid: string; readonly name: string }[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    if (!namespacesOf(pid).some((namespace) => namespaces.includes(namespace))) return [];
    try {
      return [{ pid, name: readFileSync(`/proc/${pid}/comm`, 'utf8').trim() }];
    } catch {
      return []; // ended while we looked
    }
  });
}

function groupsNamed(name: string): string[] {
  const { stdout } = spawnSync('find', ['/sys/fs/cgroup', '-type', 'd', '-name', name], { encoding: 'utf8' });
  return stdout.split('\n').filter((line) => line !== '');
}

function output(command: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    env: { ...process.env, PATH: nodePath() },
  });
  if (status !== 0) throw new Error(`${command}: ${stderr}`);
  return stdout;
}

const sysctls = [
  'vm/overcommit_memory',
  'vm/panic_on_oom',
  'kernel/panic',
  'kernel/panic_on_oops',
  'kernel/keys/root_maxkeys',
];
const readSysctls = (): string[] => sysctls.map((name) => readFileSync(`/proc/sys/${name}`, 'utf8'));

/** Nothing of a node is to be seen outside of its namespaces, while it runs and afterwards. */
function expectNothingOutside(dataDir: string): void {
  expect(output('ip', '-brief', 'link')).not.toMatch(/^(nodes|pods|veth|node\d)/m);
  expect(output('ip', 'route')).not.toMatch(/10\.(200|244)\./);
  expect(output('iptables-save')).not.toContain('KUBE-');
  expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(dataDir);
}

async function runPod(plane: Parameters<typeof kubectlOrThrow>[0]): Promise<void> {
  await kubectlOrThrow(plane, ['run', 'one', `--image=${serverImage}`]);
  await kubectlOrThrow(plane, ['wait', '--for=condition=Ready', 'pod/one', '--timeout=60s']);
}

describeOnNodes('a node leaves nothing', () => {
  test('after stop(), and changes nothing of the machine while it runs', async () => {
    const before = readSysctls();
    const plane = await startControlPlane({ nodes: 1, dataDir: path.join(temporary, 'run') });
    let traces: Traces;
    try {
      await runPod(plane);
      traces = tracesOf(plane.nodes[0]!.folder);
      expect(processesIn(traces).map(({ name }) => name)).toEqual(
        expect.arrayContaining(['containerd', 'kubelet', 'kube-proxy', 'containerd-shim', 'pod']) as string[],
      );
      expect(groupsNamed(traces.group)).not.toEqual([]);
      expectNothingOutside(plane.dataDir);
      expect(readSysctls()).toEqual(before);
    } finally {
      await plane.stop();
    }
    expect(processesIn(traces)).toEqual([]);
    expect(groupsNamed(traces.group)).toEqual([]);
    expect(readdirSync(temporary)).toEqual([]);
    expectNothingOutside(plane.dataDir);
  });

  test('after SIGKILL of the process that started it, except its folder', async () => {
    const child = spawn(process.execPath, ['--import', 'tsx', path.join(__dirname, '../local/parent.ts')], {
      cwd: path.resolve(__dirname, '../../..'),
      env: { ...process.env, TMPDIR: temporary, NODES: '1' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const dataDir = await new Promise<string>((resolve, reject) => {
        child.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString().trim()));
        child.once('exit', (code) => reject(new Error(`the parent exited with ${String(code)}`)));
      });
      await runPod({ adminKubeconfig: path.join(dataDir, 'admin.kubeconfig'), dataDir });
      const traces = tracesOf(path.join(dataDir, 'kindred-node-1'));
      expect(processesIn(traces).map(({ name }) => name)).toContain('kubelet');
      child.kill('SIGKILL');
      await waitFor(() => processesIn(traces).length === 0, { timeout: 10_000, describe: 'every process to be gone' });
      await waitFor(() => groupsNamed(traces.group).length === 0, { timeout: 5000, describe: 'no control group' });
      expectNothingOutside(dataDir);
    } finally {
      child.kill('SIGKILL');
    }
  });

  test('after one of its programs has ended, which is reported', async () => {
    const plane = await startControlPlane({ nodes: 1, dataDir: path.join(temporary, 'run') });
    let traces: Traces;
    try {
      traces = tracesOf(plane.nodes[0]!.folder);
      const exit = new Promise<string>((resolve) =>
        plane.onPartExit(({ part, lastLines }) => resolve(`${part}: ${lastLines}`)),
      );
      const [kubelet] = processesIn(traces).filter(({ name }) => name === 'kubelet');
      process.kill(Number(kubelet!.pid), 'SIGKILL');
      expect(await exit).toMatch(/^kindred-node-1: kubelet exited with code 137: see .*kubelet\.log/);
      // The programs that connect it with the API server end with the control plane.
      expect(processesIn(traces).map(({ name }) => name)).toEqual(['pod', 'pod']);
      expect(groupsNamed(traces.group)).toEqual([]);
    } finally {
      await plane.stop();
    }
    expect(processesIn(traces)).toEqual([]);
  });
});
