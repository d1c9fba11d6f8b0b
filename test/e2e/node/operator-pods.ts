import { execFile } from 'node:child_process';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import type { AuditEvent } from '../../../local';
import { nodePath } from '../../../local/node/available';
import type { TestControlPlane } from '../../support/use-control-plane';
import { kubectlOrThrow } from '../../../testing/kubectl';
import { waitFor } from '../../../testing/wait-for';
import { kindredBuild } from '../../support/kindred-build';

/** A pod, as far as these tests look at it. */
export interface Pod extends KubeObject {
  readonly spec: { readonly nodeName?: string };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly containerStatuses?: readonly {
      readonly ready: boolean;
      readonly restartCount: number;
      readonly image: string;
      readonly state: { readonly waiting?: { readonly reason: string } };
      readonly lastState: { readonly terminated?: { readonly reason: string; readonly exitCode: number } };
    }[];
  };
}

export const PODS: ResourceType<Pod> = { apiVersion: 'v1', kind: 'Pod', plural: 'pods', scope: 'Namespaced' };

export function isReadyPod({ status }: Pod): boolean {
  return status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
}

export const dist = join(__dirname, '../../../dist');

/** Makes the image of a project's operator of this machine's Node.js, and imports it into the nodes. */
export async function importOperatorImage(
  plane: TestControlPlane,
  { project, folder, tag }: { readonly project?: string; readonly folder: string; readonly tag: string },
): Promise<void> {
  const archive = join(folder, `${tag.replaceAll(/\W/g, '-')}.tar`);
  const args = [
    '--base=local',
    `--archive=${archive}`,
    `--tag=${tag}`,
    `--label=org.opencontainers.image.revision=${tag}`,
  ];
  const { code, stderr } = await kindredBuild(args, { cwd: folder, project });
  if (code !== 0) throw new Error(stderr);
  await plane.importImage(archive);
}

/** An operator that runs as its Deployment. */
export class OperatorPods {
  constructor(
    private readonly plane: TestControlPlane,
    /** Name of the Deployment, its Lease and its ServiceAccount. */
    readonly name: string,
    readonly namespace: string,
  ) {}

  /** Runs kubectl in the operator's namespace. @throws Error with what it said on stderr */
  async kubectl(...args: readonly string[]): Promise<string> {
    return kubectlOrThrow(this.plane, ['-n', this.namespace, ...args]);
  }

  /** The pods that are not being deleted. */
  async pods(): Promise<readonly Pod[]> {
    const selector = `app.kubernetes.io/instance=${this.name}`;
    const { items } = JSON.parse(await this.kubectl('get', 'pods', '-l', selector, '-o', 'json')) as { items: Pod[] };
    return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  /** Waits until the Deployment has rolled out. */
  async rolledOut(): Promise<void> {
    await this.kubectl('rollout', 'status', `deployment/${this.name}`, '--timeout=120s');
  }

  /** Who holds the Lease: the pod, and the process in it. */
  async leader(): Promise<{ readonly pod: string; readonly identity: string }> {
    const identity = await this.kubectl('get', 'lease', this.name, '-o', 'jsonpath={.spec.holderIdentity}');
    return { pod: identity.split('_')[0] ?? '', identity };
  }

  /**
   * Waits until another process leads.
   *
   * @param before - identity of the process that led
   * @returns how long that took, in seconds
   */
  async nextLeader(before: string): Promise<number> {
    const since = Date.now();
    await waitFor(
      async () => {
        const { identity } = await this.leader();
        return identity !== '' && identity !== before;
      },
      { describe: 'another leader', timeout: 90_000, interval: 100 },
    );
    return (Date.now() - since) / 1000;
  }

  /** The writes of a pod to anything but the Lease and events, oldest first. Source: KEP-4193, which adds the pod to `user.extra`. */
  async writesOf(pod?: string): Promise<readonly AuditEvent[]> {
    const user = `system:serviceaccount:${this.namespace}:${this.name}`;
    return (await this.plane.auditLog()).filter(
      (event) =>
        event.user.username === user &&
        event.stage === 'ResponseComplete' &&
        !['get', 'list', 'watch'].includes(event.verb) &&
        !['leases', 'events'].includes(event.objectRef?.resource ?? '') &&
        (pod === undefined || podOf(event) === pod),
    );
  }
}

/** The pod that a request came from. */
export function podOf({ user }: AuditEvent): string | undefined {
  const { extra } = user as { readonly extra?: Readonly<Record<string, readonly string[]>> };
  return extra?.['authentication.kubernetes.io/pod-name']?.[0];
}

/** The process of a pod's operator on this machine. */
export function processOf(pod: string): number {
  const found = processes(({ commandLine, environment }) => {
    return commandLine.includes('/operator.cjs') && environment.includes(`HOSTNAME=${pod}`);
  });
  if (found.length !== 1) throw new Error(`the pod ${pod} has ${String(found.length)} processes on this machine`);
  return found[0]!;
}

/** The most memory that a process ever had resident, in MiB. */
export function peakMemoryMiB(pid: number): number {
  const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8'))?.[1];
  return Number(peak) / 1024;
}

/**
 * Drops what a pod sends to an address, until the returned function is called.
 *
 * @param pid - a process of the pod; it may end meanwhile
 */
export async function cutOff(pid: number, address: string): Promise<() => Promise<void>> {
  const network = networkOf(pid);
  // The pod keeps its network for as long as its sandbox runs.
  const [sandbox] = processes((process) => process.network === network && process.commandLine.includes('pause'));
  if (sandbox === undefined) throw new Error(`the process ${String(pid)} is in no pod`);
  const iptables = async (action: string): Promise<void> => {
    const rule = ['iptables', action, 'OUTPUT', '-d', address, '-j', 'DROP'];
    const env = { ...process.env, PATH: nodePath() };
    await promisify(execFile)('nsenter', ['-t', String(sandbox), '-n', ...rule], { env });
  };
  await iptables('-A');
  return () => iptables('-D');
}

interface Process {
  readonly commandLine: string;
  readonly environment: readonly string[];
  readonly network: string;
}

/** The processes of this machine, those in containers too, that are as wanted. */
function processes(wanted: (process: Process) => boolean): readonly number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      return wanted({
        commandLine: readFileSync(`/proc/${String(pid)}/cmdline`, 'utf8'),
        environment: readFileSync(`/proc/${String(pid)}/environ`, 'utf8').split('\0'),
        network: networkOf(pid),
      });
    } catch {
      return false; // ended while we looked
    }
  });
}

const networkOf = (pid: number): string => readlinkSync(`/proc/${String(pid)}/ns/net`);
