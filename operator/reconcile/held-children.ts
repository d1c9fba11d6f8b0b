import { isDeepStrictEqual } from 'node:util';
import type { CommonStatus } from '../../constructs/kind/kind';
import type { RenderedChild } from '../../constructs/kind/render';
import { assumedStatus, hasStatusField } from '../../constructs/kind/status-access';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { typeKey } from '../../constructs/kube/resource-type';
import { claimOf } from '../apply/ownership';
import { childKey, refOf } from '../client/api-client';
import type { OwnCondition, Readiness } from '../status/conditions';
import { hasCompletedOthers } from './completed-children';
import type { EffectReports, EffectsResult, ReconcileContext } from './context';
import { controlledChildren } from './prune';
import type { Rendered, StatusReads } from './render-object';

/**
 * Children are rendered from status fields that the effects have not reported for the object as it is: its spec has
 * changed, or the status was lost, and no run has ended since. Until then, those that follow from the status are held:
 * what exists is neither changed nor deleted. All others are applied.
 */
export interface HeldChildren {
  /** The children that are written all the same. */
  readonly applicable: readonly RenderedChild[];
  /** Those among them that are created only: a new object has no status either. */
  readonly onlyCreated: ReadonlySet<RenderedChild>;
  /** Why the object is not ready; undefined when its status already says that it is, for this generation. */
  readonly readiness: Readiness | undefined;
  /** Reconcile again this soon after the status was written, in milliseconds. */
  readonly requeueOnceWrittenMs?: number;
}

/** How soon an object is reconciled again whose status was lost, in milliseconds. */
const AFTER_LOST_STATUS_MS = 1_000;

/** What is said of held children at the end of a message. */
const HELD =
  /\s*Until the (?:effect "[^"]*" has succeeded for this spec|status is written again), the children that are .*$/;

/** What is rendered from the reports of an object's effects. */
export interface ReportedRendering {
  readonly rendered: Rendered;
  readonly held?: HeldChildren;
}

/**
 * Renders the children of an object from what its effects have reported. Before all of them have succeeded for the
 * object as it is, nothing is rendered from its own status: it may be of another spec.
 *
 * @param first - what was rendered from the object's own status
 * @throws ApiError, TransportError when something that an effect reads cannot be read; as `ObjectRenderer.render` does
 */
export async function renderFromReports(
  context: ReconcileContext,
  object: KubeObject,
  first: Rendered,
  found: EffectsResult,
): Promise<ReportedRendering> {
  const self = { ...first.self, status: { ...first.self.status, ...found.status } };
  const reports = first.statusReads.size === 0 ? undefined : await reportsOf(context, object, first, found);
  if (reports === undefined) return { rendered: { ...first, self } };
  const isWhole = reports.pending === undefined || found.isFromStatus === true;
  const known = isWhole
    ? { ...self.status, ...reports.status, ...currentConditions(object, found) }
    : { ...reports.status, ...(reports.conditions.length > 0 && { conditions: reports.conditions }) };
  const status = Object.keys(known).length === 0 ? undefined : known;
  const again = context.renderer.renderReported(first, status);
  const rendered = { ...first, ...again, self };
  // Which conditions are read is not known.
  const missing = unreported(again.statusReads, isWhole ? known : reports.status, first.statusReads);
  if (missing === undefined || (reports.pending === undefined && !reports.isStatusLost)) return { rendered };
  return { rendered, held: holdChildren(context, object, { rendered, known, missing, reports, found }) };
}

/** The conditions in an object's status, with those of its effects as they are now. */
function currentConditions(
  { status }: KubeObject,
  { conditions }: EffectsResult,
): { readonly conditions?: readonly object[] } {
  const { conditions: live = [] } = (status ?? {}) as CommonStatus;
  const others = live.filter(({ type }) => conditions.every((own) => own.type !== type));
  const own = conditions.map((now) => live.find((before) => isSameCondition(before, now)) ?? now);
  return others.length + own.length === 0 ? {} : { conditions: [...others, ...own] };
}

function isSameCondition(a: OwnCondition, b: OwnCondition): boolean {
  return a.type === b.type && a.status === b.status && a.reason === b.reason && a.message === b.message;
}

async function reportsOf(
  { effects }: ReconcileContext,
  object: KubeObject,
  { self }: Rendered,
  found: EffectsResult,
): Promise<EffectReports | undefined> {
  return found.reports ?? effects?.reports(object, self);
}

/**
 * What was read of a status that it does not have, for a message; undefined when it has all.
 *
 * @param further - what was read of another status, which may have told more
 */
