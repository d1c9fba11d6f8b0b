import type { Sealer } from './sealer';
import { nameOf, parseReference } from './urn';
import type { Plain, Values } from './values';

/** A resource as the state knows it. */
export interface ResourceState {
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  /** False: a component. */
  readonly custom: boolean;
  /** The provider's name of it. Absent for components. */
  readonly id?: string;
  readonly parent?: string;
  /** `<urn>::<id>` of its provider. */
  readonly provider?: string;
  readonly inputs: Values;
  readonly outputs: Values;
  readonly dependencies: readonly string[];
  readonly propertyDependencies: Readonly<Record<string, readonly string[]>>;
  readonly protect: boolean;
  readonly retainOnDelete: boolean;
  readonly deletedWith?: string;
  /** Belongs to someone else, and was only read. */
  readonly external: boolean;
  /** Replaced already, and still to be deleted. */
  readonly delete: boolean;
  /** Why it is not what it should be; the next run tries again. */
  readonly initErrors: readonly string[];
}

/** An operation that a killed run had begun. */
export interface PendingOperation {
  readonly urn: string;
  readonly op: string;
}

/** URNs that must outlive a resource. */
export function needs(resource: ResourceState): Set<string> {
  const all = [
    ...resource.dependencies,
    ...Object.values(resource.propertyDependencies).flat(),
    ...(resource.parent === undefined ? [] : [resource.parent]),
    ...(resource.provider === undefined ? [] : [parseReference(resource.provider).urn]),
    ...(resource.deletedWith === undefined ? [] : [resource.deletedWith]),
  ];
  return new Set(all.filter((urn) => urn !== resource.urn));
}

/** The state of a stack: what a run starts from, and what it leaves behind. */
export class StackState {
  constructor(
    readonly resources: readonly ResourceState[] = [],
    readonly pendingOperations: readonly PendingOperation[] = [],
  ) {}

  /** Resources that a provider made, without those that belong to someone else. */
  get made(): readonly ResourceState[] {
    return this.resources.filter((r) => r.custom && !r.external && !r.type.startsWith('pulumi:'));
  }

  /**
   * The resource of a name, or of a URN. Of several with one name, the one of the type.
   *
   * @throws Error when there is none, or more than one
   */
  resource(name: string, type?: string): ResourceState {
    const found = this.resources.filter(
      (r) => !r.delete && (r.urn === name || (r.name === name && (type === undefined || r.type === type))),
    );
    if (found.length === 1) return found[0]!;
    const known = this.resources.map((r) => `${r.type} ${nameOf(r.urn)}`).join('\n  ');
    throw new Error(
      `${found.length === 0 ? 'no' : found.length} resource named "${name}"${type === undefined ? '' : ` of type ${type}`} in the state, which has:\n  ${known}`,
    );
  }

  /** Whether there is such a resource. */
  has(name: string, type?: string): boolean {
    return this.resources.some((r) => r.urn === name || (r.name === name && (type === undefined || r.type === type)));
  }

  /** The state as text, secrets encrypted: what would lie on a disk. */
  toText(sealer: Sealer): string {
    const resources = this.resources.map((r) => ({
      ...r,
      inputs: sealer.seal(r.inputs),
      outputs: sealer.seal(r.outputs),
    }));
    return JSON.stringify({ version: 1, resources, pendingOperations: this.pendingOperations }, undefined, 2);
  }

  /** Reads what {@link toText} wrote. */
  static fromText(text: string, sealer: Sealer): StackState {
    const read = JSON.parse(text) as {
      resources: (ResourceState & { inputs: { [key: string]: Plain }; outputs: { [key: string]: Plain } })[];
      pendingOperations: PendingOperation[];
    };
    return new StackState(
      read.resources.map((r) => ({ ...r, inputs: sealer.openAll(r.inputs), outputs: sealer.openAll(r.outputs) })),
      read.pendingOperations,
    );
  }
}
