import {
  buildEffectRun,
  selectEffects,
  type Effect,
  type EffectPhase,
  type EffectRun,
} from '../../constructs/kind/effects';
import type { AnyKind, KindObject } from '../../constructs/kind/kind';
import { withoutRecord } from '../../constructs/kind/render';
import { describeObject } from '../../constructs/kind/validate';
import { callKindFunction, KindFunctionError } from '../../constructs/kube/function-error';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { runWithTimeLimit } from '../process/time-limit';
import { FUNCTION_LIMIT_MS } from '../reconcile/function-limits';
import type { EffectInputReader } from './effect-input-reader';
import { inputHash } from './effect-state';
import type { CachedEffectState } from './effect-state-cache';
import { PlanError } from './plan-runner';

export type AnyEffect = Effect<KindObject<AnyKind>>;

/** An effect's run, with what its input was made of. */
export interface BuiltRun {
  readonly run: EffectRun;
  /** The hash of its input. */
  readonly input: string;
  /** A hash of everything that was read. */
  readonly seen: string;
  readonly files: readonly string[];
}

/** Calls the functions that a kind's effects declare, each within the time limit. */
export class EffectInputs {
  constructor(
    private readonly kind: AnyKind,
    private readonly reads: EffectInputReader,
  ) {}

  /** The effects of a phase that concern an object. @throws KindFunctionError */
  select(self: KindObject<AnyKind>, phase: EffectPhase): readonly AnyEffect[] {
    return this.call(self, 'when', () => selectEffects<KindObject<AnyKind>>(this.kind.effects, self, phase));
  }

  /**
   * Builds the run of an effect, and remembers the hash of its input.
   *
   * @throws PlanError, or a KindFunctionError caused by one, when what it reads is missing, see {@link planErrorOf};
   * KindFunctionError; ApiError, TransportError
   */
  async build(self: KindObject<AnyKind>, memory: CachedEffectState, effect: AnyEffect): Promise<BuiltRun> {
    const hashes = hashesOf(self, memory);
    hashes.delete(effect.name);
    const built = await this.buildUncached(self, effect);
    hashes.set(effect.name, built.input);
    return built;
  }

  /** {@link build}, without remembering anything. */
  async buildUncached(self: KindObject<AnyKind>, effect: AnyEffect): Promise<BuiltRun> {
    // A removal must not depend on objects that may be deleted by now: the state has what it needs.
    const optional = effect.phase === 'remove';
    const files = this.call(self, `${effect.name}.files`, () => effect.files?.(self) ?? []);
    const reader = await this.reads.reader(this.kind.reads, self as never, files, { optional });
    const run = this.call(self, `${effect.name}.input`, () => buildEffectRun(effect, self, reader));
    return { run, input: inputHash(run), seen: reader.contentHash, files };
  }

  /**
   * The hash of an effect's input as it was last built for the object as it is, so that nothing is read again while a
   * run is in progress; undefined while something that it reads is missing.
   *
   * @throws as `build` does for other reasons
   */
  async lastHash(self: KindObject<AnyKind>, memory: CachedEffectState, effect: AnyEffect): Promise<string | undefined> {
    const known = hashesOf(self, memory).get(effect.name);
    if (known !== undefined) return known;
    try {
      return (await this.build(self, memory, effect)).input;
    } catch (thrown) {
      if (planErrorOf(thrown) === undefined) throw thrown;
      return undefined;
    }
  }

  /** @param name - `when`, or `up.input` for one effect's */
  private call<T>(self: KindObject<AnyKind>, name: string, call: () => T): T {
    // Kinds that have effects are few, and their reconciles rare: all calls have a limit.
    const limited = (): T => runWithTimeLimit(call, FUNCTION_LIMIT_MS);
    return callKindFunction(describeObject(self), `${this.kind.kind}.effects.${name}`, limited);
  }
}

/** The hashes that were built for an object as it is. */
function hashesOf(self: KindObject<AnyKind>, memory: CachedEffectState): Map<string, string> {
  const builtFor = versionOf(self);
  if (memory.inputs?.builtFor !== builtFor) memory.inputs = { builtFor, hashes: new Map() };
  return memory.inputs.hashes;
}

/** What the input of an effect may follow from, besides the status and what is read: another version has other inputs. */
export function versionOf(self: KindObject<AnyKind>): string {
  const { generation, labels, annotations } = withoutRecord(self as KubeObject).metadata;
  return JSON.stringify([generation, labels, annotations]);
}

/** The PlanError that was thrown, also by a function of the kind: something that an effect reads is missing. */
export function planErrorOf(thrown: unknown): PlanError | undefined {
  const error = thrown instanceof KindFunctionError ? thrown.cause : thrown;
  return error instanceof PlanError ? error : undefined;
}
