import type { OperatorProcess } from '../../../testing';
import { FaultProxy } from '../proxy/fault-proxy';
import { expectNothingMissed } from '../support/calm';
import { ErrorsLogged } from '../support/errors-logged';
import type { Choice } from './choices';
import { Crasher, type Crash } from './crasher';
import type { WriteAddress } from './crash-point';

/** What a crashing operator is made of. */
export interface CrashingOperatorOptions {
  /** A kubeconfig with the operator's rights, straight to the server. */
  readonly kubeconfig: string;
  /** Starts an operator with a kubeconfig that leads through the proxy. */
  readonly begin: (kubeconfig: string) => Promise<OperatorProcess>;
  readonly choice: Choice;
  /** Kills an operator, and what the end of its pod would take with it. @default the operator alone */
  readonly kill?: (operator: OperatorProcess) => Promise<void>;
}

/** An operator that is killed where it was chosen, and followed by another at once. */
export class CrashingOperator {
  /** Where operators were killed, oldest first. */
  readonly crashes: Crash[] = [];
  private readonly crasher: Crasher;
  private current: OperatorProcess | undefined;
  private readonly logged = new ErrorsLogged();
  /** How many writes there had been when the operator of the moment was started. */
  private writesBefore = 0;
  /** Settles when the operator of the moment works. */
  private succession: Promise<void> = Promise.resolve();

  private constructor(
    private readonly proxy: FaultProxy,
    private readonly options: CrashingOperatorOptions,
    private readonly path: string,
  ) {
    this.crasher = new Crasher(options.choice, (crash) => {
      this.crashes.push(crash);
      this.succession = this.succession.then(() => this.succeed());
      // Whoever asks for the operator next is told; until then it is nobody's.
      this.succession.catch(() => undefined);
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

  enter(stage: string): void {
    this.crasher.enter(stage);
  }

  /**
   * The operator of the moment, as soon as it works.
   *
   * @throws Error when one could not be started
   */
  async living(): Promise<OperatorProcess> {
    for (;;) {
      const { succession } = this;
      await succession;
      if (succession === this.succession) return this.operator;
    }
  }

  /** Kills the operator, though it writes nothing, and starts another. */
  async replace(): Promise<void> {
    await this.living();
    await this.succeed();
  }

  /**
   * Waits until the operator of the moment has compared all its caches with the server, and expects that it has never found an event missing. In
   * between nothing may crash.
   */
  async expectNothingMissed(): Promise<void> {
    await expectNothingMissed(this.proxy, await this.living());
  }

  /** Ends the operator and the proxy. */
  async end(): Promise<void> {
    await this.succession.catch(() => undefined);
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

  private async succeed(): Promise<void> {
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
    this.current = await this.options.begin(this.path);
    this.logged.follow(this.current);
    await this.current.working();
  }
}
