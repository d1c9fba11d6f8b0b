import type { Effect, EffectPhase, EffectRun } from '../../constructs/kind/effects';
import type { CommonStatus } from '../../constructs/kind/kind';
import type { Condition, KubeObject } from '../../constructs/kube/kube-object';
import type { OwnCondition, Readiness } from '../status/conditions';
import type { EffectDecision, EffectRecord } from './effect-state';

/** The result of checking one effect: it has a readiness unless the effect is satisfied. */
export interface EffectEvaluation {
  readonly readiness?: Readiness;
  readonly requeueAfterMs?: number;
  /** A run was started. */
  readonly begun?: boolean;
  /** The run repeats a probe whose input has not changed. */
  readonly repeated?: boolean;
}

/** What an effect that is not to run now means for its object. */
export function evaluationOf(
  next: Exclude<EffectDecision, { readonly what: 'run' }>,
  { name, maxAttempts, phase, everySeconds }: EffectRun,
  record: EffectRecord | undefined,
): EffectEvaluation {
  const {
    reason = progressReason(phase),
    message = 'The process that ran it was killed.',
    attempts = 0,
    hopeless: isTerminal = false,
  } = record ?? {};
  switch (next.what) {
    case 'satisfied':
      return next.inMs === undefined ? {} : { requeueAfterMs: next.inMs };
    case 'later': {
      // Without the remaining time, which would change the text at every reconcile.
      const text = `${message} (${name}, attempt ${attempts} of ${maxAttempts} failed; the next follows by itself.)`;
      return { readiness: { state: 'failing', reason, message: text }, requeueAfterMs: next.inMs };
    }
    case 'exhausted': {
      if (everySeconds !== undefined && !isTerminal) {
        return {
          readiness: { state: 'failing', reason, message },
          ...(next.inMs === undefined ? {} : { requeueAfterMs: next.inMs }),
        };
      }
      const why = isTerminal ? 'another attempt would end the same' : `${attempts} of ${maxAttempts} attempts failed`;
      const help =
        'It is tried again when the spec, a Secret or file it names, or the annotation kindred.dev/reconcile-at changes.';
      const out =
        phase === 'remove' ? ' The annotation kindred.dev/force-remove: "true" lets the object go as it is.' : '';
      return { readiness: { state: 'stalled', reason, message: `${message} (${name}: ${why}.) ${help}${out}` } };
    }
  }
}

/** Why an object is not ready while an effect of a phase runs. */
export function progressReason(phase: EffectPhase): string {
  return phase === 'apply' ? 'Provisioning' : 'Removing';
}

/**
 * The readiness that the status of an object shows, if it is for the current generation. After a restart it
 * is kept until the first run of a repeated probe has ended.
 */
export function previousReadiness({ metadata, status }: KubeObject): { readonly readiness?: Readiness } | undefined {
  const { observedGeneration, conditions = [] } = (status ?? {}) as CommonStatus;
  const find = (type: string): Condition | undefined => conditions.find((condition) => condition.type === type);
  const ready = find('Ready');
  if (observedGeneration !== metadata.generation || ready === undefined || ready.status === 'Unknown') return undefined;
  if (ready.status === 'True') return {};
  const { reason, message } = ready;
  return { readiness: { state: find('Stalled') === undefined ? 'failing' : 'stalled', reason, message } };
}

/** The kind's own conditions: effects before the `open` one are done; those after it wait for it. */
export function ownConditions(
  effects: readonly Pick<Effect<never>, 'name' | 'condition'>[],
  records: Readonly<Record<string, EffectRecord>>,
  open?: { readonly name: string | undefined; readonly readiness: Readiness },
): readonly OwnCondition[] {
  const at = effects.findIndex(({ name }) => name === open?.name);
  return effects.flatMap(({ name, condition: type }, i): readonly OwnCondition[] => {
    if (type === undefined) return [];
    if (open === undefined || i < at) {
      return [{ type, status: 'True', reason: 'Succeeded', message: records[name]?.message ?? 'Done.' }];
    }
    const { reason, message } = open.readiness;
    return [{ type, status: 'False', reason, message }];
  });
}
