import { isDeepStrictEqual } from 'node:util';
import type { CommonStatus } from '../../constructs/kind/kind';
import type { RenderedChild } from '../../constructs/kind/render';
import { unknownCondition } from '../../constructs/kind/status-access';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { typeKey } from '../../constructs/kube/resource-type';
import { claimOf } from '../apply/ownership';
import { childKey, refOf } from '../client/api-client';
import type { OwnCondition, Readiness } from '../status/conditions';
import { hasCompletedOthers } from './completed-children';
import type { EffectReports, EffectsResult, PendingEffect, ReconcileContext } from './context';
import { existingChildren, type KnownStatus } from './observe-children';
import { controlledChildren, type LiveChild } from './prune';
import type { Rendered } from './render-object';

type Status = Readonly<Record<string, unknown>>;

/**
 * What is done while children are rendered from a status field that is not reported for the object as it is: its spec
 * has changed, or the reports were lost, and no run has ended since. The children that `children` adds after it has read
 * such a field are held: what exists of them is neither changed nor deleted.
 */
export interface HeldChildren {
  /** The children that are written all the same. */
  readonly applicable: readonly RenderedChild[];
  /** Those among them that are only created: a new object has no report either. */
  readonly onlyCreated: ReadonlySet<RenderedChild>;
  /** Why the object is not ready; undefined when its status already says that it is, for this generation. */
  readonly readiness: Readiness | undefined;
}

/** What is rendered from the reports of an object's effects. */
export interface ReportedRendering {
  readonly rendered: Rendered;
  readonly held?: HeldChildren;
}

/**
 * Renders the children of an object from what its effects have reported and `observe` says. While an effect is pending,
 * nothing is rendered from the status that the object has: it may be of another spec.
 *
 * @throws ApiError, TransportError when something that an effect reads cannot be read; as `ObjectRenderer.render` does
 */
export async function renderFromReports(
  context: ReconcileContext,
  object: KubeObject,
  { first, observed }: KnownStatus,
  found: EffectsResult,
): Promise<ReportedRendering> {
  const self = { ...first.self, status: { ...first.self.status, ...found.status } };
  const reports = first.statusReads.size > 0 && (await context.effects?.reports(object, first.self, observed));
  if (!reports) return { rendered: { ...first, self } };
  const { pending } = reports;
  const canUseStatus = pending.length === 0 || found.isFromStatus === true;
  const conditions = canUseStatus
    ? currentConditions(object, found.conditions)
    : [...reports.conditions, ...pending.flatMap(({ condition }) => (condition ? [unknownCondition(condition)] : []))];
  const status: Status = {
    ...(canUseStatus && self.status),
    ...{ ...observed, ...reports.status },
    ...(conditions.length > 0 && { conditions }),
  };
  const second = context.renderer.renderReported(first, Object.keys(status).length === 0 ? undefined : status);
  const rendered = { ...first, ...second, self };
  const waitsFor: HoldOptions['waitsFor'] = (path) =>
    isReported(path, found, self.status) ? undefined : reporterOf(path, pending, status);
  if ([...second.statusReads].every((path) => waitsFor(path) === undefined)) return { rendered };
  return { rendered, held: holdChildren(context, object, { rendered, reports, found, status, waitsFor }) };
}

/** Whether the status that an object has counts as the report of what was read. */
function isReported(path: string, { isFromStatus }: EffectsResult, own: Status): boolean {
  return isFromStatus === true && Object.hasOwn(own, path.slice('status.'.length));
}

/** The conditions in an object's status, with those of its effects as they are now. */
function currentConditions({ status }: KubeObject, conditions: readonly OwnCondition[]): readonly OwnCondition[] {
  const { conditions: live = [] } = (status ?? {}) as CommonStatus;
  const others = live.filter(({ type }) => conditions.every((own) => own.type !== type));
  return [...others, ...conditions.map((now) => live.find((before) => isSameCondition(before, now)) ?? now)];
}

function isSameCondition(a: OwnCondition, b: OwnCondition): boolean {
  return a.type === b.type && a.status === b.status && a.reason === b.reason && a.message === b.message;
}

/**
 * The pending effect that has still to report what was read of the status, if any.
 *
 * @param path - see `StatusReadListener`
 */
function reporterOf(path: string, pending: readonly PendingEffect[], status: Status): PendingEffect | undefined {
  const field = path.slice('status.'.length);
  if (field === 'conditions') return undefined;
  if (field.startsWith('conditions['))
    return pending.find(({ condition }) => field === `conditions[${condition ?? ''}]`);
  if (path === 'status') return Object.keys(status).length === 0 ? pending[0] : undefined;
  if (field === '*') return pending.find(({ fields }) => fields === undefined || fields.length > 0);
  const isKnown = Object.hasOwn(status, field);
  return pending.find(({ fields }) => (fields === undefined ? !isKnown : fields.includes(field)));
}

/** What {@link holdChildren} is given. */
interface HoldOptions {
  readonly rendered: Rendered;
  readonly reports: EffectReports;
  readonly found: EffectsResult;
  /** What they were rendered from. */
  readonly status: Status;
  /** The effect that has still to report what was read. */
  readonly waitsFor: (path: string) => PendingEffect | undefined;
}

