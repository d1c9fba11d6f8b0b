import type { Construct } from 'constructs';
import type { z } from 'zod';
import type { Condition, KubeObject, ObjectMeta } from '../kube/kube-object';
import type { NameRule } from '../kube/names';
import type { KindRule } from '../kube/policy-rule';
import type { ResourceScope, ResourceType } from '../kube/resource-type';
import type { PrinterColumn, ScaleSubresource } from './columns-and-scale';
import type { Effect } from './effects';
import type { Read } from './reads';
import type { CelRule } from './schema/cel';
import type { OtherVersions } from './versions';

/** The definition of a kind: everything that its author writes. */
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
  /** The description that `kubectl explain` shows. */
  readonly description: string;
  /** Annotations of the CRD itself, for example `api-approved.kubernetes.io`. */
  readonly crdAnnotations?: Readonly<Record<string, string>>;
  readonly spec: S;
  /** The kind's own status fields, each optional; `conditions` and `observedGeneration` are added. */
  readonly status?: T;
  /**
   * The kind's own conditions, reported by its effects. A kind without effects cannot have any.
   * @default none
   */
  readonly conditionTypes?: readonly ConditionType[];
  /** Conditions carry `lastUpdateTime` too: when status, reason or message last changed. @default false */
  readonly lastUpdateTime?: boolean;
  readonly columns?: readonly PrinterColumn[];
  readonly scale?: ScaleSubresource;
  /** Rules on the whole object; rules on one field belong to that field's schema. */
  readonly rules?: readonly CelRule[];
  /**
   * The rule for `metadata.name`, where the children's names or labels need one.
   * @default any valid object name
   */
  readonly names?: NameRule;
  /**
   * The types of the children. Their scope is the kind's: a child is in its owner's namespace, or in none if
   * the owner is cluster-scoped. Rendering a child of another type is an error. `own(type, policy)` says what the
   * children of a type mean for `Ready`, and what is done when one is deleted.
   *
   * The operator may create, change and delete objects of each type. `kindred dev` and `kindred docs` report
   * those that no sample renders. That is not an error: which children there are may depend on the spec in a way
   * that no sample shows, as in a generic kind; a sample of each type ends the report.
   */
  readonly owns: readonly ResourceType[];
  /**
   * Types that earlier versions of the kind owned: still pruned, never rendered. Those of a cluster-scoped
   * kind may be namespaced.
   */
  readonly formerlyOwned?: readonly ResourceType[];
  readonly shared?: readonly SharedChildren<TypedObject<S, T>>[];
  readonly seeds?: readonly Seed[];
  /**
   * Rules that its operator needs besides those that follow from the definition. A kind that renders bindings
   * needs `bind` on the roles to which they bind, by name: RBAC else refuses them to an operator that does not
   * have the permissions of these roles itself. The user who installs the operator must have what it is granted.
   * @default none
   */
  readonly extraRules?: readonly KindRule[];
  readonly finalizer?: Finalizer;
  /**
   * Objects that the kind's effects read and never write. A kind without effects cannot have any.
   * @default none
   */
  readonly reads?: readonly Read<TypedObject<S, T>>[];
  /**
   * What is done for an object outside the Kubernetes API. A kind with effects of the phase `remove` has the status
   * field `attempts`, whether its status declares it or not.
   * @default nothing
   */
  readonly effects?: readonly Effect<TypedObject<S, T>>[];
  /**
   * Adds the children of `self` to `scope`. Pure: no clock, randomness, I/O or environment, which a second rendering
   * with another clock checks. Rendering rejects
   * `addDependency`, which the operator does not follow, and lists of built-in types that hold a key twice,
   * which the server refuses at every apply, and metadata that only the server or the operator sets. The operator
   * stops what has not returned after 5 s. In a kind without effects, rendering also rejects reading `self.status`,
   * which only `observe` writes, from the children. In a kind with effects, it has what they have reported. If a field
   * is read that an effect may still report for the object as it is, the children that are added from there on are
   * neither changed nor deleted before it has. A Secret's `stringData` is rendered as `data`.
   */
  readonly children: (scope: Construct, self: TypedObject<S, T>) => void;
  /** Computes the kind's own status fields from the live children. @default none */
  readonly observe?: (observation: Observation<S, T>) => Partial<z.output<T>>;
  /** The reason of `Ready=True`. @default `Ready` */
  readonly readyReason?: (self: TypedObject<S, T>) => Reason | undefined;
  /** A Normal event recorded when the children of a generation have been applied. @default none */
  readonly syncedEvent?: (self: TypedObject<S, T>) => Reason;
  /** @default none */
  readonly samples?: readonly Sample<S>[];
}

