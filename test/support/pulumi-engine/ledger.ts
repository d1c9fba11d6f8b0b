import type { ResourceState } from './state';
import { type PendingOperation, StackState } from './state';
import { parseReference } from './urn';

/**
 * The books of a run: what the program has registered so far, what of the past it has not spoken of yet, and what was replaced and still
 * has to go.
 */
export class Ledger {
  private readonly news = new Map<string, ResourceState>();
  private readonly olds = new Map<string, ResourceState>();
  private readonly replaced = new Set<ResourceState>();
  /** New URN by old, of what was found under an alias. */
  private readonly moved = new Map<string, string>();

  constructor(state: StackState) {
    for (const resource of state.resources) {
      if (resource.delete) this.replaced.add(resource);
      else this.olds.set(resource.urn, resource);
    }
  }

  /** A resource of this run. */
  current(urn: string): ResourceState | undefined {
    return this.news.get(urn);
  }

  /** A resource of the past that this run has not dealt with, with references to what moved brought up to date. */
  past(urn: string): ResourceState | undefined {
    const found = this.olds.get(urn);
    return found === undefined ? undefined : this.updated(found);
  }

  /** What is left of the past. */
  get leftovers(): readonly ResourceState[] {
    return [...this.olds.values()].map((resource) => this.updated(resource));
  }

  /** What was replaced and is still there. */
  get toDelete(): readonly ResourceState[] {
    return [...this.replaced].map((resource) => this.updated(resource));
  }

  /** The old URN of a resource of this run that had another. */
  movedFrom(urn: string): string | undefined {
    for (const [before, now] of this.moved) if (now === urn) return before;
    return undefined;
  }

  /** Notes that a resource of the past has another URN now. */
  move(before: string, now: string): void {
    this.moved.set(before, now);
  }

  wasMoved(urn: string): boolean {
    return this.moved.has(urn);
  }

  /** The resource is done with: `old` is the past that it continues. */
  enter(resource: ResourceState, oldUrn?: string): void {
    if (oldUrn !== undefined) this.olds.delete(oldUrn);
    this.news.set(resource.urn, resource);
  }

  /** The resource is replaced by a new one of its URN, and deleted later. */
  condemn(old: ResourceState, oldUrn: string): void {
    this.olds.delete(oldUrn);
    this.replaced.add({ ...old, delete: true });
  }

  /** The resource is gone. */
  forget(resource: ResourceState): void {
    if (!resource.delete) {
      this.olds.delete(resource.urn);
      return;
    }
    for (const entry of this.replaced) {
      if (entry.id === resource.id && this.now(entry.urn) === resource.urn) this.replaced.delete(entry);
    }
  }

  /** The state as it would be found if the run ended here. */
  state(pending: readonly PendingOperation[] = []): StackState {
    return new StackState([...this.news.values(), ...this.leftovers, ...this.toDelete], pending);
  }

  private updated(resource: ResourceState): ResourceState {
    if (this.moved.size === 0) return resource;
    const now = (urn: string): string => this.now(urn);
    return {
      ...resource,
      ...(resource.delete ? { urn: now(resource.urn) } : {}),
      ...(resource.parent === undefined ? {} : { parent: now(resource.parent) }),
      ...(resource.provider === undefined ? {} : { provider: this.reference(resource.provider) }),
      ...(resource.deletedWith === undefined ? {} : { deletedWith: now(resource.deletedWith) }),
      dependencies: resource.dependencies.map(now),
      propertyDependencies: Object.fromEntries(
        Object.entries(resource.propertyDependencies).map(([key, urns]) => [key, urns.map(now)]),
      ),
    };
  }

  private reference(reference: string): string {
    const { urn, id } = parseReference(reference);
    return `${this.now(urn)}::${id}`;
  }

  private now(urn: string): string {
    return this.moved.get(urn) ?? urn;
  }
}
