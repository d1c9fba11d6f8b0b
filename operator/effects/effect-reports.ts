import type { AnyKind, KindObject } from '../../constructs/kind/kind';
import type { EffectReports } from '../reconcile/context';
import type { AnyEffect, EffectInputs } from './effect-inputs';
import type { RunView } from './effect-runs';
import { hasSucceeded } from './effect-state';
import type { CachedEffectState } from './effect-state-cache';
import type { StatusFields } from './plan-runner';

/** Options of {@link findReports}. */
interface FindReportsOptions {
  readonly kind: AnyKind;
  readonly inputs: EffectInputs;
  readonly memory: CachedEffectState;
  /** The object's run, if any. */
  readonly run: RunView | undefined;
}

/**
 * What the effects of the phase `apply` have reported for an object as it is.
 *
 * @param found - the object with the status that it has
 * @throws KindFunctionError; ApiError, TransportError when something that an effect reads cannot be read
 */
export async function findReports(
  { kind, inputs, memory, run }: FindReportsOptions,
  found: KindObject<AnyKind>,
): Promise<EffectReports> {
  const self = withReportedStatus(kind, found, memory);
  const effects = inputs.select(self, 'apply');
  let status: StatusFields = {};
  let pending: string | undefined;
  for (const effect of effects) {
    const record = memory.state.records[effect.name];
    const isCurrent = record !== undefined && record.input === (await inputs.hashOf(self, memory, effect));
    const isRunning = run?.state === 'running' && run.effect === effect.name;
    if (isCurrent) status = { ...status, ...record.status, ...(isRunning && run.progress?.status) };
    if (!isCurrent || !hasSucceeded(record)) pending ??= effect.name;
  }
  return reportsOf(status, pending ?? unknownEffect(kind, found, effects));
}

/** What effects have reported that all have succeeded for an object as it is. @param selected - those that concern it */
export function completeReports(
  kind: AnyKind,
  found: KindObject<AnyKind>,
  memory: CachedEffectState,
  selected: readonly AnyEffect[],
): EffectReports {
  return reportsOf(recordedStatus(memory, selected), unknownEffect(kind, found, selected));
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

/**
 * An effect that may concern an object although its `when` says no: the status that it may read was lost, and is
 * written at the end of the present reconcile.
 */
function unknownEffect(
  { effects }: AnyKind,
  { status }: KindObject<AnyKind>,
  selected: readonly AnyEffect[],
): string | undefined {
  if (status?.observedGeneration !== undefined) return undefined;
  const isSelected = (name: string): boolean => selected.some((effect) => effect.name === name);
  return effects.find(({ name, phase }) => phase === 'apply' && !isSelected(name))?.name;
}

function reportsOf(status: StatusFields, pending: string | undefined): EffectReports {
  return pending === undefined ? { status } : { status, pending };
}
