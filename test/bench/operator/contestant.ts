import type { OperatorName } from '../../../bench/results';
import { nodeOptions } from '../../../constructs/operator/heap';
import { operatorDefaults } from '../../../constructs/operator/operator-props';
import { freePort } from '../../../local/plane/ports';
import type { Program } from './measured-process';

/** An operator that takes part. */
export interface Contestant {
  readonly name: OperatorName;
  /** Whose requests it makes. */
  readonly user: string;
  /** How to start it for so many objects. */
  program(objects: number): Promise<Program>;
}

/** An operator's pod is given the default memory limit, and as much again for each further so many objects. */
const objectsInPodMemory = 5000;

/** Workers of the twins: more make them no faster. */
export const peerWorkers = 16;

/** The operator as its pod starts it. */
export function kindred(of: {
  readonly user: string;
  readonly bundle: string;
  readonly args: readonly string[];
}): Contestant {
  const own = ['--metrics-port=0', '--metrics-host=127.0.0.1'];
  const program = (objects: number): Program => ({
    command: process.execPath,
    args: [of.bundle, ...of.args, ...own],
    env: podEnv(objects),
    reconcilingLine: 'reconciling',
    harmless: [],
    metricsPort: async (log) => Number((await log.line('serving /healthz, /readyz and /metrics')).port),
  });
  return { name: 'kindred', user: of.user, program: (objects) => Promise.resolve(program(objects)) };
}

/** What the pod of our operator for so many objects sets. */
export function podEnv(objects: number): { readonly NODE_OPTIONS: string } {
  return { NODE_OPTIONS: nodeOptions(operatorDefaults.memoryLimitMiB * Math.ceil(objects / objectsInPodMemory)) };
}

/** A twin on controller-runtime. */
export function twin(
  name: 'tuned' | 'plain',
  of: { readonly user: string; readonly file: string; readonly kubeconfig: string },
): Contestant {
  return {
    name,
    user: of.user,
    program: async () => {
      const port = await freePort();
      const places = [`--kubeconfig=${of.kubeconfig}`, `--metrics=127.0.0.1:${String(port)}`];
      return {
        command: of.file,
        env: {},
        args: [`--twin=${name}`, `--workers=${String(peerWorkers)}`, ...places],
        reconcilingLine: 'Starting workers',
        // It gives its Lease back when it is stopped, and calls that an error; so it calls a renewal that the stop has cut short.
        harmless: ['error received after stop sequence was engaged', 'Error retrieving lease lock'],
        metricsPort: () => Promise.resolve(port),
      };
    },
  };
}
