import { messageOf } from '../../../../local/assets/errors';
import type { StackId } from './registration';
import { Deployment } from './deployment';
import { DeploymentError, InterruptedError, Recorder, Result } from './recorder';
import { OperationGate, type Run, type RunOptions } from './run';
import { SnapshotManager, SecretsManager, StackState } from './state';
import { HookRegistry } from './hooks';
import { MonitorServer } from './monitor-server';
import { type Program, runProgram } from './program';
import { ProviderRegistry, type ProviderPackage } from './provider';

/** A value of the stack's configuration. */
export type ConfigValue = string | { readonly secret: string };

/** How to make an {@link Engine}. */
export interface EngineOptions {
  readonly providers: readonly ProviderPackage[];
  /** @default 'project' */
  readonly project?: string;
  /** @default 'test' */
  readonly stack?: string;
  /** By `namespace:key`; a key without a namespace is the project's. Structured values are JSON texts. @default nothing */
  readonly config?: Readonly<Record<string, ConfigValue>>;
  /** What {@link Engine.export} gave. @default an empty state */
  readonly state?: string;
  /** Encrypts the secrets of the state. @default 'passphrase' */
  readonly passphrase?: string;
}

/**
 * Runs Pulumi programs in this process, and carries out for real what they register: the SDK talks to it as to the real engine, over
 * gRPC.
 *
 * Guarantees: see README.md. One run at a time.
 */
export class Engine {
  private readonly home: StackId;
  private readonly secretsManager: SecretsManager;
  private current: StackState;
  config: Readonly<Record<string, ConfigValue>>;

  constructor(private readonly options: EngineOptions) {
    this.home = { project: options.project ?? 'project', stack: options.stack ?? 'test' };
    this.secretsManager = new SecretsManager(options.passphrase ?? 'passphrase');
    this.config = options.config ?? {};
    this.current =
      options.state === undefined ? new StackState() : StackState.fromText(options.state, this.secretsManager);
  }

  /** What the last run left. */
  get state(): StackState {
    return this.current;
  }

  /** The state as text, secrets encrypted: another engine can go on from it. */
  export(): string {
    return this.current.toText(this.secretsManager);
  }

  /**
   * What `up` would do. Changes nothing; providers are asked to check and compare only.
   *
   * @throws DeploymentError
   */
  async preview(program: Program, options: RunOptions = {}): Promise<Result> {
    return this.go(program, options, true);
  }

  /**
   * Brings about what the program registers, and takes away what it no longer has.
   *
   * @throws DeploymentError when anything failed; the state then has what was done
   * @throws InterruptedError when the run was killed; the state then has what was done before
   */
  async up(program: Program, options: RunOptions = {}): Promise<Result> {
    return this.go(program, options, false);
  }

  /** Takes everything away. Throws as {@link up} does. */
  async destroy(options: RunOptions = {}): Promise<Result> {
    return this.go(undefined, options, false);
  }

  private async go(program: Program | undefined, options: RunOptions, preview: boolean): Promise<Result> {
    const run = this.newRun(options, preview);
    const deployment = new Deployment(run);
    this.warnOfPending(run);
    try {
      if (program !== undefined) await this.runProgram(program, run, deployment);
      if (!deployment.failed) await deployment.finish().catch((error: unknown) => deployment.fail(error));
      await run.gate.settled();
    } finally {
      await run.providers.close();
    }
    if (!preview) this.current = run.ledger.state([...run.gate.underWay.values()].map(({ urn, op }) => ({ urn, op })));
    const result = new Result(
      run.recorder.operations,
      deployment.outputs,
      run.recorder.log,
      run.recorder.processes,
      this.export(),
    );
    if (run.gate.killed) throw new InterruptedError(`the run was killed at operation ${run.gate.operations}`);
    if (deployment.failed) throw new DeploymentError(run.recorder.errors.join('\n'), result);
    return result;
  }

  private newRun(options: RunOptions, preview: boolean): Run {
    return {
      home: this.home,
      config: this.fullConfig(),
      preview,
      ledger: new SnapshotManager(this.current),
      recorder: new Recorder(),
      gate: new OperationGate(options),
      providers: new ProviderRegistry(this.options.providers),
      hooks: new HookRegistry(),
    };
  }

  private async runProgram(program: Program, run: Run, deployment: Deployment): Promise<void> {
    const { server, address } = await MonitorServer.start(deployment, run.recorder);
    const settled = deployment.failure.then(() => run.gate.settled());
    try {
      await runProgram(program, { ...this.home, address, preview: run.preview, config: run.config }, settled);
    } catch (error) {
      deployment.fail(new Error(`the program failed: ${messageOf(error)}`, { cause: error }));
    } finally {
      server.stop();
    }
  }

  private fullConfig(): Run['config'] {
    return new Map(
      Object.entries(this.config).map(([key, value]) => [
        key.includes(':') ? key : `${this.home.project}:${key}`,
        typeof value === 'string' ? { value, secret: false } : { value: value.secret, secret: true },
      ]),
    );
  }

  /** As the real CLI: what a killed run had begun may be there without the state's knowing of it. */
  private warnOfPending(run: Run): void {
    for (const { urn, op } of this.current.pendingOperations) {
      run.recorder.addLog(
        'warning',
        `a killed run had begun to ${op} it; it may be there without the state's knowing`,
        urn,
      );
    }
  }
}
