import { storesState } from '../../constructs/kind/effects';
import type { AnyKind, KindObject } from '../../constructs/kind/kind';
import { TimeLimitError } from '../process/time-limit';
import type { EffectReports, PendingEffect } from '../reconcile/context';
import { KindFunctionError } from '../../constructs/kube/function-error';
import type { AnyEffect, EffectInputs } from './effect-inputs';
import { ownConditions } from './effect-readiness';
import type { RunView } from './effect-runs';
import { hasEverSucceeded, hasSucceeded, type EffectRecord, type EffectState } from './effect-state';
import type { CachedEffectState } from './effect-state-cache';
import { PlanError, type StatusFields } from './plan-runner';

/** Options of {@link presentReports}. */
interface PresentReportsOptions {
  readonly kind: AnyKind;
  readonly inputs: EffectInputs;
  readonly memory: CachedEffectState;
  /** The object's run, if any. */
  readonly run: RunView | undefined;
  /** What `observe` says of the children that exist. */
  readonly observed: StatusFields;
}

/**
 * What the effects of the phase `apply` have reported for an object as it is. What an effect has reported stays when its
 * `when` no longer selects it, until another effect takes its place.
 *
 * @throws KindFunctionError; ApiError, TransportError when something that an effect reads cannot be read
 */
export async function presentReports(
  { kind, inputs, memory, run, observed }: PresentReportsOptions,
  object: KindObject<AnyKind>,
): Promise<EffectReports> {
  const self = withLastReports(kind, object, memory);
  const { records } = memory.state;
  const selected = inputs.select(self, 'apply');
  const isSelected = (name: string): boolean => selected.some((effect) => effect.name === name);
  const unselected = kind.effects.filter(({ name, phase }) => phase === 'apply' && !isSelected(name));
  const earlier = recordedStatus(memory, unselected);
  const succeeded: AnyEffect[] = [];
  const pending: PendingEffect[] = [];
  let status: StatusFields = {};
  // Whether an effect before is about to report something, which may be part of the input.
  let isInputOpen = false;
  for (const effect of selected) {
    const record = records[effect.name];
    const known = pending.length === 0 ? { ...self.status, ...status } : { ...earlier, ...observed, ...status };
    const input: string | undefined = isInputOpen
      ? await hashFrom(inputs, { ...object, status: known } as KindObject<AnyKind>, effect)
      : await inputs.lastHash(self, memory, effect);
    const current: EffectRecord | undefined = record !== undefined && record.input === input ? record : undefined;
    const isRunning = run?.state === 'running' && run.effect === effect.name;
    const reported = current === undefined ? {} : { ...current.status, ...(isRunning && run.progress?.status) };
    if (current !== undefined && hasSucceeded(current)) succeeded.push(effect);
    else pending.push(pendingEffect(kind, memory, effect, reported));
    status = { ...status, ...reported };
    isInputOpen ||= current?.state !== 'succeeded';
  }
  // What a pending effect may report again is not known.
  const isOpen = (field: string): boolean =>
    pending.some(({ fields }) => fields === undefined || fields.includes(field));
  const kept = Object.fromEntries(Object.entries(earlier).filter(([field]) => !isOpen(field)));
  const conditions = ownConditions(succeeded, records);
  return { status: { ...kept, ...status }, conditions, pending };
}

/** @param reported - what the effect's runs have reported for its present input */
function pendingEffect(
  kind: AnyKind,
  { state: { records } }: CachedEffectState,
  { name, reports, condition }: AnyEffect,
  reported: StatusFields,
): PendingEffect {
  const record = records[name];
  const hasEver = record !== undefined && hasEverSucceeded(record);
  const isNew = record === undefined && isComplete(kind, records);
  const fields = reports?.filter((field) => !Object.hasOwn(reported, field)) ?? (isNew ? [] : undefined);
  return { name, fields, condition: isNew ? undefined : condition, hasSucceeded: hasEver };
}

/**
 * Whether the records of an object were neither lost nor written under other names: an effect without one has never
 * begun, and nothing that exists follows from its report.
 */
function isComplete(kind: AnyKind, records: EffectState['records']): boolean {
  const isDeclared = (name: string): boolean => kind.effects.some((effect) => effect.name === name);
  const entries = Object.entries(records);
  return (
    storesState(kind) &&
    entries.every(([name]) => isDeclared(name)) &&
    entries.some(([, record]) => hasEverSucceeded(record))
  );
}

/** The hash of an effect's input with the reports so far; undefined if it cannot be built from them. */
async function hashFrom(
  inputs: EffectInputs,
  self: KindObject<AnyKind>,
  effect: AnyEffect,
): Promise<string | undefined> {
  try {
    return (await inputs.buildUncached(self, effect)).input;
  } catch (thrown) {
    const isStopped = thrown instanceof KindFunctionError && thrown.cause instanceof TimeLimitError;
    if (!isStopped && (thrown instanceof KindFunctionError || thrown instanceof PlanError)) return undefined;
    throw thrown;
  }
}

/** An object with what its effects reported last as its status, which may be lost, or not be written yet. */
export function withLastReports(
  kind: AnyKind,
  self: KindObject<AnyKind>,
  memory: CachedEffectState,
): KindObject<AnyKind> {
  const status = lastReports(kind, memory, kind.effects);
  if (Object.keys(status).length === 0) return self;
  return { ...self, status: { ...self.status, ...status } };
}

/**
 * The status fields that runs reported last, also in earlier processes and for earlier inputs; with the number of
 * attempts if the kind's status has a field `attempts`.
 */
export function lastReports(
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
