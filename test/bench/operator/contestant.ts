import type { OperatorName } from '../../../bench/results';
import { freePort } from '../../../local/plane/ports';
import type { Program } from './measured-process';

/** An operator that takes part. */
export interface Contestant {
  readonly name: OperatorName;
  /** Whose requests it makes. */
  readonly user: string;
  program(): Promise<Program>;
}

/** Workers of the twins: more make them no faster here. */
export const peerWorkers = 16;

/** The operator as its image starts it. */
export function kindred(of: {
  readonly user: string;
  readonly bundle: string;
  readonly args: readonly string[];
}): Contestant {
  const own = ['--metrics-port=0', '--metrics-host=127.0.0.1'];
  const program: Program = {
    command: process.execPath,
    args: [of.bundle, ...of.args, ...own],
    reconcilingLine: 'reconciling',
    harmless: [],
    metricsPort: async (log) => Number((await log.line('serving /healthz, /readyz and /metrics')).port),
  };
  return { name: 'kindred', user: of.user, program: () => Promise.resolve(program) };
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
        args: [`--twin=${name}`, `--workers=${String(peerWorkers)}`, ...places],
        reconcilingLine: 'Starting workers',
        // It gives its Lease back when it is stopped, and calls that an error.
        harmless: ['error received after stop sequence was engaged'],
        metricsPort: () => Promise.resolve(port),
      };
    },
  };
}
