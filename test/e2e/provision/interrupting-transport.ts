import { waitFor } from '../../../local/testing';
import {
  MachineError,
  type Transport,
  type TransportRequest,
  type TransportResult,
} from '../../../provisioner/tasks/transport';
import type { Hosts, TestHost } from '../../support/hosts';

/** How a run is disturbed. */
export type Interruption =
  /** The connection is cut once the script runs; it goes on without us. */
  | 'cut'
  /** The script and what it started are killed, at once. */
  | 'killed'
  /** The same a little later. */
  | 'killed-later'
  /** The script ends, and its answer is lost. */
  | 'unheard';

/** Processes that a script over SSH consists of: the session of each program that sshd started. */
const killScripts = `for pid in $(pgrep -f '^sshd: .*@notty' || true); do
  for child in $(pgrep -P "$pid" || true); do pkill -KILL -s "$child" || true; done
done`;

/** Disturbs the first runs of each script, one by each of the given ways, and lets the following ones through. */
export class InterruptingTransport implements Transport {
  /** What was done, and to which script: `cut prod/token`. */
  readonly interrupted: Interruption[] = [];
  readonly #left = new Map<string, Interruption[]>();

  constructor(
    private readonly real: Transport,
    private readonly hosts: Hosts,
    private readonly ways: readonly Interruption[],
  ) {}

  async run(request: TransportRequest): Promise<TransportResult> {
    const key = `${request.machine?.address ?? ''} ${request.script}`;
    const left = this.#left.get(key) ?? [...this.ways];
    this.#left.set(key, left);
    const way = left.shift();
    if (way === undefined) return this.real.run(request);
    this.interrupted.push(way);
    const host = this.hosts.all.find(({ address }) => address === request.machine?.address);
    if (host === undefined) throw new Error('only scripts on hosts can be interrupted');
    const running = this.real.run(request).catch((error: unknown) => error);
    await Promise.race([running, this.#disturb(host, way)]);
    await running;
    throw new MachineError('ConnectionLost', `${way} on purpose`);
  }

  async #disturb(host: TestHost, way: Interruption): Promise<void> {
    if (way === 'unheard') return new Promise(() => undefined);
    const session = async (): Promise<boolean> => (await host.exec(`pgrep -f '^sshd: .*@notty' || true`)) !== '';
    // The script may be through before it is seen; its end is waited for beside this.
    await waitFor(session, { interval: 10, describe: 'the session' });
    if (way === 'killed-later') await new Promise((resolve) => setTimeout(resolve, 1500));
    if (way === 'cut') await host.dropConnections();
    else await host.exec(killScripts);
  }
}
