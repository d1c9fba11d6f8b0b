import type { Construct } from 'constructs';
import type { ResourceType } from './resource-type';

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
