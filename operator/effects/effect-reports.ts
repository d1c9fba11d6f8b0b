import type { AnyKind, KindObject } from '../../constructs/kind/kind';
import type { EffectReports } from '../reconcile/context';
import { KindFunctionError } from '../../constructs/kube/function-error';
import type { OwnCondition } from '../status/conditions';
import type { AnyEffect, EffectInputs } from './effect-inputs';
import { ownConditions } from './effect-readiness';
import type { RunView } from './effect-runs';
import { hasSucceeded, type EffectRecord } from './effect-state';
import type { CachedEffectState } from './effect-state-cache';
import { PlanError, type StatusFields } from './plan-runner';

/** What {@link findReports} knows of an object. */
interface FindReportsOptions {
  readonly kind: AnyKind;
  readonly inputs: EffectInputs;
  readonly memory: CachedEffectState;
  /** The object's run, if any. */
  readonly run: RunView | undefined;
  /** See {@link EffectReports.isStatusLost}. */
  readonly isStatusLost: boolean;
}

/**
 * What the effects of the phase `apply` have reported for an object as it is. What an effect reported that does not
 * concern the object any more counts while none is pending: it is dropped when another effect takes its place.
 *
 * @param found - the object with the status that it has
 * @throws KindFunctionError; ApiError, TransportError when something that an effect reads cannot be read
 */
export async function findReports(known: FindReportsOptions, found: KindObject<AnyKind>): Promise<EffectReports> {
  const { kind, inputs, memory, run, isStatusLost } = known;
  const self = withReportedStatus(kind, found, memory);
  const selected = inputs.select(self, 'apply');
  const succeeded: AnyEffect[] = [];
  let status: StatusFields = {};
  let pending: string | undefined;
  // Until one before it has succeeded again, an effect's input may still be of the former report.
  let isInputOpen = false;
  for (const effect of selected) {
    const record = memory.state.records[effect.name];
    const input: string | undefined = isInputOpen
      ? await newHash(inputs, { ...self, status: { ...self.status, ...status } }, memory, effect)
      : await inputs.cachedHash(self, memory, effect);
    const current: EffectRecord | undefined = record !== undefined && record.input === input ? record : undefined;
    const isRunning = run?.state === 'running' && run.effect === effect.name;
    if (current !== undefined) status = { ...status, ...current.status, ...(isRunning && run.progress?.status) };
    if (current !== undefined && hasSucceeded(current)) succeeded.push(effect);
    else pending ??= effect.name;
    isInputOpen ||= current?.state !== 'succeeded';
  }
  const conditions = ownConditions(succeeded, memory.state.records);
  if (pending !== undefined) return { status, conditions, pending, isStatusLost };
  return completeReports(known, selected, conditions);
}

/** The reports when all effects that concern an object have succeeded for it as it is. */
export function completeReports(
  { kind, memory, isStatusLost }: Pick<FindReportsOptions, 'kind' | 'memory' | 'isStatusLost'>,
  selected: readonly AnyEffect[],
  conditions: readonly OwnCondition[],
): EffectReports {
  const all = kind.effects.filter(({ phase }) => phase === 'apply');
  const others = all.filter(({ name }) => selected.every((effect) => effect.name !== name));
  const status = { ...recordedStatus(memory, others), ...recordedStatus(memory, selected) };
  // The `when` of another effect may read what was lost.
  const pending = isStatusLost ? others[0]?.name : undefined;
  return { status, conditions, isStatusLost, ...(pending !== undefined && { pending }) };
}

/** The hash of an effect's input; undefined if it cannot be built before the effects before it have succeeded. */
async function newHash(
  inputs: EffectInputs,
  self: KindObject<AnyKind>,
  memory: CachedEffectState,
  effect: AnyEffect,
): Promise<string | undefined> {
  try {
    return (await inputs.build(self, memory, effect)).input;
  } catch (thrown) {
    if (thrown instanceof KindFunctionError || thrown instanceof PlanError) return undefined;
    throw thrown;
  }
}

/** An object with what its effects have reported as its status, which may be lost, or not be written yet. */
export function withReportedStatus(
  kind: AnyKind,
  self: KindObject<AnyKind>,
  memory: CachedEffectState,
): KindObject<AnyKind> {
  const status = reportedStatus(kind, memory, kind.effects);
  if (Object.keys(status).length === 0) return self;
  return { ...self, status: { ...self.status, ...status } };
}

/**
 * The status fields that runs reported, also in earlier processes, and for earlier inputs; with the number of attempts
 * if the kind's status has a field `attempts`.
 */
export function reportedStatus(
  kind: AnyKind,
  memory: CachedEffectState,
  effects: readonly Pick<AnyEffect, 'name'>[],
): StatusFields {
  const records = effects.flatMap(({ name }) => memory.state.records[name] ?? []);
  const status: StatusFields = { ...recordedStatus(memory, effects), ...memory.status };
  const fields = kind.schema.status.properties ?? {};
  if (!Object.hasOwn(fields, 'attempts') || records.length === 0) return status;
  return { ...status, attempts: Math.max(...records.map(({ attempts }) => attempts)) };
}

/** The status fields in the records of effects. */
function recordedStatus({ state }: CachedEffectState, effects: readonly Pick<AnyEffect, 'name'>[]): StatusFields {
  return Object.fromEntries(effects.flatMap(({ name }) => Object.entries(state.records[name]?.status ?? {})));
}
