import { createHash } from 'node:crypto';
import type { AnyKind } from '../../constructs/kind/kind';
import { ImpureError } from '../../constructs/kind/purity';
import { withoutRecord } from '../../constructs/kind/render';
import { describeObject } from '../../constructs/kind/validate';
import type { RenderError } from '../../constructs/kube/errors';
import { KindFunctionError, takeRunningFunction } from '../../constructs/kube/function-error';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { runWithTimeLimit, TimeLimitError } from '../process/time-limit';

/**
 * How long a function of a kind may run, in milliseconds. While it runs, the Lease is not renewed: it was up to two
 * seconds ago, and must be within ten. Rendering takes a thousandth of that.
 */
export const FUNCTION_LIMIT_MS = 5_000;

/** The same for a kind after one of its functions was stopped: others of its objects probably do no better. */
const NEXT_LIMIT_MS = 1_000;

/** How long the kind's other objects wait after that, in milliseconds: the Lease is renewed and probes are answered. */
const PAUSE_MS = 1_000;

/** After this many milliseconds, `runAll` calls for no further object: the event loop goes on, and the limit is that of one call. */
const BATCH_MS = 20;

const NEXT_TRY =
  'It is called again when the spec, a label or an annotation of the object changes, or another version of the operator starts.';

/** The calls of a kind's functions for one object, as long as what they are given stays the same, or for a shared key. */
export class FunctionCalls {
  /** Why none of them is called any more: one was stopped, or they depend on more than the input. */
  stopped?: RenderError;
  /** What each part was given, besides the input, when it last returned or threw. */
  private readonly ended = new Map<string, string>();

  constructor(
    private readonly limits: FunctionLimits,
    /** For errors: `HelloApp default/web`. */
    readonly name: string,
    /** A digest of what the functions are given: of the object's generation, labels and annotations, and with effects, its status. */
    readonly input: string,
  ) {}

  /**
   * Calls functions. It has no limit if they have returned for the same before.
   *
   * @param part - what is called
   * @param given - what it is given besides the input. @default nothing
   * @throws KindFunctionError when it was stopped, now or before; whatever `call` throws
   */
  run<T>(part: string, call: () => T, given = ''): T {
    if (this.stopped !== undefined) throw this.stopped;
    if (this.hasEnded(part, given)) return call();
    const [outcome] = this.limits.runAll(part, [this], call, given);
    return valueOf(outcome as Outcome<T>);
  }

  /**
   * Compares two renderings, unless that was done for the same before.
   *
   * @param part - what is compared
   * @param compare - renders again what has returned once, and so needs no limit
   * @param given - what is rendered besides the input. @default nothing
   * @throws ImpureError when they differ: nothing is called any more then
   */
  compareOnce(part: string, compare: () => void, given = ''): void {
    if (this.hasEnded(part, given)) return;
    try {
      compare();
    } catch (error) {
      if (error instanceof ImpureError) this.stopped = error;
      throw error;
    }
    this.recordEnd(part, given);
  }

  /** Whether a part has returned, or thrown. @param given - what it was given besides the input. @default anything */
  hasEnded(part: string, given?: string): boolean {
    const last = this.ended.get(part);
    return given === undefined ? last !== undefined : last === short(given);
  }

  /** Records that a part has returned, or thrown. @param given - what it was given besides the input. @default nothing */
  recordEnd(part: string, given = ''): void {
    this.ended.set(part, short(given));
  }
}

/** What a function returned, or threw. */
export type Outcome<T> = { readonly value: T } | { readonly thrown: unknown };

/** @throws what the function threw */
export function valueOf<T>(outcome: Outcome<T>): T {
  if ('thrown' in outcome) throw outcome.thrown;
  return outcome.value;
}

/** Options of {@link FunctionLimits}. */
interface FunctionLimitsOptions {
  /** Milliseconds. @default FUNCTION_LIMIT_MS */
  readonly limitMs?: number;
}