/** An object of a kind as a user would write it: installed on request, shown in docs, rendered in snapshot tests. */
export interface Sample<S extends z.ZodObject> {
  readonly name: string;
  /** @default none */
  readonly labels?: Readonly<Record<string, string>>;
  /** @default no spec at all */
  readonly spec?: z.input<S>;
}

/** A type of condition that a kind has besides `Ready`, `Reconciling` and `Stalled`. */
export interface ConditionType {
  /** CamelCase, for example `Provisioned`. */
  readonly type: string;
  /** What `True` means. */
  readonly description: string;
}

/**
 * Children that several objects of a kind own together. They are a function of a key alone, and exist as long
 * as a live object in the same namespace names that key.
 */
export interface SharedChildren<Self> {
  /** Names the group within its kind: a lower-case word, part of queue keys and messages. */
  readonly name: string;
  readonly owns: readonly ResourceType[];
  /** The key that an object names. Pure; it must not read `self.status`, which may be lost. */
  readonly key: (self: Self) => string;
  /** Adds the children of a key to `scope`. */
  readonly children: (scope: Construct, key: string) => void;
}

/**
 * A field that a kind sets when a child is created and then leaves to another writer, for as long as that
 * writer is among the rendered children. While it is not, the field is rendered and applied like any other.
 */
export interface Seed {
  /** The type of the child that has the field. */
  readonly of: ResourceType;
  /** The field, for example `['spec', 'replicas']`. */
  readonly path: readonly string[];
  /** The type of the child that makes the other writer act: a HorizontalPodAutoscaler writes `spec.replicas`. */
  readonly writer: ResourceType;
  /**
   * Whether the live value is kept when the field is handed over; otherwise the rendered value replaces it.
   * @default every value stays
   */
  readonly keep?: (live: unknown) => boolean;
}

/** A finalizer, which keeps a deleted object until its children are deleted and its effects are removed. */
export interface Finalizer {
  /** The finalizer's name, domain-qualified: `demomicroservice.finalizers.devops.my.domain`. */
  readonly name: string;
  /** How the operator deletes the children before it drops the finalizer. */
  readonly propagation: 'Foreground' | 'Background';
}

/** An object of a kind after its schema's defaults are applied. */
export interface TypedObject<S extends z.ZodObject, T extends z.ZodObject> extends KubeObject {
  readonly metadata: ObjectMeta;
  readonly spec: z.output<S>;
  readonly status?: Partial<z.output<T>> & CommonStatus;
}

/** The status fields that every kind has besides its own. */
export interface CommonStatus {
  readonly observedGeneration?: number;
  readonly conditions?: readonly ReportedCondition[];
}

/** A condition in a status. */
export interface ReportedCondition extends Condition {
  /**
   * RFC 3339 time at which status, reason or message last changed. Only if the kind sets `lastUpdateTime`.
   */
  readonly lastUpdateTime?: string;
}

/** The argument of `observe`. */
export interface Observation<S extends z.ZodObject, T extends z.ZodObject> {
  readonly self: TypedObject<S, T>;
  readonly children: ObservedChildren;
}

/**
 * The live children of one object, shared ones included. Each has its metadata, its status, `spec.replicas`
 * and the fields that the kind renders: the operator caches no more.
 */
export interface ObservedChildren {
  /** All children of a type. */
  all<C extends KubeObject>(type: ResourceType<C>): readonly C[];
  /** The first child of a type, or undefined. */
  one<C extends KubeObject>(type: ResourceType<C>): C | undefined;
}

/** A reason and a message for people. */
export interface Reason {
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
}
