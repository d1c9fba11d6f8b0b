import { isObject } from '../../kube/kube-object';
import { ANSWER, MASK, RUN, SETUP, UNEXPECTED_EXIT } from '../shell/prelude';
import { sh } from '../shell/quote';
import type { Machine, Task } from '../task';
import { PREFLIGHT_CHECKS } from './scripts/preflight-checks';
import type { DocumentObject } from './yaml-text';

/** What of the configuration decides what a machine must be like. */
export interface PreflightProps {
  /** Which machine it is in the configuration: `nodes[0]`. */
  readonly where: string;
  /** The kubelet's `cgroup-driver`, if it is given. @default Docker's is fine */
  readonly cgroupDriver?: string;
  /** The kubelet refuses to start with swap. @default false, as RKE has it */
  readonly failSwapOn?: boolean;
  /** Go on with versions of Docker that RKE does not know. @default false */
  readonly ignoreDockerVersion?: boolean;
  /** @default '/var/run/docker.sock' */
  readonly dockerSocket?: string;
  /** Where the machine's files are: for tests. @default '' */
  readonly root?: string;
}

/** Looks at one machine, as the user that RKE logs in as, and changes nothing. It says all that is wrong at once. */
export function preflightTask(machine: Machine, config: DocumentObject, index: number): Task {
  return {
    id: `${machine.address}/preflight`,
    description: `look at ${machine.address}: user, Docker, SSH server, kernel`,
    // What RKE does, it does as this user: whether root could is not the question.
    machine: { ...machine, asUser: true },
    after: [],
    apply: preflightScript(propsOf(config, index)),
    timeoutSeconds: 120,
  };
}

/** The script of {@link preflightTask}. */
export function preflightScript(props: PreflightProps): string {
  const values = {
    where: props.where,
    root: props.root ?? '',
    want_cgroup: props.cgroupDriver ?? '',
    fail_swap: String(props.failSwapOn ?? false),
    ignore_docker: String(props.ignoreDockerVersion ?? false),
    socket: props.dockerSocket ?? '/var/run/docker.sock',
  };
  return [
    `# preflight of ${props.where}`,
    SETUP,
    `doing='looking at the machine'`,
    MASK,
    ANSWER,
    UNEXPECTED_EXIT,
    RUN,
    // Messages of programs are none of ours, and there is no log on a machine that nothing was done to yet.
    'exec 2>/dev/null >/dev/null',
    ...Object.entries(values).map(([name, value]) => `${name}=${sh(value)}`),
    PREFLIGHT_CHECKS,
    '',
  ].join('\n');
}

function propsOf(config: DocumentObject, index: number): PreflightProps {
  const kubelet = at(at(config, 'services'), 'kubelet');
  const args = at(kubelet, 'extra_args');
  const nodes: unknown = config['nodes'];
  const socket = Array.isArray(nodes) ? at(nodes[index], 'docker_socket') : undefined;
  const driver = at(args, 'cgroup-driver');
  return {
    where: `nodes[${index}]`,
    ...(typeof driver === 'string' ? { cgroupDriver: driver } : {}),
    failSwapOn: (at(args, 'fail-swap-on') ?? (at(kubelet, 'fail_swap_on') === true ? 'true' : 'false')) === 'true',
    ignoreDockerVersion: config['ignore_docker_version'] === true,
    ...(typeof socket === 'string' && socket !== '' ? { dockerSocket: socket } : {}),
  };
}

function at(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}
