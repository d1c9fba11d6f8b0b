/** Writes one Kubernetes Event to the API server, and builds its key, name and body. */
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient, CreateOptions } from '../client/api-client';
import { ApiError, TransportError } from '../client/errors';
import { microTime } from '../process/clock';

/** The requests for events: RBAC `create` and `patch` on `events` of `events.k8s.io`. */
export type EventClient = Pick<ApiClient, 'create' | 'patch'>;

/** The desired state of an event on the server. */
export interface PendingEvent {
  /** As first created, without a series. */
  body: KubeObject;
  /** Whether it was created. */
  stored: boolean;
  /** How often it occurred. */
  readonly count: number;
  /** When it last occurred, in milliseconds since the epoch. */
  readonly lastSeenWallMs: number;
}

/**
 * The outcome of one write. `gone`: the namespace is being deleted or was deleted. `later`: a temporary
 * failure.
 */
export type EventWrite =
  | { readonly end: 'written'; /** The count on the server now. */ readonly count: number }
  | { readonly end: 'gone' }
  | { readonly end: 'later' | 'failed'; readonly error: unknown };

/** What one write needs besides the event. */
export interface EventWriteContext {
  readonly client: EventClient;
  readonly options: CreateOptions;
  /** Returns a new name for the event. */
  readonly freshName: () => string;
}

/**
 * Tries once to write an event: creates it, or patches its series; creates it again if the server no longer
 * has it (events expire after an hour by default). Never rejects.
 *
 * @param inDoubt an earlier attempt at this creation may have succeeded: AlreadyExists then means that it
 * did.
 */
export async function writeEvent(
  event: PendingEvent,
  context: EventWriteContext,
  inDoubt: boolean,
): Promise<EventWrite> {
  const { count } = event;
  try {
    if (event.stored && (await patched(event, context))) return { end: 'written', count };
    event.stored = false;
    await created(event, context, inDoubt);
    event.stored = true;
    return { end: 'written', count };
  } catch (error) {
    if (isNamespaceGone(error)) return { end: 'gone' };
    return { end: isPassing(error) ? 'later' : 'failed', error };
  }
}

/** Patches the series; false when the server no longer has the event. */
async function patched(event: PendingEvent, context: EventWriteContext): Promise<boolean> {
  const { name, namespace = 'default' } = event.body.metadata;
  const series = seriesOf(event.count, event.lastSeenWallMs);
  try {
    await context.client.patch(eventType, { name, namespace }, { series }, { ...context.options, type: 'merge' });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return false;
    throw error;
  }
}

async function created(event: PendingEvent, context: EventWriteContext, inDoubt: boolean): Promise<void> {
  const { client, options, freshName } = context;
  const series = event.count < 2 ? {} : { series: seriesOf(event.count, event.lastSeenWallMs) };
  try {
    await client.create(eventType, { ...event.body, ...series }, options);
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
    if (inDoubt) return;
    event.body = { ...event.body, metadata: { ...event.body.metadata, name: freshName() } };
    await client.create(eventType, { ...event.body, ...series }, options);
  }
}

function isNamespaceGone(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.code === 404 || error.hasCause('NamespaceTerminating');
}

function isPassing(error: unknown): boolean {
  if (error instanceof TransportError) return true;
  return error instanceof ApiError && (error.code >= 500 || error.code === 429);
}

/** The resource type of events. Source: KEP-383, `events.k8s.io/v1`. */
const eventType: ResourceType = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  plural: 'events',
  scope: 'Namespaced',
};

/** The object that an event is about; any Kubernetes object will do. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly uid?: string };
}

/** What happened, for `EventRecorder.record`. */
export interface EventInput {
  readonly type: 'Normal' | 'Warning';
  /** Why, in CamelCase, for machines: `Synced`, `ErrResourceExists`. At most 128 bytes; cut beyond. */
  readonly reason: string;
  /** What was being done, in CamelCase: `Reconcile`, `Create`, `Prune`. At most 128 bytes; cut beyond. */
  readonly action: string;
  /** For people. At most 1024 bytes; cut beyond. No counters or times: another note is another event. */
  readonly note: string;
  /** A second object that was involved. @default none */
  readonly related?: EventSubject;
}

