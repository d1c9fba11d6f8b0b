import type { CommonStatus } from '../../constructs/kind/kind';
import type { RenderedChild } from '../../constructs/kind/render';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { childKey } from '../client/api-client';
import type { Readiness } from '../status/conditions';
import { wasCompleted } from './completed-children';
import type { EffectsResult, ReconcileContext } from './context';
import { controlledChildren } from './prune';
import type { Rendered, StatusReads } from './render-object';
import { ownStatus } from './write-status';

/**
 * Children that are rendered from status fields that the effects have not reported for the object as it is, because its
 * spec has changed, or because the status was lost and no run has ended since. The children that exist are held: neither
 * changed nor deleted. Those that do not exist are created as for a new object, which has no status either.
 */
export interface HeldChildren {
  /** Why the object is not ready; undefined when its status already says that it is, for this generation. */
  readonly readiness: Readiness | undefined;
  /** Reconcile again after this long, in milliseconds. */
  readonly requeueAfterMs?: number;
}

/** How soon an object is reconciled again whose status was lost: it is written by then. In milliseconds. */
const AFTER_LOST_STATUS_MS = 1_000;

/** What is rendered from the reports of an object's effects. */
interface ReportedRendering {
  readonly rendered: Rendered;
  readonly held?: HeldChildren;
}

/**
 * Renders the children of an object from what its effects have reported, and finds out whether that is all that the
 * children are rendered from. Of the object's own status nothing is rendered: it may be lost, or of another spec.
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
  if (first.statusReads.size === 0) return { rendered: { ...first, self } };
  const { effects, kind, renderer } = context;
  const { status: reported, pending } = found.reports ?? (await effects?.reports(object, first.self)) ?? { status: {} };
  const known = found.isFromStatus === true ? definedFields(ownStatus(kind, object)) : reported;
  const conditions = pending === undefined || found.isFromStatus === true ? found.conditions : [];
  const status = { ...known, ...(conditions.length > 0 && { conditions }) };
  const isEmpty = Object.keys(status).length === 0;
  const again = renderer.renderReported(first, isEmpty ? undefined : status);
  const rendered = { ...first, ...again, self };
  if (pending === undefined || isAllKnown(again.statusReads, status)) return { rendered };
  const missing = unreportedFields([...first.statusReads, ...again.statusReads], status);
  return { rendered, held: heldChildren(context, object, found, { effect: pending, missing }) };
}

/** Whether a status has all fields that were read of it. */
function isAllKnown(reads: StatusReads, status: object): boolean {
  return [...reads].every((field) => field !== undefined && Object.hasOwn(status, field));
}

/** The fields that a status lacks, for a message. */
function unreportedFields(reads: readonly (string | undefined)[], status: object): string {
  const missing = new Set(reads.filter((field) => field !== undefined && !Object.hasOwn(status, field)));
  return missing.size === 0 ? 'the status' : [...missing].map((field) => `status.${String(field)}`).join(' and ');
}

function heldChildren(
  context: ReconcileContext,
  object: KubeObject,
  { readiness, isFromStatus }: EffectsResult,
  { effect, missing }: { readonly effect: string; readonly missing: string },
): HeldChildren {
  const { observedGeneration } = (object.status ?? {}) as CommonStatus;
  const again = observedGeneration === undefined && { requeueAfterMs: AFTER_LOST_STATUS_MS };
  if (isFromStatus === true || existingChildren(context, object).length === 0) return { readiness, ...again };
  const why =
    `Its children are held, that is neither changed nor deleted, until the effect "${effect}" has succeeded for this spec: ` +
    `they are rendered from ${missing}, which has not been reported for it.`;
  const { message, ...rest } = readiness ?? ({ state: 'progressing', reason: 'Held', message: '' } as const);
  return { readiness: { ...rest, message: `${message} ${why}`.trimStart() }, ...again };
}

/** The children that an object has, rendered now or not, and those that it renders now. */
export function heldAndRendered(
  context: ReconcileContext,
  object: KubeObject,
  rendered: readonly RenderedChild[],
): readonly RenderedChild[] {
  const existing = existingChildren(context, object);
  const names = new Set(existing.map(({ type, manifest }) => childKey(type, manifest)));
  const others = rendered.filter(
    (child) => !names.has(childKey(child.type, child.manifest)) && !wasCompleted(object, child),
  );
  return [...existing, ...others];
}

function existingChildren(context: ReconcileContext, object: KubeObject): readonly RenderedChild[] {
  return controlledChildren(context, object, context.kind.owns).map(({ type, live }) => ({
    ...{ type, manifest: live, seeds: [] },
  }));
}

function definedFields(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
