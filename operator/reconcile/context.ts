import type { AnyKind, Reason } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { CacheView } from '../informer/cache-view';
import type { RenderedShapes } from '../informer/projection';
import type { ApiClient, ObjectRef } from '../client/api-client';
import type { EffectDesk } from '../effects/effect-reconciler';
import type { Contests } from '../apply/drift-backoff';
import type { SharedStates } from './shared-keys';

/** Something that happened to an object, for `kubectl describe` and `kubectl events`. */
export interface ObjectEvent extends Reason {
  readonly type: 'Normal' | 'Warning';
  /** What was being done: CamelCase. */
  readonly action: string;
}

/** What a reconcile of one kind works with. */
export interface ReconcileContext {
  readonly kind: AnyKind;
  readonly client: ApiClient;
  /** The objects of the kind. */
  readonly objects: CacheView;
  /** The cache of a child type. */
  readonly children: (type: ResourceType) => CacheView;
  /** Whether the server does not have a type. What its cache holds is what there was before. */
  readonly isMissing: (type: ResourceType) => boolean;
  readonly shared: SharedStates;
  /** Records an event; never blocks and never fails. */
  readonly record: (regarding: KubeObject, event: ObjectEvent) => void;
  /** Told that a child was written, and why. */
  readonly onWrite: (write: ChildWritten) => void;
  readonly contests: Contests;
  /** What the caches keep of the children. */
  readonly shapes: RenderedShapes;
  /** Where the kind's effects are asked for; a kind that has some needs it. */
  readonly effects?: EffectDesk;
  /** The current time, RFC 3339 in whole seconds. */
  readonly now: () => string;
}

/** The name of a child that cannot be written yet. */
export interface AwaitedName {
  readonly type: ResourceType;
  readonly ref: ObjectRef;
}

/** A write to a child. */
export interface ChildWritten {
  readonly owner: string;
  readonly type: ResourceType;
  readonly ref: ObjectRef;
  readonly action: 'created' | 'applied' | 'deleted';
  /** The first path that differed, of an apply. */
  readonly because?: string;
}

/** What comes after a reconcile. */
export interface Next {
  /** `wait`: nothing until an event comes. `retry`: run again after the backoff. */
  readonly next: 'wait' | 'retry';
  /** Run again after this long at the latest, in milliseconds. */
  readonly afterMs?: number;
  /** What is wrong, for metrics and logs. */
  readonly failed?: Reason;
  /** Run again when anything happens to one of these names. */
  readonly awaited?: readonly AwaitedName[];
}
