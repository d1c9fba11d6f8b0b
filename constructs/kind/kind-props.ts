import type { Construct } from 'constructs';
import type { z } from 'zod';
import type { Condition, KubeObject, ObjectMeta } from '../kube/kube-object';
import type { NameRule } from '../kube/names';
import type { ResourceScope, ResourceType } from '../kube/resource-type';
import type { PrinterColumn, ScaleSubresource } from './columns-and-scale';
import type { Effect } from './effects';
import type { Read } from './reads';
import type { CelRule } from './schema/cel';
import type { OtherVersions } from './versions';

/** What every kind's status carries besides its own fields. */
export interface CommonStatus {
  readonly observedGeneration?: number;
  readonly conditions?: readonly ReportedCondition[];
}

/** A condition as it may stand in a status. */
export interface ReportedCondition extends Condition {
  /** RFC 3339 time at which anything of the condition last changed. Only where the kind says `lastUpdateTime`. */
  readonly lastUpdateTime?: string;
}

/** A type of condition that a kind has besides `Ready`, `Reconciling` and `Stalled`. */
export interface ConditionType {
  /** CamelCase, for example `Provisioned`. */
  readonly type: string;
  /** What `True` says. */
  readonly description: string;
}

/** An object of a kind after its schema's defaults are applied. */
export interface TypedObject<S extends z.ZodObject, T extends z.ZodObject> extends KubeObject {
  readonly metadata: ObjectMeta;
  readonly spec: z.output<S>;
  readonly status?: Partial<z.output<T>> & CommonStatus;
}

/**
 * The children of one object as they stand on the server; shared ones included. Of each there is the metadata, the status, `spec.replicas`,
 * and what the kind renders of the rest: the operator keeps no more.
 */
export interface ObservedChildren {
  /** All children of a type. */
  all<C extends KubeObject>(type: ResourceType<C>): readonly C[];
  /** The first child of a type, or undefined. */
  one<C extends KubeObject>(type: ResourceType<C>): C | undefined;
}

/** What `observe` sees. */
export interface Observation<S extends z.ZodObject, T extends z.ZodObject> {
  readonly self: TypedObject<S, T>;
  readonly children: ObservedChildren;
}

/** A reason and a message for people. */
export interface Reason {
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
}

/** An object of a kind as a user would write it: installed on request, shown in docs, rendered in snapshot tests. */
export interface Sample<S extends z.ZodObject> {
  readonly name: string;
  /** @default none */
  readonly labels?: Readonly<Record<string, string>>;
  /** @default no spec at all */
  readonly spec?: z.input<S>;
}

/** All that a kind author writes. */
export interface KindProps<
  S extends z.ZodObject,
  T extends z.ZodObject,
  V extends readonly z.ZodObject[] = readonly z.ZodObject[],
> {
  readonly group: string;
  /** The version of `spec`: the one that objects are stored in and children are rendered from. */
  readonly version: string;
  /** Further versions, in the server's order of priority (v2, v1, v1beta1, v1alpha1). @default none */
  readonly versions?: OtherVersions<S, V>;
  readonly kind: string;
  readonly plural: string;
  /** @default the kind in lower case */
  readonly singular?: string;
  readonly shortNames?: readonly string[];
  /** @default ['kindred'] */
  readonly categories?: readonly string[];
  readonly scope: ResourceScope;
  /** What `kubectl explain` says of the kind. */
  readonly description: string;
  /** Annotations of the CRD itself, for example `api-approved.kubernetes.io`. */
  readonly crdAnnotations?: Readonly<Record<string, string>>;
  readonly spec: S;
  /** The kind's own status fields, each optional; `conditions` and `observedGeneration` are added. */
  readonly status?: T;
  /** Conditions of the kind's own, which its effects report: a kind without effects is refused if it has some. @default none */
  readonly conditionTypes?: readonly ConditionType[];
  /** Conditions carry `lastUpdateTime` too: when status, reason or message last changed. @default false */
  readonly lastUpdateTime?: boolean;
  readonly columns?: readonly PrinterColumn[];
  readonly scale?: ScaleSubresource;
  /** Rules on the object as a whole; rules on a field stand on the field. */
  readonly rules?: readonly CelRule[];
  /** What `metadata.name` must be so that the children's names and labels can bear it. @default any valid object name */
  readonly names?: NameRule;
  /**
   * The types of the children, of the kind's own scope: children stand in their owner's namespace, those of a cluster-scoped one in none.
   * Rendering a child of another type is an error.
   */
  readonly owns: readonly ResourceType[];
  /** Types that earlier versions of the kind owned: still pruned, never rendered. Those of a cluster-scoped kind may live in namespaces. */
  readonly formerlyOwned?: readonly ResourceType[];
  readonly shared?: readonly SharedChildren<TypedObject<S, T>>[];
  readonly seeds?: readonly Seed[];
  readonly finalizer?: Finalizer;
  /** Objects that the kind's effects look at and never write: a kind without effects is refused if it has some. @default none */
  readonly reads?: readonly Read<TypedObject<S, T>>[];
  /** What is done for an object outside the Kubernetes API. @default nothing */
  readonly effects?: readonly Effect<TypedObject<S, T>>[];
  /**
   * Adds the children of `self` to `scope`. Pure: no clock, randomness, I/O or environment. Rendering refuses `addDependency`, which the operator
   * does not follow, and reading `self.status` in a kind without effects: only `observe` writes it, from the children.
   */
  readonly children: (scope: Construct, self: TypedObject<S, T>) => void;
  /** The kind's own status fields, from what stands on the server. @default none */
  readonly observe?: (observation: Observation<S, T>) => Partial<z.output<T>>;
  /** The reason of `Ready=True`. @default `Ready` */
  readonly readyReason?: (self: TypedObject<S, T>) => Reason | undefined;
  /** A Normal event recorded when the children of a generation have been applied. @default none */
  readonly syncedEvent?: (self: TypedObject<S, T>) => Reason;
  /** @default none */
  readonly samples?: readonly Sample<S>[];
}

/**
 * A field that a kind sets when a child is created and then leaves to another writer, for as long as that writer stands among
 * the rendered children. While it does not stand there, the field is rendered and applied like any other.
 */
export interface Seed {
  /** The type of the child that bears the field. */
  readonly of: ResourceType;
  /** The field, for example `['spec', 'replicas']`. */
  readonly path: readonly string[];
  /** The type of the child that makes the other writer act: a HorizontalPodAutoscaler writes `spec.replicas`. */
  readonly writer: ResourceType;
  /**
   * Whether the live value may stay when the field is handed over; the rendered value takes its place otherwise.
   * @default every value stays
   */
  readonly keep?: (live: unknown) => boolean;
}

/**
 * Children that several objects of a kind own together. They are a function of a key alone, and stand for as long as a living
 * object of the same namespace names that key.
 */
export interface SharedChildren<Self> {
  /** Names the group within its kind: a lower-case word, part of queue keys and messages. */
  readonly name: string;
  readonly owns: readonly ResourceType[];
  /** The key that an object names. */
  readonly key: (self: Self) => string;
  /** Adds the children of a key to `scope`. */
  readonly children: (scope: Construct, key: string) => void;
}

/** What must be gone before a deleted object goes. */
export interface Finalizer {
  /** The finalizer's name, domain-qualified: `demomicroservice.finalizers.devops.my.domain`. */
  readonly name: string;
  /** How the operator deletes the children before it drops the finalizer. */
  readonly propagation: 'Foreground' | 'Background';
}