/**
 * Calls the functions of one kind, each for a limited time: one that never returns would stop the whole operator. Then
 * the object that it was called for waits with an error, and all others go on.
 *
 * Guarantees: a function is called with a time limit unless it has returned for the same input before, since the limit
 * costs more than rendering; a pure function then returns again. Once one was stopped, none is called for that object
 * before its spec, labels or annotations change.
 *
 * Caveats: a function that is not pure may run forever with an input with which it has returned before. The kubelet then
 * restarts the operator, whose first calls have a limit.
 */
export class FunctionLimits {
  private readonly calls = new Map<string, FunctionCalls>();
  private limitMs: number;
  private pause: Promise<void> | undefined;

  constructor(
    private readonly kind: AnyKind,
    { limitMs = FUNCTION_LIMIT_MS }: FunctionLimitsOptions = {},
  ) {
    this.limitMs = limitMs;
  }

  /** The calls for an object as it is now. */
  of(object: KubeObject): FunctionCalls {
    const { generation, labels, annotations } = withoutRecord(object).metadata;
    const status = this.kind.effects.length > 0 ? object.status : undefined;
    const input = short(JSON.stringify([generation, labels, annotations, status]));
    const name = describeObject(object);
    return this.callsOf(object.metadata.uid ?? name, name, input);
  }

  /** The calls for the key of shared children. */
  ofShared(id: string): FunctionCalls {
    return this.callsOf(id, `${this.kind.kind} ${id}`, '');
  }

  /** Forgets an object, or a key, that was deleted. */
  forget(id: string): void {
    this.calls.delete(id);
  }

  /** How many objects and keys are known. */
  get size(): number {
    return this.calls.size;
  }

  /** What to wait for before an object is reconciled; undefined: nothing. */
  async turn(): Promise<void> {
    // Another function may be stopped as soon as the pause has ended.
    while (this.pause !== undefined) await this.pause;
  }

  /**
   * Calls functions for several objects with a single limit, which costs more than such a call: for the first one, and
   * for the others as long as that takes a few milliseconds.
   *
   * @param given - what they are given besides the input. @default nothing
   * @returns what came of each that was called, in their order
   */
  runAll<T>(
    part: string,
    all: readonly FunctionCalls[],
    call: (index: number) => T,
    given = '',
  ): readonly Outcome<T>[] {
    const outcomes: Outcome<T>[] = [];
    const callEach = (): void => {
      const began = performance.now();
      while (outcomes.length < all.length) {
        outcomes.push(outcomeOf(call, outcomes.length));
        if (performance.now() - began > BATCH_MS) return;
      }
    };
    try {
      runWithTimeLimit(callEach, this.limitMs);
    } catch (error) {
      if (!(error instanceof TimeLimitError)) throw error;
      const calls = all[outcomes.length];
      if (calls !== undefined) outcomes.push({ thrown: this.stop(calls, error) });
    }
    for (const [i] of outcomes.entries()) all[i]?.recordEnd(part, given);
    return outcomes;
  }

  /** Has none of an object's functions called any more. @returns why */
  private stop(calls: FunctionCalls, error: TimeLimitError): KindFunctionError {
    error.message += `. ${NEXT_TRY}`;
    const why = new KindFunctionError(calls.name, takeRunningFunction() ?? this.kind.kind, error);
    calls.stopped = why;
    this.limitMs = Math.min(this.limitMs, NEXT_LIMIT_MS);
    this.pause = new Promise((resolve) => setTimeout(resolve, PAUSE_MS)).then(() => (this.pause = undefined));
    return why;
  }

  private callsOf(id: string, name: string, input: string): FunctionCalls {
    const known = this.calls.get(id);
    if (known?.input === input) return known;
    const calls = new FunctionCalls(this, name, input);
    this.calls.set(id, calls);
    return calls;
  }
}

function outcomeOf<T>(call: (index: number) => T, index: number): Outcome<T> {
  try {
    return { value: call(index) };
  } catch (thrown) {
    return { thrown };
  }
}

/** An input in few bytes: there is one for each object. */
function short(text: string): string {
  return text.length <= 64 ? text : createHash('sha256').update(text).digest('base64');
}
