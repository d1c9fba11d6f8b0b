import { readFileSync, readdirSync } from 'node:fs';
import type { OperatorProcess } from '../../../testing';
import type { Exchange, ProxiedRequest } from '../../../testing/fault-proxy/exchange';
import { FaultProxy, type Fault } from '../../../testing/fault-proxy/fault-proxy';
import { ErrorLog, expectNoMissedEvents } from '../support/steady-state';
import { contentIn, nameIn, writeTarget, type CrashSelector, type CrashTiming, type WriteAddress } from './crash-point';

/** What a crashing operator is made of. */
interface CrashingOperatorOptions {
  /** A kubeconfig with the operator's rights, straight to the server. */
  readonly kubeconfig: string;
  /** Starts an operator with a kubeconfig that leads through the proxy. */
  readonly startOperator: (kubeconfig: string) => Promise<OperatorProcess>;
  readonly choice: CrashSelector;
  /** Kills an operator, and what the end of its pod would take with it. @default the operator alone */
  readonly kill?: (operator: OperatorProcess) => Promise<void>;
}

/** An operator that is killed where it was chosen, and followed by another at once. */
export class CrashingOperator {
  /** Where operators were killed, oldest first. */
  readonly crashes: Crash[] = [];
  private readonly crasher: CrashFault;
  private current: OperatorProcess | undefined;
  private readonly logged = new ErrorLog();
  /** How many writes there had been when the operator of the moment was started. */
  private writesBefore = 0;
  /** Settles when the operator of the moment works. */
  private pendingRestart: Promise<void> = Promise.resolve();

  private constructor(
    private readonly proxy: FaultProxy,
    private readonly options: CrashingOperatorOptions,
    private readonly path: string,
  ) {
    this.crasher = new CrashFault(options.choice, (crash) => {
      this.crashes.push(crash);
      this.pendingRestart = this.pendingRestart.then(() => this.restart());
      // Whoever asks for the operator next is told; until then it is nobody's.
      this.pendingRestart.catch(() => undefined);
    });
    proxy.fault = this.crasher.fault;
  }

  /**
   * Starts the first one.
   *
   * @throws Error when it does not come to work; neither an operator nor a proxy is left then
   */
  static async start(options: CrashingOperatorOptions): Promise<CrashingOperator> {
    const proxy = await FaultProxy.start(options.kubeconfig);
    const subject = new CrashingOperator(proxy, options, proxy.kubeconfig(options.kubeconfig));
    try {
      await subject.next();
    } catch (error) {
      await subject.end();
      throw error;
    }
    return subject;
  }

  /** Every write that operators have asked for, oldest first. */
  get writes(): readonly WriteAddress[] {
    return this.crasher.writes;
  }

  /** Those of them that the server accepted. */
  get accepted(): readonly WriteAddress[] {
    return this.crasher.accepted;
  }

  /** Whether the operator of the moment has written anything yet. */
  get hasWritten(): boolean {
    return this.writes.length > this.writesBefore;
  }

  /** What operators have logged as errors. */
  get errors(): readonly string[] {
    return this.logged.all();
  }

  enterStage(stage: string): void {
    this.crasher.enterStage(stage);
  }

  /**
   * The operator of the moment, as soon as it works.
   *
   * @throws Error when one could not be started
   */
  async currentOperator(): Promise<OperatorProcess> {
    for (;;) {
      const { pendingRestart: succession } = this;
      await succession;
      if (succession === this.pendingRestart) return this.operator;
    }
  }

  /** Kills the operator, though it writes nothing, and starts another. */
  async replace(): Promise<void> {
    await this.currentOperator();
    await this.restart();
  }

  /**
   * Waits until the operator of the moment has compared all its caches with the server, and expects that it has never found an event missing. In
   * between nothing may crash.
   */
  async expectNoMissedEvents(): Promise<void> {
    await expectNoMissedEvents(this.proxy, await this.currentOperator());
  }

  /** Ends the operator and the proxy. */
  async end(): Promise<void> {
    await this.pendingRestart.catch(() => undefined);
    try {
      await this.kill();
    } finally {
      await this.proxy.close();
    }
  }