/** The controller and the process that report the event. */
export interface EventReporter {
  readonly reportingController: string;
  /** At most 128 bytes; cut beyond. */
  readonly reportingInstance: string;
}

/** The limits that the API server checks, in bytes. Source: Kubernetes `pkg/apis/core/validation/events.go`. */
const noteBytes = 1024;
const wordBytes = 128;
const nameLength = 253;

/** The same event, with every text cut to the API server's limits. */
export function withinLimits(input: EventInput): EventInput {
  return {
    ...input,
    reason: cutToBytes(input.reason, wordBytes),
    action: cutToBytes(input.action === '' ? input.reason : input.action, wordBytes),
    note: cutToBytes(input.note, noteBytes),
  };
}

/** The identity of an event for deduplication: subject, type, reason, action, note and related object. */
export function eventKey(subject: EventSubject, input: EventInput): string {
  const related = input.related === undefined ? '' : subjectKey(input.related);
  return JSON.stringify([subjectKey(subject), input.type, input.reason, input.action, input.note, related]);
}

/** The identity of an object: its UID, or its type and name where the UID is unknown. */
export function subjectKey(subject: EventSubject): string {
  const { uid, namespace = '', name } = subject.metadata;
  return uid ?? `${subject.apiVersion}/${subject.kind}/${namespace}/${name}`;
}

/**
 * The identifying fields of an object, and nothing else: an event is remembered for long after its object has
 * changed or was deleted, and objects can be large.
 */
export function identityOf({ apiVersion, kind, metadata: { name, namespace, uid } }: EventSubject): EventSubject {
  return {
    apiVersion,
    kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), ...(uid === undefined ? {} : { uid }) },
  };
}

/** The namespace of an event: its subject's; `default` for a cluster-scoped one (the API server's rule). */
function eventNamespace(subject: EventSubject): string {
  return subject.metadata.namespace ?? 'default';
}

/**
 * A name for a new event, as in client-go: the subject's name, a dot, and the time in hexadecimal digits,
 * here with random ones. Characters that are valid in some names only (RBAC's `:`) become dashes.
 */
export function eventName(subject: EventSubject, wallMs: number, random: () => number): string {
  const stamp = BigInt(Math.trunc(wallMs)) * 1_000_000n + BigInt(Math.floor(random() * 1_000_000));
  const suffix = `.${stamp.toString(16)}`;
  const safe = subject.metadata.name.toLowerCase().replace(/[^a-z0-9.-]/g, '-');
  return safe.slice(0, nameLength - suffix.length).replace(/[^a-z0-9]+$/, '') + suffix;
}

/** The event as it is first created. */
export function eventBody(
  subject: EventSubject,
  input: EventInput,
  reporter: EventReporter,
  name: string,
  wallMs: number,
): KubeObject {
  return {
    apiVersion: eventType.apiVersion,
    kind: eventType.kind,
    metadata: { name, namespace: eventNamespace(subject) },
    eventTime: microTime(wallMs),
    reportingController: reporter.reportingController,
    reportingInstance: cutToBytes(reporter.reportingInstance, wordBytes),
    type: input.type,
    reason: input.reason,
    action: input.action,
    note: input.note,
    regarding: referenceTo(subject),
    ...(input.related === undefined ? {} : { related: referenceTo(input.related) }),
  };
}

/**
 * An event's `series`: it occurred `count` times (at least 2, or the API server rejects it), last at
 * `wallMs`.
 */
function seriesOf(count: number, wallMs: number): { readonly count: number; readonly lastObservedTime: string } {
  return { count, lastObservedTime: microTime(wallMs) };
}

function referenceTo(subject: EventSubject): Readonly<Record<string, string>> {
  const { name, namespace, uid } = subject.metadata;
  return {
    apiVersion: subject.apiVersion,
    kind: subject.kind,
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
  };
}

function cutToBytes(text: string, max: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= max) return text;
  const ellipsis = '…';
  let end = max - Buffer.byteLength(ellipsis);
  // Back to the start of a character: continuation bytes are 10xxxxxx.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end) + ellipsis;
}