function unreported(reads: StatusReads, status: object, further: StatusReads): string | undefined {
  const known = Object.keys(status).length === 0 ? undefined : status;
  const isMissing = (path: string): boolean => !hasStatusField(known, path);
  if (![...reads].some(isMissing)) return undefined;
  const fields = [...new Set([...reads, ...further])].filter((path) => path !== 'status' && path !== 'status.*');
  return fields.filter(isMissing).join(' and ') || 'the status';
}

/** What is known of children to hold. */
interface Unreported {
  readonly rendered: Rendered;
  /** The status that they were rendered from. */
  readonly known: Readonly<Record<string, unknown>>;
  /** What was read and is not in it. */
  readonly missing: string;
  readonly reports: EffectReports;
  readonly found: EffectsResult;
}

function holdChildren(
  context: ReconcileContext,
  object: KubeObject,
  { rendered, known, missing, reports, found }: Unreported,
): HeldChildren {
  const independent = new Set(independentChildren(context, rendered, known));
  const others = rendered.children.filter((child) => !independent.has(child));
  const names = new Set([...independent].map(({ type, manifest }) => childKey(type, manifest)));
  const held = existingChildren(context, object).filter(({ type, manifest }) => !names.has(childKey(type, manifest)));
  // A new object has none that follow from its status.
  const isNew = held.length === 0 && !hasCompletedOthers(object, [...independent]);
  const live = ({ type, manifest }: RenderedChild): KubeObject | undefined =>
    context.children(type).get(refOf(manifest))?.object;
  const isTaken = (child: RenderedChild): boolean => {
    const other = live(child);
    return other !== undefined && claimOf(other, object) !== 'ours';
  };
  const onlyCreated = new Set(others.filter((child) => isNew && live(child) === undefined));
  const applicable = rendered.children.filter(
    (child) => independent.has(child) || onlyCreated.has(child) || isTaken(child),
  );
  const { readiness } = found;
  // Nothing else enqueues it.
  const again = reports.isStatusLost && readiness === undefined && { requeueOnceWrittenMs: AFTER_LOST_STATUS_MS };
  const isReady = found.isFromStatus === true && !reports.isStatusLost;
  if (isReady || held.length === 0) return { applicable, onlyCreated, readiness, ...again };
  const until =
    reports.pending === undefined
      ? 'status is written again'
      : `effect "${reports.pending}" has succeeded for this spec`;
  const why = `Until the ${until}, the children that are rendered from ${missing} are held: neither changed nor deleted.`;
  const { message, ...rest } = readiness ?? ({ state: 'progressing', reason: 'Held', message: '' } as const);
  // After a restart the message may be that of the process before.
  const cause = message.replace(HELD, '');
  return { applicable, onlyCreated, readiness: { ...rest, message: `${cause} ${why}`.trimStart() }, ...again };
}

/**
 * The children that do not follow from what is not known of the status: they are the same whatever it is. None that
 * makes another writer act on a seeded field is among them, since the field may not be handed over yet.
 */
function independentChildren(
  { kind, renderer }: ReconcileContext,
  rendered: Rendered,
  known: Readonly<Record<string, unknown>>,
): readonly RenderedChild[] {
  const variants = ([0, 1] as const).map((variant) => {
    const assumed = assumedStatus(kind, variant);
    const children = assumed && renderer.renderAssumed(rendered, variant, { ...assumed, ...known });
    return children && new Map(children.map((child) => [childKey(child.type, child.manifest), contentOf(child)]));
  });
  const writers = new Set(kind.seeds.map(({ writer }) => typeKey(writer)));
  return rendered.children.filter((child) => {
    const key = childKey(child.type, child.manifest);
    const content = contentOf(child);
    return (
      !writers.has(typeKey(child.type)) && variants.every((children) => isDeepStrictEqual(children?.get(key), content))
    );
  });
}

function contentOf({ manifest, seeds }: RenderedChild): object {
  return { manifest, seeds: seeds.map(({ path }) => path) };
}

/** The children that an object has, rendered now or not, and those that it renders now. */
export function heldAndRendered(
  context: ReconcileContext,
  object: KubeObject,
  { applicable }: HeldChildren,
): readonly RenderedChild[] {
  const existing = existingChildren(context, object);
  const names = new Set(existing.map(({ type, manifest }) => childKey(type, manifest)));
  return [...existing, ...applicable.filter(({ type, manifest }) => !names.has(childKey(type, manifest)))];
}

function existingChildren(context: ReconcileContext, object: KubeObject): readonly RenderedChild[] {
  return controlledChildren(context, object, context.kind.owns).map(({ type, live }) => ({
    ...{ type, manifest: live, seeds: [] },
  }));
}
