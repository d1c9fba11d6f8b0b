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

const NEXT_TRY =
  'It is called again when the spec, a label or an annotation of the object changes, or another version of the operator starts.';

/** What a function is called for. */
interface Subject {
  /** The UID of an object, or the id of a shared key. */
  readonly id: string;
  /** For errors: `HelloApp default/web`. */
  readonly name: string;
  /** What the functions are given. */
  readonly input: string;
}

/** What is known of the functions that were called for a subject. */
interface Calls {
  readonly input: string;
  /** The input with which each part has ended, whatever came of it. */
  readonly ended: Map<string, string>;
  /** Why none of them is called any more: one was stopped, or they depend on more than the input. */
  stopped?: RenderError;
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
 * costs about as much as rendering; a pure function then returns again. Once one was stopped, none is called for that
 * object before its spec, labels or annotations change.
 *
 * Caveats: a function that is not pure may run forever with an input with which it has returned before. The kubelet then
 * restarts the operator, whose first calls have a limit.
 */
export class FunctionLimits {
  private readonly calls = new Map<string, Calls>();
  private limitMs: number;
  private pause: Promise<void> | undefined;

  constructor(
    private readonly kind: AnyKind,
    { limitMs = FUNCTION_LIMIT_MS }: FunctionLimitsOptions = {},
  ) {
    this.limitMs = limitMs;
  }

  /**
   * Calls functions for an object.
   *
   * @param part - what is called
   * @param given - what it is given besides the object's spec, labels and annotations. @default nothing
   * @throws KindFunctionError when it was stopped, now or before; whatever `call` throws
   */
  run<T>(object: KubeObject, part: string, call: () => T, given = ''): T {
    const name = describeObject(object);
    return this.runFor({ id: object.metadata.uid ?? name, name, input: this.inputOf(object) }, part, call, given);
  }

  /** Whether a part has returned, or thrown, for an object as it is now. */
  hasEnded(object: KubeObject, part: string): boolean {
    const known = this.calls.get(object.metadata.uid ?? describeObject(object));
    return known?.input === this.inputOf(object) && known.ended.has(part);
  }

  /** What an object's children are rendered from, in few bytes. */
  inputOf(object: KubeObject): string {
    const { generation, labels, annotations } = withoutRecord(object).metadata;
    const status = this.kind.effects.length > 0 ? object.status : undefined;
    return short(JSON.stringify([generation, labels, annotations, status]));
  }

  /**
   * As {@link run}, without a time limit, which costs about as much as rendering: for what returns if the functions
   * before it have, or is a line of code.
   */
  runUnlimited<T>(object: KubeObject, part: string, call: () => T): T {
    const name = describeObject(object);
    const subject = { id: object.metadata.uid ?? name, name, input: this.inputOf(object) };
    return this.runFor(subject, part, call, '', false);
  }

  /** Calls functions for the key of shared children. */
  runShared<T>(id: string, call: () => T): T {
    return this.runFor({ id, name: `${this.kind.kind} ${id}`, input: '' }, 'shared', call, '');
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

  private runFor<T>({ id, name, input }: Subject, part: string, call: () => T, given: string, isLimited = true): T {
    let known = this.calls.get(id);
    if (known?.input !== input) this.calls.set(id, (known = { input, ended: new Map() }));
    if (known.stopped !== undefined) throw known.stopped;
    const full = short(given);
    if (known.ended.get(part) === full) return call();
    try {
      const result = isLimited ? runWithTimeLimit(call, this.limitMs) : call();
      known.ended.set(part, full);
      return result;
    } catch (error) {
      if (!(error instanceof TimeLimitError)) {
        known.ended.set(part, full);
        if (error instanceof ImpureError) known.stopped = error;
        throw error;
      }
      error.message += `. ${NEXT_TRY}`;
      const stopped = new KindFunctionError(name, takeRunningFunction() ?? this.kind.kind, error);
      known.stopped = stopped;
      this.limitMs = Math.min(this.limitMs, NEXT_LIMIT_MS);
      this.pause = new Promise((resolve) => setTimeout(resolve, PAUSE_MS)).then(() => (this.pause = undefined));
      throw stopped;
    }
  }
}

/** An input in few bytes: there is one for each object. */
function short(text: string): string {
  return text.length <= 64 ? text : createHash('sha256').update(text).digest('base64');
}
