import { ImpureError } from '../../constructs/kind/purity';
import type { Reason } from '../../constructs/kind/kind';
import { PAUSED_ANNOTATION } from '../../constructs/kube/envelope';
import { InvalidObjectError, RenderError } from '../../constructs/kube/errors';
import { callKindFunction, KindFunctionError, statusMessage } from '../../constructs/kube/function-error';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { isPaused } from '../apply/ownership';
import { childKey, type ObjectRef } from '../client/api-client';
import type { OwnCondition, Readiness } from '../status/conditions';
import { applyChildren, type ApplyResult } from './apply-children';
import type { EffectsResult, ReconcileContext, ReconcileResult } from './context';
import { isKeptGone, recordCompletions } from './completed-children';
import { ensureFinalizer, finalize } from './finalize';
import { heldAndWritten, renderFromReports, type HeldChildren, type ReportedRendering } from './held-children';
import { observeChildren, observeExisting } from './observe-children';
import {
  ReconcileError,
  classify,
  combineProblems,
  earliest,
  withStatusBackoff,
  mostSevere,
  type BackedOff,
  type ChildProblems,
} from './problems';
import { prune, releaseSeededFields } from './prune';
import type { Rendered } from './render-object';
import { sharedId } from './shared-keys';
import { ownStatus, writeStatus } from './write-status';

/**
 * Reconciles one object: brings its children to what its spec says, and its status to what exists.
 * Level-triggered: it reads the present state only and may run at any time.
 *
 * Guarantees: nothing is written when nothing differs; children are pruned only after every apply succeeded,
 * except the writers of seeded fields that are no longer rendered; an object that is being deleted is only
 * cleaned up.
 *
 * @throws ApiError, TransportError when the cache was behind, the server is unreachable, or the status itself
 * cannot be written; NotLeaderError
 */
export async function reconcileObject(context: ReconcileContext, ref: ObjectRef): Promise<ReconcileResult> {
  const object = context.objects.get(ref)?.object;
  if (object === undefined) return { action: 'wait' };
  if (object.metadata.deletionTimestamp !== undefined) return finalize(context, object);
  if (isPaused(object)) {
    // A Job may be deleted while its owner is paused, and must not run again afterwards.
    const recorded = await recordCompletions(context, object);
    return reportStatus(context, recorded, pausedFindings(context, recorded));
  }

  let rendered: Rendered;
  try {
    rendered = context.renderer.render(object);
  } catch (error) {
    return reportStatus(context, object, renderErrorFindings(context, object, error));
  }
  try {
    return await applyRendered(context, object, rendered);
  } catch (error) {
    return reportError(context, object, error);
  }
}

async function applyRendered(context: ReconcileContext, found: KubeObject, first: Rendered): Promise<ReconcileResult> {
  // Reconciling a shared key enqueues the objects that name it.
  const states = first.shared.map(({ group, key }) =>
    context.shared.get(sharedId(group.name, found.metadata.namespace, key)),
  );
  if (states.includes(undefined)) return { action: 'wait' };
  const ensured = await ensureFinalizer(context, found);
  if ('held' in ensured)
    return reportStatus(context, found, missingFinalizerFindings(context, found, first, ensured.held));
  let effects: EffectsResult | undefined;
  let rendering: ReportedRendering = { rendered: first };
  try {
    if (context.effects !== undefined) {
      const known = observeExisting(context, ensured.object, first);
      effects = await context.effects.reconcile(ensured.object, known.first.self, 'apply');
      rendering = await renderFromReports(context, ensured.object, known, effects);
    }
  } catch (error) {
    const failed = await reportError(context, ensured.object, error);
    return { ...failed, requeueAfterMs: earliest(failed.requeueAfterMs, effects?.requeueAfterMs) };
  }
  const { rendered, held } = rendering;
  const object = await recordCompletions(context, ensured.object, held ? undefined : rendered.children);
  const missing = states.flatMap((state) => (state?.state === 'failed' ? (state.missingAccounts ?? []) : []));
  const { applied, open } = held
    ? await applyUnheld(context, object, rendered, held, missing)
    : await applyAndPrune(context, object, rendered, missing);
  const { worst, observed, requeueAfterMs: seenAfterMs } = observeChildren(context, rendered, object, held?.applicable);
  const failures = states.flatMap((state) => (state?.state === 'failed' ? [state.readiness] : []));
  const effectReadiness = held ? held.readiness : effects?.readiness;
  const problemsFound = [applied.readiness, applied.contests.readiness, open.readiness, effectReadiness];
  const wrong = mostSevere([...problemsFound.filter((one) => one !== undefined), ...failures]);
  const readiness = wrong ?? worst ?? defaultReadiness(context, rendered);
  if (open.readiness === undefined && held === undefined) recordSyncedEvent(context, rendered, applied);
  const known = effects === undefined ? {} : { ...ownStatus(context.kind, object), ...effects.status };
  const status = { observed: { ...known, ...observed }, ...(effects && { conditions: effects.conditions }) };
  const times = [applied, applied.contests, open, effects].map((one) => one?.requeueAfterMs);
  const next = await reportStatus(context, object, {
    readiness,
    ...status,
    retry: applied.retry,
    requeueAfterMs: earliest(...times, seenAfterMs),
  });
  return { ...next, awaited: applied.awaited };
}

/** What came of writing an object's children. */
interface ChildWrites {
  readonly applied: ApplyResult;
  /** The problems of deleting children. */
  readonly open: ChildProblems;
}