function holdChildren(
  context: ReconcileContext,
  object: KubeObject,
  { rendered, reports, found, status, waitsFor }: HoldOptions,
): HeldChildren {
  const isUnknown = (path: string): boolean => waitsFor(path) !== undefined;
  const { children, read = 'status' } = context.renderer.renderBeforeStatus(rendered, status, isUnknown);
  const independent = independentChildren(context, object, rendered, children);
  const names = new Set([...independent].map(keyOf));
  const held = existingChildren(context, object).filter((live) => !names.has(keyOfLive(live)));
  const writes = unheldChildren(context, object, { rendered, reports, independent, held });
  const isReady = found.isFromStatus === true && isObserved(object);
  if (isReady || held.length === 0) return { ...writes, readiness: found.readiness };
  const paths = [...new Set([read, ...rendered.statusReads])].filter(isUnknown);
  const fields = paths.filter((path) => path !== 'status' && path !== 'status.*');
  const { name = '' } = waitsFor(fields[0] ?? paths[0] ?? 'status') ?? {};
  return { ...writes, readiness: heldReadiness(found.readiness, name, fields.join(' and ') || 'the status') };
}

/** Whether the status of an object was not lost. */
function isObserved({ status }: KubeObject): boolean {
  return ((status ?? {}) as CommonStatus).observedGeneration !== undefined;
}

function heldText(effect: string, from: string): string {
  return ` Until the effect "${effect}" has succeeded for this spec, the children that follow from ${from} are held: neither changed nor deleted.`;
}

/** What {@link heldText} has added to a message. */
const HELD = new RegExp(`${heldText('[^"]*', '[^:]*')}$`);

/** @param found - why the effects are not done; undefined where the status says that they are */
function heldReadiness(found: Readiness | undefined, effect: string, from: string): Readiness {
  const { message, ...rest } = found ?? ({ state: 'progressing', reason: 'Held', message: '' } as const);
  // After a restart the message may be that of the process before.
  const cause = message.replace(HELD, '');
  return { ...rest, message: `${cause}${heldText(effect, from)}`.trimStart() };
}

/** Which children are written while others are held. */
function unheldChildren(
  context: ReconcileContext,
  object: KubeObject,
  given: Pick<HoldOptions, 'rendered' | 'reports'> & {
    readonly independent: ReadonlySet<RenderedChild>;
    readonly held: readonly LiveChild[];
  },
): Pick<HeldChildren, 'applicable' | 'onlyCreated'> {
  const { rendered, reports, independent, held } = given;
  const { children } = rendered;
  const live = ({ type, manifest }: RenderedChild): KubeObject | undefined =>
    context.children(type).get(refOf(manifest))?.object;
  // A new object has no report, and no other children than those that are rendered without.
  const names = new Set(children.map(keyOf));
  const hasReport = reports.pending.some(({ hasSucceeded }) => hasSucceeded);
  const isNew = !hasReport && held.every((existing) => names.has(keyOfLive(existing)));
  const canCreate = isNew && !hasCompletedOthers(object, [...independent]);
  const onlyCreated = new Set(
    children.filter((child) => canCreate && !independent.has(child) && live(child) === undefined),
  );
  // What another owner has is reported, and not changed.
  const hasOtherOwner = (child: RenderedChild): boolean => {
    const other = live(child);
    return other !== undefined && claimOf(other, object) !== 'ours';
  };
  const applicable = children.filter(
    (child) => independent.has(child) || onlyCreated.has(child) || hasOtherOwner(child),
  );
  return { applicable, onlyCreated };
}

/**
 * The children that do not follow from what is not reported: `children` adds them before it reads that, and does not
 * change them later. While an autoscaler exists, the child whose field it writes is not among them: the field stays with it.
 *
 * @param before - what is added before something is read that is not reported
 */
function independentChildren(
  context: ReconcileContext,
  object: KubeObject,
  { children }: Rendered,
  before: readonly RenderedChild[],
): ReadonlySet<RenderedChild> {
  const { seeds } = context.kind;
  const contents = new Map(before.map((child) => [keyOf(child), contentOf(child)]));
  const writers = controlledChildren(
    context,
    object,
    seeds.map(({ writer }) => writer),
  );
  const isScaled = ({ type, seeds: active }: RenderedChild): boolean =>
    seeds.some(
      ({ of, writer }) =>
        typeKey(of) === typeKey(type) &&
        active.length === 0 &&
        writers.some((live) => typeKey(live.type) === typeKey(writer)),
    );
  return new Set(
    children.filter((child) => isDeepStrictEqual(contents.get(keyOf(child)), contentOf(child)) && !isScaled(child)),
  );
}

function contentOf({ manifest, seeds }: RenderedChild): object {
  return { manifest, seeds: seeds.map(({ path }) => path) };
}

function keyOf({ type, manifest }: RenderedChild): string {
  return childKey(type, manifest);
}

function keyOfLive({ type, live }: LiveChild): string {
  return childKey(type, live);
}

/** The names of the children that an object has, and of those that are written while others are held. */
export function heldAndWritten(
  context: ReconcileContext,
  object: KubeObject,
  { applicable }: HeldChildren,
): readonly string[] {
  return [...existingChildren(context, object).map(keyOfLive), ...applicable.map(keyOf)];
}
