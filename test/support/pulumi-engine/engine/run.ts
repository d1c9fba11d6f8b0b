import { setMaxListeners } from 'node:events';
import type { HookRegistry } from './hooks';
import type { Provider, ProviderRegistry, ProviderRequest } from './provider';
import { InterruptedError, StoppedError, type Operation, type Recorder } from './recorder';
import { nameOf, parseReference, providedPackage, typeOf, type StackId } from './registration';
import type { SnapshotManager, ResourceState } from './state';

/** What the parts of one run share. */
export interface Run {
  readonly home: StackId;
  /** Configuration by `namespace:key`. */
  readonly config: ReadonlyMap<string, { readonly value: string; readonly secret: boolean }>;
  readonly preview: boolean;
  readonly ledger: SnapshotManager;
  readonly recorder: Recorder;
  readonly gate: OperationGate;
  readonly providers: ProviderRegistry;
  readonly hooks: HookRegistry;
}

/** The part of a request that is the same for all. */
export function requestFor(run: Run, urn: string): ProviderRequest {
  return {
    urn,
    type: typeOf(urn),
    name: nameOf(urn),
    signal: run.gate.signal,
    log: (severity, message) => run.recorder.addLog(severity, message, urn),
    spawned: (process) => void run.recorder.processes.push(process),
  };
}

/** Does an operation, or in a preview only writes it down. `plan` says what it would give. */
export async function perform<T>(
  run: Run,
  operation: Omit<Operation, 'type' | 'name'>,
  work: () => Promise<T>,
  plan: () => Promise<T>,
): Promise<T> {
  const named = { type: typeOf(operation.urn), name: nameOf(operation.urn), ...operation };
  const result = run.preview ? await plan() : await run.gate.run(named, work);
  run.recorder.operations.push(named);
  return result;
}

/**
 * The provider of a resource of the state, opened from what the state knows of it where this run did not register it.
 *
 * @throws Error when the state has no such provider
 */
export async function providerOfState(run: Run, resource: ResourceState): Promise<Provider | undefined> {
  const reference = resource.provider ?? '';
  if (!run.providers.has(reference)) {
    const { urn, id } = parseReference(reference);
    const all = [...run.ledger.leftovers, ...run.ledger.toDelete];
    const state = all.find((candidate) => candidate.urn === urn && candidate.id === id) ?? run.ledger.newState(urn);
    if (state === undefined) throw new Error(`the state has no provider ${reference}`);
    run.providers.add(urn, id, providedPackage(state.type)!, state.inputs);
  }
  return run.providers.get(reference);
}

/** What is about to be done. */
export type AnnouncedOperation = Pick<Operation, 'op' | 'urn' | 'type' | 'name'>;

/** How a run goes, and how it is disturbed. */
export interface RunOptions {
  /** How many operations run at a time. @default 16 */
  readonly parallel?: number;
  /**
   * Kills the run at its n-th operation, counted from 1: `before` it is begun, or `after` it was done and before the state knows of it.
   * What else is under way is cut off too.
   */
  readonly interrupt?: { readonly at: number; readonly when: 'before' | 'after' };
  /** Makes the n-th operation, counted from 1, fail before it is begun; the rest then ends as after any failure. */
  readonly failAt?: number;
  /** Called before each operation; what it throws fails the operation. */
  readonly onOperation?: (operation: AnnouncedOperation, index: number) => void | Promise<void>;
  /** Kills the run when it aborts, in the middle of whatever is under way. */
  readonly signal?: AbortSignal;
}

/**
 * Every operation goes through here: so many at a time, counted, none after a failure or a kill.
 *
 * Guarantees: after {@link stop} no operation begins, and those that are under way may end; after a kill nothing that ends is reported as
 * done.
 */
export class OperationGate {
  private readonly abort = new AbortController();
  private readonly waiting: (() => void)[] = [];
  private free: number;
  private count = 0;
  private running = 0;
  private stopped = false;
  private idle: (() => void)[] = [];
  readonly underWay = new Map<number, AnnouncedOperation>();

  constructor(private readonly options: RunOptions) {
    this.free = options.parallel ?? 16;
    // Every operation under way listens.
    setMaxListeners(0, this.abort.signal);
    const outside = options.signal;
    if (outside?.aborted === true) this.kill();
    outside?.addEventListener('abort', () => this.kill(), { once: true });
  }

  /** Aborts when the run is killed. */
  get signal(): AbortSignal {
    return this.abort.signal;
  }

  get killed(): boolean {
    return this.abort.signal.aborted;
  }

  /** How many operations were begun. */
  get operations(): number {
    return this.count;
  }

  /** Begins nothing more. */
  stop(): void {
    this.stopped = true;
    for (const wake of this.waiting.splice(0)) wake();
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    if (this.running > 0) await new Promise<void>((resolve) => this.idle.push(resolve));
  }

  /** @throws StoppedError, InterruptedError, and whatever `work` throws */
  async run<T>(operation: AnnouncedOperation, work: () => Promise<T>): Promise<T> {
    await this.enter();
    this.running += 1;
    const index = (this.count += 1);
    this.underWay.set(index, operation);
    try {
      await this.disturb(operation, index);
      const result = await work();
      if (this.options.interrupt?.at === index && this.options.interrupt.when === 'after') this.kill();
      this.assertAlive();
      this.underWay.delete(index);
      return result;
    } catch (error) {
      this.assertAlive();
      this.underWay.delete(index);
      throw error;
    } finally {
      this.leave();
    }
  }

  private async enter(): Promise<void> {
    while (this.free === 0 && !this.stopped) await new Promise<void>((resolve) => this.waiting.push(resolve));
    this.assertAlive();
    if (this.stopped) throw new StoppedError('the run goes no further since something failed');
    this.free -= 1;
  }

  private leave(): void {
    this.free += 1;
    this.running -= 1;
    this.waiting.shift()?.();
    if (this.running === 0) for (const wake of this.idle.splice(0)) wake();
  }

  private async disturb(operation: AnnouncedOperation, index: number): Promise<void> {
    const { interrupt, failAt, onOperation } = this.options;
    if (interrupt?.at === index && interrupt.when === 'before') {
      // Nothing of it was begun: a killed engine that had not called its provider.
      this.underWay.delete(index);
      this.kill();
    }
    this.assertAlive();
    await onOperation?.(operation, index);
    if (failAt === index)
      throw new Error(`operation ${index}, ${operation.op} of ${operation.urn}, fails as the test asked`);
  }

  private assertAlive(): void {
    if (this.killed) throw new InterruptedError('the run was killed');
  }

  private kill(): void {
    this.abort.abort(new InterruptedError('the run was killed'));
    this.stop();
  }
}
