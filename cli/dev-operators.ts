import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { hasEffects } from '../constructs/kind/kind';
import { messageOf } from '../local/assets/errors';
import type { CertificateAuthority } from '../local/certificates';
import type { GuardedProcess } from '../local/guarded-process';
import { isPodArgument } from '../operator/arguments';
import type { DevArguments } from './dev-arguments';
import type { DevCluster } from './dev-cluster';
import { CliError, InterruptedError } from './errors';
import type { LocalOperator, LocalPlatform } from './local-platform';
import { compileOperator, type OperatorProgram } from './operator-bundle';
import { OperatorProcess } from './operator-process';
import { programName, type ProjectOperator } from './project';
import type { CleanupStack } from './shutdown';
import type { View } from './view';

/** The state of one `kindred dev`. */
export interface DevSession {
  readonly args: DevArguments;
  readonly platform: LocalPlatform;
  /** Signs the certificates of conversion webhooks. */
  readonly authority: CertificateAuthority;
  /** The operators' programs, in their order; none with pods. */
  readonly programs: readonly OperatorProgram[];
  readonly view: View;
  readonly undo: CleanupStack;
  readonly signal: AbortSignal;
}

/** What the operators of a `kindred dev` are run with. */
interface DevOperatorsOptions {
  readonly args: DevArguments;
  readonly cluster: DevCluster;
  readonly view: View;
  readonly signal: AbortSignal;
}

/** Options of {@link DevOperators.replace}. */
interface ReplaceOptions {
  readonly programs: readonly OperatorProgram[];
  readonly signal: AbortSignal;
  /** Aborts when a still newer version is there: this one need not start then, if the one before still runs. */
  readonly saved: AbortSignal;
}

/** Compiles the operators of a platform. @throws CliError when a source does not compile */
export async function programsOf({ project, operators }: LocalPlatform): Promise<readonly OperatorProgram[]> {
  return Promise.all(operators.map(({ operator }) => compileOperator(project, operator)));
}

/** The operators as processes of this machine, each under its own ServiceAccount. */
export class DevOperators {
  /** Rejects when one of them ends that nobody has stopped. */
  readonly trouble: Promise<never>;
  private readonly running: OperatorProcess[] = [];
  /** Aborts when no operator is to be started any more. */
  private readonly stopping = new AbortController();
  private readonly starting = new Set<Promise<OperatorProcess>>();
  /** Processes for the next version of each of them. */
  private readonly prewarmed: (GuardedProcess | undefined)[] = [];
  /** What each of them runs; undefined: nothing. */
  private readonly versions: (string | undefined)[] = [];
  private readonly kubeconfigs = new Map<string, string>();
  private fail: (error: unknown) => void = () => undefined;

  constructor(private readonly options: DevOperatorsOptions) {
    this.trouble = new Promise<never>((_, reject) => (this.fail = reject));
    this.trouble.catch(() => undefined);
    const { args, cluster } = options;
    // It has no Lease of its own: when that of this process is lost, somebody else may write soon.
    if (args.inspect === undefined) return;
    cluster.failed.catch((error: unknown) => {
      this.stopping.abort(error);
      return this.running[0]?.kill();
    });
  }

  /** Those that run, in the platform's order. */
  get processes(): readonly OperatorProcess[] {
    return this.running;
  }

  /** Whether each of them runs. */
  get isComplete(): boolean {
    return this.running.every((_, i) => this.versions[i] !== undefined);
  }

  /** Starts all of them. The first one has the port and the log file that the user named. */
  async start(platform: LocalPlatform, programs: readonly OperatorProgram[]): Promise<void> {
    const { cluster, view, signal } = this.options;
    for (const [i, { operator, serviceAccount, leaseName }] of platform.operators.entries()) {
      const kubeconfig = await cluster.kubeconfigFor(serviceAccount);
      this.kubeconfigs.set(operator.name, kubeconfig);
      const options = await this.processOptions(platform, i, programs);
      const handOver = options.args.includes('--leader-elect') ? cluster.handOver : undefined;
      const process = await this.startProcess({ ...options, standby: handOver !== undefined, signal });
      this.adopt(i, process, versionOf(platform, i, programs));
      if (handOver !== undefined && leaseName !== undefined) {
        await handOver(leaseName);
        process.takeOver();
      }
      const account = `${serviceAccount.namespace}/${serviceAccount.name}`;
      view.print(
        `The ${process.name} runs as a process of this machine under the ServiceAccount ${account} and its RBAC alone;\n` +
          `${cluster.deployments}. Log: ${process.logFile}`,
      );
      if (hasEffects(operator.kinds))
        view.print(`Files that its objects may name are read from ${this.folders(operator).config}`);
    }
  }

  /** Starts the processes that the next `replace` will take, for programs that are as good as these. */
  async prewarm(platform: LocalPlatform, programs: readonly OperatorProgram[]): Promise<void> {
    for (const i of platform.operators.keys()) {
      const options = await this.processOptions(platform, i, programs);
      if (this.stopping.signal.aborted || options.inspect !== undefined || this.prewarmed[i]?.running === true)
        continue;
      this.prewarmed[i] = OperatorProcess.prewarm(options);
    }
  }

  /** Whether an operator runs that has this program and these arguments. */
  isCurrent(platform: LocalPlatform, i: number, programs: readonly OperatorProgram[]): boolean {
    return this.versions[i] !== undefined && this.versions[i] === versionOf(platform, i, programs);
  }