  /** The one that was started last. */
  private get operator(): OperatorProcess {
    if (this.current === undefined) throw new Error('no operator has been started');
    return this.current;
  }

  private async restart(): Promise<void> {
    await this.kill();
    this.crasher.release();
    await this.next();
  }

  private async kill(): Promise<void> {
    // The first one may not have been started.
    if (this.current === undefined) return;
    if (this.options.kill === undefined) await this.current.kill();
    else await this.options.kill(this.current);
  }

  private async next(): Promise<void> {
    this.writesBefore = this.writes.length;
    this.current = await this.options.startOperator(this.path);
    this.logged.follow(this.current);
    await this.current.waitUntilReconciling();
  }
}

/** A write at which the operator was stopped. */
interface Crash {
  readonly moment: CrashTiming;
  readonly write: WriteAddress;
}

/**
 * The fault that finds the moment of a crash. From that moment on nothing that the operator asks for reaches the server, until `release`:
 * whoever is told has all the time to kill it.
 */
class CrashFault {
  /** Every write that came to the proxy, oldest first. */
  readonly writes: WriteAddress[] = [];
  /** Those that the server accepted, in the order of its answers. */
  readonly accepted: WriteAddress[] = [];
  private stage = '';
  private isHolding = false;
  /** How many were accepted, by target. */
  private readonly counts = new Map<string, number>();

  constructor(
    private readonly choice: CrashSelector,
    private readonly onCrash: (crash: Crash) => void,
  ) {}

  /** Writes belong to this stage from now on. */
  enterStage(stage: string): void {
    this.stage = stage;
  }

  /** The operator is dead; the next one is let through. */
  release(): void {
    this.isHolding = false;
  }

  readonly fault: Fault = async (exchange) => {
    if (this.isHolding) return exchange.hang();
    const { request } = exchange;
    if (!request.writes || request.isBackground) return exchange.pass();
    const write = this.record(request);
    const moment = this.choice(write);
    if (moment === undefined) return this.pass(exchange, write);
    return this.crash(exchange, { moment, write });
  };

  private async pass(exchange: Exchange, write: WriteAddress): Promise<void> {
    const answer = await exchange.forward();
    this.answered(write, answer.statusCode);
    await exchange.relay(answer);
  }

  private async crash(exchange: Exchange, crash: Crash): Promise<void> {
    if (crash.moment === 'after') this.answered(crash.write, (await exchange.fetchResponse()).status);
    this.isHolding = true;
    this.onCrash(crash);
    return exchange.hang();
  }

  private answered(write: WriteAddress, status = 0): void {
    if (status < 200 || status > 299) return;
    const key = writeTarget(write);
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
    this.accepted.push(write);
  }

  private record(request: ProxiedRequest): WriteAddress {
    const { verb, resource } = request;
    const target = { stage: this.stage, verb, resource, name: nameIn(request), content: contentIn(request) };
    const write = { ...target, occurrence: (this.counts.get(writeTarget(target)) ?? 0) + 1 };
    this.writes.push(write);
    return write;
  }
}

/** Kills an operator and everything that it has started, as the end of its pod does. */
export async function killWithDescendants(operator: OperatorProcess): Promise<void> {
  if (!operator.running) return;
  // Frozen, it starts nothing more.
  operator.pause();
  const others = descendantsOf(operator.pid);
  await operator.kill();
  for (const pid of others) killIfThere(pid);
}

/** The processes that a process has started, and those that these have started. Reads `/proc`: Linux only. */
function descendantsOf(pid: number): readonly number[] {
  const byParent = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    const parent = parentOf(name);
    if (parent !== undefined) byParent.set(parent, [...(byParent.get(parent) ?? []), Number(name)]);
  }
  const below = (of: number): readonly number[] => (byParent.get(of) ?? []).flatMap((each) => [each, ...below(each)]);
  return below(pid);
}

/** Source: proc(5), `/proc/pid/stat`: the fields after the name, which may hold anything and ends at the last parenthesis. */
function parentOf(name: string): number | undefined {
  if (!/^\d+$/.test(name)) return undefined;
  try {
    const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined; // it has ended meanwhile
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // ended meanwhile
  }
}
