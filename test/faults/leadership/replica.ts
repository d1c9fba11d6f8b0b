import { OperatorProcess } from '../../../testing';
import { describeRequest, type Exchange, type ProxiedRequest } from '../../../testing/fault-proxy/exchange';
import { FaultProxy, type Fault } from '../../../testing/fault-proxy/fault-proxy';
import type { TestEnv } from '../../support/test-env';
import { expectNoWritesOnResync, expectNoMissedEvents, type Reconcilable } from '../support/steady-state';
import { expectNoStorm, rssMiB, measureTraffic, type Traffic, type Workload } from '../support/traffic';

/** How long a leader leads after the start of its last renewal, and how long others wait, in milliseconds: DESIGN's 15 and 10 s. */
export const RENEW_DEADLINE_MS = 10_000;

const LEASES = 'leases.coordination.k8s.io';

/** One of several operators that share a Lease; it reaches the API server through a proxy of its own, so that who asked is known. */
export class Replica {
  private constructor(
    readonly operator: OperatorProcess,
    readonly proxy: FaultProxy,
  ) {}

  /**
   * Starts one; resolves when it knows the cluster, which is before it leads.
   *
   * @throws Error when it never does; neither an operator nor a proxy is left then
   */
  static async start(env: TestEnv): Promise<Replica> {
    const { plane, platform } = env;
    const proxy = await FaultProxy.start(plane.adminKubeconfig);
    let operator: OperatorProcess | undefined;
    try {
      const kubeconfig = proxy.kubeconfig(await plane.kubeconfigFor(platform.account));
      // Audits come often, so that what a watch has missed is found while a test lasts.
      const args = [...platform.args, '--audit-seconds=1'];
      operator = await OperatorProcess.start({ kubeconfig, args, env: platform.env });
      await operator.log.line('every cache is synced');
      return new Replica(operator, proxy);
    } catch (error) {
      await operator?.kill();
      await proxy.close();
      throw error;
    }
  }

  /** Its writes since a moment (milliseconds since 1970), oldest first. */
  writesSince(moment: number): readonly (ProxiedRequest & { readonly at: number })[] {
    return this.proxy.requests.filter(({ writes, isBackground, at }) => writes && !isBackground && at >= moment);
  }

  /** When it last began to renew its Lease before a moment; until ten seconds later it leads. */
  lastRenewal(before: number): number {
    const renewals = this.proxy.requests.filter(
      ({ resource, verb, at }) => resource === LEASES && (verb === 'update' || verb === 'create') && at < before,
    );
    const last = renewals.at(-1);
    if (last === undefined) throw new Error('this replica has never held the Lease');
    return last.at;
  }

  /** When it logged something (milliseconds since 1970). */
  async loggedAt(msg: string): Promise<number> {
    return Date.parse((await this.operator.log.line(msg)).time);
  }

  async close(): Promise<void> {
    if (this.operator.running) await this.operator.kill();
    await this.proxy.close();
  }
}

/** What a replica may grow by when it begins to work, in MiB: a heap that is not collected yet is no leak; a soak tells leaks apart. */
const GROWTH_MIB = 60;

/**
 * How often the heir may ask what a calm run asks once: nothing is in its way, but all that was left undone comes at once. Measured in the short form: 9
 * writes to one object where 18 are allowed, and 5 where 36 are.
 */
const SUCCESSOR_FACTOR = 3;

/** What there was to do, and how all of it is looked at again; a `Load` is one. */
interface Work extends Reconcilable {
  readonly workload: Workload;
}

/** One replica takes over from another. */
export class Failover {
  private readonly began = Date.now();
  private readonly before: number;

  /** The heir still stands by. */
  constructor(
    private readonly leader: Replica,
    private readonly successor: Replica,
  ) {
    this.before = rssMiB(successor.operator.pid);
  }

  /**
   * Expects, once all is done, that neither replica has made a storm of requests, and that the heir has missed nothing, has not grown, and has
   * nothing left to write.
   */
  async expectCleanFailover(work: Work): Promise<void> {
    const { operator, proxy } = this.successor;
    expectNoStorm(this.trafficOf(this.leader), work.workload);
    expectNoStorm(this.trafficOf(this.successor), work.workload, SUCCESSOR_FACTOR);
    await expectNoMissedEvents(proxy, operator);
    await expectNoWritesOnResync(this.successor, work);
    expect(rssMiB(operator.pid) - this.before).toBeLessThan(GROWTH_MIB);
  }

  private trafficOf({ proxy }: Replica): Traffic {
    return measureTraffic(proxy.requests, this.began, Date.now());
  }
}

/** A request that came and was held, and what the server said when it was let go. */
interface HeldRequest {
  readonly description: string;
  readonly exchange: Exchange;
}

/** Holds requests on their way to the server, until they are let go: then they reach it, whether or not the client still waits. */
export class HeldRequests {
  readonly all: HeldRequest[] = [];
  private readonly statuses = new Map<string, number[]>();
  private readonly arrivals: Promise<void>[] = [];
  private open: () => void = () => undefined;
  private readonly released = new Promise<void>((resolve) => {
    this.open = resolve;
  });

  /** Holds whatever it is asked to do. */
  readonly hold: Fault = (exchange) => {
    const sentence = describeRequest(exchange.request);
    this.all.push({ description: sentence, exchange });
    const arrival = this.released.then(async () => {
      const answer = await exchange.fetchResponse({ outlivesClient: true });
      this.statuses.set(sentence, [...(this.statuses.get(sentence) ?? []), answer.status]);
      if (!exchange.clientGone.aborted) exchange.send(answer);
    });
    this.arrivals.push(arrival);
    return arrival;
  };

  /** Lets all go; resolves when the server has answered all. @returns its statuses, by what was asked */
  async release(): Promise<ReadonlyMap<string, readonly number[]>> {
    this.open();
    await Promise.all(this.arrivals);
    return this.statuses;
  }
}

/** A write, when it came and when it ended for who asked, in milliseconds since 1970. */
interface WriteTime {
  readonly description: string;
  readonly receivedAt: number;
  /** Undefined as long as it is open. */
  ended?: number;
}

/** Remembers when writes came to a proxy and when they ended, so that nobody need look in time. */
export class WriteTimes {
  readonly all: WriteTime[] = [];

  /** A fault that notes each write and then does what another one does. */
  under(fault: Fault): Fault {
    return async (exchange) => {
      const { request, clientGone: gone } = exchange;
      if (request.writes && !request.isBackground) {
        const write: WriteTime = { description: describeRequest(request), receivedAt: Date.now() };
        this.all.push(write);
        const end = (): void => void (write.ended ??= Date.now());
        if (gone.aborted) end();
        else gone.addEventListener('abort', end, { once: true });
      }
      await fault(exchange);
    };
  }

  /** Those that had come and not ended at a moment. */
  openAt(moment: number): readonly string[] {
    return this.all
      .filter(({ receivedAt: came, ended = Infinity }) => came <= moment && ended >= moment)
      .map(({ description: sentence }) => sentence);
  }
}