/** Applies the children of an object, and deletes those that it no longer renders. */
async function applyAndPrune(
  context: ReconcileContext,
  object: KubeObject,
  { children, calls: { input } }: Rendered,
  missing: readonly string[],
): Promise<ChildWrites> {
  const { uid = '' } = object.metadata;
  context.driftBackoff.setDesiredChildren(uid, () => children.map(({ type, manifest }) => childKey(type, manifest)));
  const withdrawn = await releaseSeededFields(context, object, children);
  const wanted = withdrawn.applicable.filter((child) => !isKeptGone(context, object, child));
  const applied = await applyChildren(context, object, wanted, { missing, input });
  const problems = [...withdrawn.problems];
  if (applied.readiness === undefined && problems.length === 0)
    problems.push(...(await prune(context, object, children)).problems);
  return { applied, open: combineProblems(problems) };
}

/** Applies the children of an object that do not follow from what is unknown of its status. */
async function applyUnheld(
  context: ReconcileContext,
  object: KubeObject,
  { children, calls: { input } }: Rendered,
  held: HeldChildren,
  missing: readonly string[],
): Promise<ChildWrites> {
  const { uid = '' } = object.metadata;
  context.driftBackoff.setDesiredChildren(uid, () => heldAndWritten(context, object, held));
  const wanted = new Set(held.applicable.filter((child) => !isKeptGone(context, object, child)));
  const { onlyCreated } = held;
  const applied = await applyChildren(context, object, children, { missing, input, onlyCreated, written: wanted });
  return { applied, open: combineProblems([]) };
}

/**
 * Findings for an object whose finalizer keeps being removed: nothing is created that might never be cleaned
 * up. What exists is reported all the same.
 */
function missingFinalizerFindings(
  context: ReconcileContext,
  object: KubeObject,
  rendered: Rendered,
  held: BackedOff,
): StatusFindings {
  const seen = observeChildren(context, rendered, object, rendered.children);
  const observed = { ...ownStatus(context.kind, object), ...seen.observed };
  const readiness: Readiness = { state: 'failing', ...held.reason };
  return { readiness, observed, retry: false, requeueAfterMs: held.requeueAfterMs };
}

function recordSyncedEvent({ kind, record }: ReconcileContext, { self, calls }: Rendered, applied: ApplyResult): void {
  if (kind.syncedEvent === undefined || applied.readiness !== undefined) return;
  if (self.status?.observedGeneration === self.metadata.generation && !applied.wrote) return;
  const event = callKindFunction(calls.name, `${kind.kind}.syncedEvent`, () => kind.syncedEvent?.(self));
  if (event !== undefined) record(self, { type: 'Normal', action: 'Sync', ...event });
}

function defaultReadiness({ kind }: ReconcileContext, { self, calls }: Rendered): Readiness {
  const call = (): Reason | undefined => kind.readyReason?.(self);
  const { reason, message } = callKindFunction(calls.name, `${kind.kind}.readyReason`, call) ?? {
    reason: 'Ready',
    message: 'All children are applied and current.',
  };
  return { state: 'ready', reason, message };
}

/** What a reconcile found, before it is written into the status. */
interface StatusFindings {
  readonly readiness: Readiness;
  readonly observed: Readonly<Record<string, unknown>>;
  /** The kind's own conditions. @default the existing ones */
  readonly conditions?: readonly OwnCondition[];
  /** Run again after the backoff, without an event. */
  readonly retry: boolean;
  /** Run again after this long, in milliseconds. */
  readonly requeueAfterMs?: number | undefined;
  /** What a function of the kind threw. */
  readonly thrown?: KindFunctionError;
}

function pausedFindings({ kind }: ReconcileContext, object: KubeObject): StatusFindings {
  const message = `Reconciling is paused: remove the annotation ${PAUSED_ANNOTATION} to go on.`;
  return { readiness: { state: 'paused', reason: 'Paused', message }, observed: ownStatus(kind, object), retry: false };
}

function renderErrorFindings({ kind, record }: ReconcileContext, object: KubeObject, error: unknown): StatusFindings {
  const reason =
    error instanceof InvalidObjectError ? 'ErrInvalidSpec' : error instanceof ImpureError ? 'ErrImpure' : 'ErrRender';
  const message = statusMessage(error);
  record(object, { type: 'Warning', action: 'Render', reason, message });
  const thrown = error instanceof KindFunctionError ? { thrown: error } : {};
  return {
    readiness: { state: 'stalled', reason, message },
    observed: ownStatus(kind, object),
    retry: false,
    ...thrown,
  };
}

function reportError(
  context: ReconcileContext,
  object: KubeObject,
  error: unknown,
): Promise<ReconcileResult> | ReconcileResult {
  // Children are observed, and those that are shared are rendered again for that.
  if (error instanceof RenderError) return reportStatus(context, object, renderErrorFindings(context, object, error));
  const { kind, reason, message } = classify(error);
  if (kind === 'stale') throw error;
  const state = kind === 'terminal' ? 'stalled' : 'failing';
  const observed = ownStatus(context.kind, object);
  const requeueAfterMs = error instanceof ReconcileError ? error.requeueAfterMs : undefined;
  return reportStatus(context, object, {
    readiness: { state, reason, message },
    observed,
    retry: kind === 'retry',
    requeueAfterMs,
  });
}

async function reportStatus(
  context: ReconcileContext,
  object: KubeObject,
  found: StatusFindings,
): Promise<ReconcileResult> {
  const { retry, requeueAfterMs, thrown, ...write } = found;
  const { readiness } = found;
  const held = await writeStatus(context, { object, ...write });
  const bad = readiness.state === 'failing' || readiness.state === 'stalled';
  const next: ReconcileResult = {
    action: retry ? 'retry' : 'wait',
    ...(bad ? { failed: { reason: readiness.reason, message: readiness.message } } : {}),
    ...(thrown === undefined ? {} : { thrown }),
    ...(requeueAfterMs === undefined ? {} : { requeueAfterMs }),
  };
  return withStatusBackoff(next, held);
}
