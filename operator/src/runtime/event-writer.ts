import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ApiClient, CreateOptions } from '../client/api-client';
import { ApiError, TransportError } from '../client/errors';
import { eventType, seriesOf } from './event-body';

/** The requests that events need: RBAC `create` and `patch` on `events` of `events.k8s.io`. */
export type EventClient = Pick<ApiClient, 'create' | 'patch'>;

/** An event as it is to stand on the server. */
export interface PendingEvent {
  /** As first created, without a series. */
  body: KubeObject;
  /** Whether it was created. */
  stored: boolean;
  /** How often it happened. */
  readonly count: number;
  /** When it last happened. */
  readonly lastSeenWallMs: number;
}

/** How a try to write ended. `gone`: the namespace is going or gone. `later`: the server did not take it now, but may soon. */
export type EventWrite =
  | { readonly end: 'written'; /** The count that stands on the server now. */ readonly count: number }
  | { readonly end: 'gone' }
  | { readonly end: 'later' | 'failed'; readonly error: unknown };

/** What one try needs besides the event. */
export interface EventWriteContext {
  readonly client: EventClient;
  readonly options: CreateOptions;
  /** Gives a fresh name for the event. */
  readonly freshName: () => string;
}

/**
 * Tries once to bring an event to the server: creates it, or patches its series; creates it anew if the server has forgotten it
 * (events live for an hour by default). Never rejects.
 *
 * @param inDoubt an earlier try of this very creation may have been stored: AlreadyExists then means that it was.
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

/** False when the server has no such event any more. */
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