  /**
   * Replaces an operator by another version of it. The new one is started first, and waits until it knows all objects. The old
   * one then ends its work and gives the Lease up; only after that the new one writes. Without a Lease, or where both would need
   * one port, the old one ends before the new one starts.
   *
   * @throws CliError when the new one does not start; the old one goes on if it has not ended by then, which the message says
   */
  async replace(platform: LocalPlatform, i: number, { programs, signal, saved }: ReplaceOptions): Promise<void> {
    const options = await this.processOptions(platform, i, programs);
    const isBeside =
      options.args.includes('--leader-elect') && options.port === undefined && options.inspect === undefined;
    if (!isBeside) await this.end(platform, i, signal);
    let next: OperatorProcess;
    // Where no other one runs meanwhile, it must not be cut off: what is saved next may not compile.
    const ends = isBeside ? AbortSignal.any([signal, saved]) : signal;
    try {
      // Else nobody would know of the prewarmed process any more.
      ends.throwIfAborted();
      const prewarmed = this.prewarmed[i];
      this.prewarmed[i] = undefined;
      next = await this.startProcess({ ...options, standby: isBeside, appends: true, prewarmed, signal: ends });
    } catch (error) {
      if (isBeside || ends.aborted) throw error;
      throw new CliError(`${messageOf(error)}\nNo ${options.name} runs until that is mended.`, { cause: error });
    }
    try {
      if (isBeside) await this.end(platform, i, signal);
    } catch (error) {
      // The old one is still there, or nobody will know of the new one.
      await next.stop();
      throw error;
    }
    next.takeOver();
    this.adopt(i, next, versionOf(platform, i, programs));
  }

  /** Ends an operator. What it does outside of Kubernetes is let finish, since its successor would do it again. */
  private async end(platform: LocalPlatform, i: number, signal: AbortSignal): Promise<void> {
    this.versions[i] = undefined;
    const { operator } = platform.operators[i] as LocalOperator;
    if (!hasEffects(operator.kinds)) return this.running[i]?.stop();
    this.options.view.print(
      `Waiting for the ${programName(platform.project, operator)} to end the steps that are under way.`,
    );
    return this.running[i]?.stop({ waits: signal });
  }

  /** Ends all of them, those too that are being started. */
  async stop(): Promise<void> {
    this.stopping.abort(new InterruptedError('SIGTERM'));
    await Promise.allSettled(this.starting);
    const ends = await Promise.allSettled([
      ...this.running.map((process) => process.stop()),
      ...this.prewarmed.map((process) => process?.kill()),
    ]);
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  private async startProcess(options: Parameters<typeof OperatorProcess.start>[0]): Promise<OperatorProcess> {
    const signal = AbortSignal.any([options.signal, this.stopping.signal]);
    const starting = OperatorProcess.start({ ...options, signal });
    this.starting.add(starting);
    try {
      return await starting;
    } finally {
      this.starting.delete(starting);
    }
  }

  private adopt(i: number, process: OperatorProcess, version: string): void {
    this.running[i] = process;
    this.versions[i] = version;
    process.unexpectedExit.catch((error: unknown) => this.fail(error));
  }

  private async processOptions(platform: LocalPlatform, i: number, programs: readonly OperatorProgram[]) {
    const { args, cluster } = this.options;
    const { operator, args: given } = platform.operators[i] as LocalOperator;
    const name = programName(platform.project, operator);
    // At a breakpoint it would lose its Lease. There is no other process that writes: the old one ends before the new one starts.
    const inspect = i === 0 ? args.inspect : undefined;
    const isElection = (arg: string): boolean => /^--(leader-elect$|lease-)/.test(arg);
    const own = given.filter((arg) => !isPodArgument(arg) && (inspect === undefined || !isElection(arg)));
    // Those that run in the cluster must not take the Lease between two versions.
    if (cluster.preferred !== undefined && own.includes('--leader-elect'))
      own.push(`--lease-preferred=${cluster.preferred}`);
    if (hasEffects(operator.kinds)) {
      // Directories that are mounted in its pod.
      const { config, keys } = this.folders(operator);
      for (const folder of [config, keys]) await mkdir(folder, { recursive: true, mode: 0o700 });
      own.push(`--key-dir=${keys}`, `--config-dir=${config}`);
    }
    const port = i === 0 && args.metricsPort !== 0 ? { port: args.metricsPort } : {};
    return {
      ...{ name, program: programs[i] ?? { file: '', packages: [] }, folder: cluster.dataDir, ...port },
      args: [...own, `--kubeconfig=${this.kubeconfigs.get(operator.name) ?? ''}`, `--log-level=${args.logLevel}`],
      logFile: (i === 0 ? args.logFile : undefined) ?? path.join(cluster.dataDir, `${name}.log`),
      inspect,
    };
  }

  private folders({ name }: ProjectOperator): { readonly config: string; readonly keys: string } {
    const folder = path.join(this.options.cluster.dataDir, name);
    return { config: path.join(folder, 'config'), keys: path.join(folder, 'keys') };
  }
}

function versionOf({ operators }: LocalPlatform, i: number, programs: readonly OperatorProgram[]): string {
  return JSON.stringify([programs[i]?.code, operators[i]?.args]);
}
