import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { nameOf, parseReference } from './registration';
import { Secret, Unknown, isMap, plain, textOf, type Plain, type Value, type Values } from './values';

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
  toText(sealer: SecretsManager): string {
    const resources = this.resources.map((r) => ({
      ...r,
      inputs: sealer.encryptSecrets(r.inputs),
      outputs: sealer.encryptSecrets(r.outputs),
    }));
    return JSON.stringify({ version: 1, resources, pendingOperations: this.pendingOperations }, undefined, 2);
  }

  /** Reads what {@link toText} wrote. */
  static fromText(text: string, sealer: SecretsManager): StackState {
    const read = JSON.parse(text) as {
      resources: (ResourceState & { inputs: { [key: string]: Plain }; outputs: { [key: string]: Plain } })[];
      pendingOperations: PendingOperation[];
    };
    return new StackState(
      read.resources.map((r) => ({
        ...r,
        inputs: sealer.decryptValues(r.inputs),
        outputs: sealer.decryptValues(r.outputs),
      })),
      read.pendingOperations,
    );
  }
}

/**
 * The books of a run: what the program has registered so far, what of the past it has not spoken of yet, and what was replaced and still
 * has to go.
 */
export class SnapshotManager {
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
  newState(urn: string): ResourceState | undefined {
    return this.news.get(urn);
  }

  /** A resource of the past that this run has not dealt with, with references to what moved brought up to date. */
  oldState(urn: string): ResourceState | undefined {
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
  put(resource: ResourceState, oldUrn?: string): void {
    if (oldUrn !== undefined) this.olds.delete(oldUrn);
    this.news.set(resource.urn, resource);
  }

  /** The resource is replaced by a new one of its URN, and deleted later. */
  markForDeletion(old: ResourceState, oldUrn: string): void {
    this.olds.delete(oldUrn);
    this.replaced.add({ ...old, delete: true });
  }

  /** The resource is gone. */
  remove(resource: ResourceState): void {
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

const sealedKey = 'secret';
const markKey = '@sealed';

/** Encrypts secrets on their way into the state's text, and back: AES-256-GCM, the key from a passphrase. */
export class SecretsManager {
  private readonly key: Buffer;

  constructor(passphrase: string) {
    this.key = createHash('sha256').update(passphrase).digest();
  }

  /** The value as JSON, each secret as `{"@sealed": true, "secret": "<base64>"}`. */
  encryptSecrets(value: Value): Plain {
    if (value instanceof Secret) return { [markKey]: true, [sealedKey]: this.encrypt(JSON.stringify(plain(value))) };
    if (value instanceof Unknown) throw new Error('an unknown value has no place in a state');
    if (Array.isArray(value)) return value.map((item) => this.encryptSecrets(item));
    if (!isMap(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.encryptSecrets(item)]));
  }

  /**
   * Reads back what {@link encryptSecrets} wrote.
   *
   * @throws Error when the passphrase is another one
   */
  decryptSecrets(sealed: Plain): Value {
    if (Array.isArray(sealed)) return sealed.map((item) => this.decryptSecrets(item));
    if (typeof sealed !== 'object' || sealed === null) return sealed;
    if (sealed[markKey] === true)
      return new Secret(
        JSON.parse(this.decrypt(textOf(sealed[sealedKey], `"${sealedKey}" of a sealed value`))) as Plain,
      );
    return this.decryptValues(sealed);
  }

  decryptValues(sealed: { [key: string]: Plain }): Values {
    return Object.fromEntries(Object.entries(sealed).map(([key, item]) => [key, this.decryptSecrets(item)]));
  }

  private encrypt(text: string): string {
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.key, nonce);
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64');
  }

  private decrypt(text: string): string {
    const bytes = Buffer.from(text, 'base64');
    const decipher = createDecipheriv('aes-256-gcm', this.key, bytes.subarray(0, 12));
    decipher.setAuthTag(bytes.subarray(12, 28));
    return decipher.update(bytes.subarray(28), undefined, 'utf8') + decipher.final('utf8');
  }
}
