import { errorMessage } from '../../constructs/kube/errors';
import { isDeepStrictEqual } from 'node:util';
import {
  MANAGED_BY,
  MANAGED_BY_LABEL,
  OWNER_UID_ANNOTATION,
  STATE_FINALIZER,
  ownerReference,
} from '../../constructs/kube/envelope';
import type { AnyKind } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { owned, type ResourceType } from '../../constructs/kube/resource-type';
import { uidOf, type ApiClient } from '../client/api-client';
import { ApiError } from '../client/errors';
import { getLiveMetadata } from '../apply/ownership';
import { EMPTY_STATE, type EffectState, type EffectStore } from './effect-state';
import { PlanError } from './plan-runner';
import type { StateSeal } from './state-seal';
import {
  RETAINED_ANNOTATION,
  decodeState,
  encodeState,
  hasLostOwner,
  isOrphanedBy,
  belongsTo,
  mergeSecret,
  markOrphaned,
  setOwner,
  markRetained,
  sizeOf,
  type Secret,
  type StateData,
} from './state-secret';

/**
 * The largest state that is stored, in bytes of its values: a Secret holds 1 MiB.
 * Source: `MaxSecretSize` of `k8s.io/api/core/v1`.
 */
export const MAX_STATE_BYTES = 1_048_576;

const FIELD_MANAGER = 'kindred-state';

/** How often a write is tried while others keep changing labels and the like in between. */
const MAX_TRIES = 5;

/** Options of {@link StateStore}. */
export interface StateStoreOptions {
  readonly client: ApiClient;
  /** The owners' kind. */
  readonly kind: AnyKind;
  /** An object's Secret, or ConfigMap if it is sealed. That of a namespaced object must be in its namespace, since owner references do not cross namespaces. */
  readonly refOf: (owner: KubeObject) => { readonly namespace: string; readonly name: string };
  /** How a state that is too large can be made smaller, for the error. @default the error does not say how */
  readonly sizeAdvice?: string;
  /** Whether the Secret stays when its owner is deleted. */
  readonly retain: (owner: KubeObject) => boolean;
  /**
   * Seals the states, each in a ConfigMap: for namespaces whose users must neither read nor make a state.
   * @default not sealed, each in a Secret
   */
  readonly seal?: StateSeal;
  /** Names of Secrets in its namespace that others write, and that stay or are deleted with it. @default none */
  readonly additionalSecrets?: (owner: KubeObject) => readonly string[];
  /**
   * Called about a Secret that could not be released though its owner was deleted: nothing else will release
   * it. @default no warning
   */
  readonly onWarning?: (message: string) => void;
}

/**
 * Stores the state of effects, in one Secret for each object; sealed, in a ConfigMap.
 *
 * Guarantees:
 * - A Secret of another owner is neither read nor written.
 * - Each write carries the UID and resourceVersion that were read, so that two processes never overwrite each
 *   other's state: after a Conflict (409) it must be loaded again.
 * - Labels, annotations and finalizers of others stay, and make no write fail.
 * - A save leaves owner references as they are: one that the garbage collector has removed is not added
 *   again.
 * - Where the kind has a finalizer, the Secret has one that keeps it until `release`: if somebody, or a foreground deletion of its owner, deletes
 *   it before, it is only being deleted until then, and is read and written as usual. If it is deleted all
 *   the same, it is created again.
 *
 * Caveat: an object and its Secret belong together. Restoring one without the other from a backup makes the
 * UID differ; the message of `ErrResourceExists` says what to do.
 *
 * Errors: PlanError `ErrResourceExists` for a Secret of somebody else, `ErrStateTooLarge` beyond 1 MiB.
 */
export class StateStore implements EffectStore {
  /** By the owner's UID: its Secret as it was last read or written. */
  private readonly lastSeen = new Map<string, Secret>();
  /** By the owner's UID: whether its Secrets were last made to stay without it. */
  private readonly ownershipSynced = new Map<string, boolean>();

  /** Where states are, and in which of its fields. */
  private readonly type: ResourceType;
  private readonly field: 'data' | 'binaryData';

  constructor(private readonly options: StateStoreOptions) {
    this.type = options.seal === undefined ? owned.Secret : owned.ConfigMap;
    this.field = options.seal === undefined ? 'data' : 'binaryData';
  }

  /** Whether the Secrets get a finalizer: a kind without one has nothing to undo, so that nothing needs its state at the end. */
  private get usesFinalizer(): boolean {
    return this.options.kind.finalizer !== undefined;
  }

  async load(owner: KubeObject): Promise<EffectState> {
    const { seal } = this.options;
    const secret = await this.read(owner);
    if (secret === undefined) {
      this.lastSeen.delete(uidOf(owner));
      return EMPTY_STATE;
    }
    this.assertOurs(owner, secret);
    const data = decodeData(secret[this.field]);
    const state = await decodeState(seal === undefined ? data : await seal.open(data, owner, this.whereOf(owner)));
    this.lastSeen.set(uidOf(owner), secret);
    return state;
  }

  async save(owner: KubeObject, state: EffectState): Promise<void> {
    const body = await this.bodyOf(owner, state);
    const before = this.lastSeen.get(uidOf(owner));
    const updated = before === undefined ? undefined : await this.update(before, (secret) => mergeSecret(secret, body));
    // If somebody deleted the Secret, only this process still has the state.
    this.lastSeen.set(uidOf(owner), updated ?? (await this.create(owner, body)));
  }

  async syncOwnerReference(owner: KubeObject): Promise<void> {
    const { retain } = this.options;
    const stays = retain(owner);
    if (this.ownershipSynced.get(uidOf(owner)) === stays) return;
    const [state, ...others] = await this.secretsOf(owner);
    // Read at most once, and only if it matters.
    let mayOwn: boolean | undefined;
    for (const secret of [state, ...others]) {
      if (secret === undefined) continue;
      const isState = secret === state;
      if (this.withOwnership(owner, secret, { isState, mayOwn: true }) === secret) continue;
      mayOwn ??= stays || (await this.mayOwn(owner, state));
      const claim = { isState, mayOwn };
      const written = await this.update(secret, (now) => this.withOwnership(owner, now, claim));
      // Only with the data that was loaded: the next save must still conflict with the data of another
      // process.
      const { field } = this;
      const isKnown = isDeepStrictEqual(written?.[field], this.lastSeen.get(uidOf(owner))?.[field]);
      if (isState && written !== undefined && isKnown) this.lastSeen.set(uidOf(owner), written);
    }
    this.ownershipSynced.set(uidOf(owner), stays);
  }

  async isOrphaned(owner: KubeObject): Promise<boolean> {
    if (this.options.retain(owner)) return false;
    const secret = await this.read(owner);
    return secret !== undefined && belongsTo(owner, secret) && isOrphanedBy(owner, secret);
  }

  async orphan(owner: KubeObject): Promise<readonly string[]> {
    const secrets = (await this.secretsOf(owner)).filter((secret) => secret !== undefined);
    for (const secret of secrets) {
      if (markOrphaned(owner, secret) !== secret) await this.update(secret, (now) => markOrphaned(owner, now));
    }
    return secrets.map(({ kind, metadata: { namespace = '', name } }) => `${kind} ${namespace}/${name}`);
  }

  async release(owner: KubeObject): Promise<void> {
    const secret = await this.read(owner);
    const { finalizers = [] } = secret?.metadata ?? {};
    if (secret === undefined || !belongsTo(owner, secret) || !finalizers.includes(STATE_FINALIZER)) return;
    const others = finalizers.filter((finalizer) => finalizer !== STATE_FINALIZER);
    const released = await this.put({ ...secret, metadata: { ...secret.metadata, finalizers: others } });
    this.lastSeen.set(uidOf(owner), released);
  }

  async forget(owner: KubeObject): Promise<void> {
    const last = this.lastSeen.get(uidOf(owner));
    this.lastSeen.delete(uidOf(owner));
    this.ownershipSynced.delete(uidOf(owner));
    if (last?.metadata.finalizers?.includes(STATE_FINALIZER) !== true) return;
    try {
      await this.release(owner);
    } catch (error) {
      const { namespace = '', name } = last.metadata;
      const why = errorMessage(error);
      this.options.onWarning?.(
        `the ${last.kind} ${namespace}/${name} stays though its owner is gone, until its finalizer ${STATE_FINALIZER} is taken off: ${why}`,
      );
    } finally {
      this.lastSeen.delete(uidOf(owner));
    }
  }

  /** The existing Secrets of an owner: that of its state first, undefined when there is none. */
  private async secretsOf(owner: KubeObject): Promise<readonly (Secret | undefined)[]> {
    const { client, refOf, additionalSecrets } = this.options;
    const { namespace } = refOf(owner);
    const found: (Secret | undefined)[] = [await this.read(owner)];
    for (const name of additionalSecrets?.(owner) ?? []) {
      found.push(await client.get(owned.Secret, { namespace, name }));
    }
    return found.map((secret) => (secret !== undefined && belongsTo(owner, secret) ? secret : undefined));
  }

  /**
   * Whether Secrets may get their owner: not when the garbage collector has just removed it, because the
   * owner is being deleted with `--cascade=orphan`. The cached owner may be older than that, so the live one
   * is read.
   */
  private async mayOwn(owner: KubeObject, state: Secret | undefined): Promise<boolean> {
    if (state !== undefined && !hasLostOwner(owner, state)) return true;
    const live = await getLiveMetadata(this.options, owner);
    return live?.metadata.uid === owner.metadata.uid && live?.metadata.deletionTimestamp === undefined;
  }

  /**
   * A Secret as its owner wants it: with an owner or without, and with the finalizer while the owner lives,
   * which older versions did not add.
   */
  private withOwnership(
    owner: KubeObject,
    secret: Secret,
    { isState, mayOwn }: { readonly isState: boolean; readonly mayOwn: boolean },
  ): Secret {
    const owned = this.options.retain(owner) ? markRetained(owner, secret) : mayOwn ? setOwner(owner, secret) : secret;
    const { finalizers = [], deletionTimestamp } = owned.metadata;
    const isHeld = finalizers.includes(STATE_FINALIZER);
    // If the owner is being deleted, the Secret may have been released already; and a Secret that is being
    // deleted can get no finalizer.
    const hold =
      this.usesFinalizer && isState && !isHeld && (owner.metadata.deletionTimestamp ?? deletionTimestamp) === undefined;
    if (hold) return { ...owned, metadata: { ...owned.metadata, finalizers: [...finalizers, STATE_FINALIZER] } };
    if (!isState || !isHeld || this.usesFinalizer) return owned;
    // An earlier version of the kind had something to undo.
    const others = finalizers.filter((finalizer) => finalizer !== STATE_FINALIZER);
    return { ...owned, metadata: { ...owned.metadata, finalizers: others } };
  }

  /**
   * Changes a Secret that was read. What others have changed since stays, as long as the data is the same.
   *
   * @returns undefined when it was deleted
   * @throws ApiError a Conflict (409) when the data has changed since, or the Secret is another one;
   * TransportError
   */
  private async update(
    before: Secret,
    change: (secret: Secret) => Secret,
    tries = MAX_TRIES,
  ): Promise<Secret | undefined> {
    try {
      return await this.put(change(before));
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return undefined;
      if (!(error instanceof ApiError) || error.code !== 409) throw error;
      const { namespace = '', name, uid } = before.metadata;
      const now: Secret | undefined = await this.options.client.get(typeOf(before), { namespace, name });
      // Deleted during the request: the server then reports that the UID differs.
      if (now === undefined) return undefined;
      const isSame = isDeepStrictEqual([now.data, now.binaryData], [before.data, before.binaryData]);
      if (now.metadata.uid !== uid || !isSame || tries <= 1) throw error;
      return this.update(now, change, tries - 1);
    }
  }

  private put(secret: Secret): Promise<Secret> {
    return this.options.client.update(typeOf(secret), secret, { fieldManager: FIELD_MANAGER });
  }

  private async create(owner: KubeObject, body: Secret): Promise<Secret> {
    try {
      return await this.options.client.create(this.type, body, { fieldManager: FIELD_MANAGER });
    } catch (error) {
      if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
      const secret = await this.read(owner);
      if (secret === undefined) throw error;
      this.assertOurs(owner, secret);
      // Either the response to our own request was lost, or another process was first, whose state counts.
      if (!isDeepStrictEqual(secret[this.field], body[this.field])) throw error;
      return secret;
    }
  }

  async assertFits(owner: KubeObject, state: EffectState): Promise<void> {
    await this.dataOf(owner, state, 'would have');
  }

  /** @throws PlanError `ErrStateTooLarge` */
  private async dataOf(owner: KubeObject, state: EffectState, has: string): Promise<Record<string, string>> {
    const { seal } = this.options;
    const encoded = await encodeState(state);
    const data = seal === undefined ? encoded : await seal.seal(encoded, owner);
    const bytes = sizeOf(data);
    if (bytes > MAX_STATE_BYTES) {
      const { sizeAdvice } = this.options;
      const advice = sizeAdvice === undefined ? '' : `: ${sizeAdvice}`;
      throw new PlanError(
        'ErrStateTooLarge',
        `The state of ${owner.kind} ${owner.metadata.name} ${has} ${bytes} bytes, compressed; ${this.whereOf(owner)} holds at ` +
          `most ${MAX_STATE_BYTES}. Make it smaller${advice}.`,
        { isTerminal: true },
      );
    }
    return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, value.toString('base64')]));
  }

  private async bodyOf(owner: KubeObject, state: EffectState): Promise<Secret> {
    const { refOf, retain } = this.options;
    const data = await this.dataOf(owner, state, 'has');
    return {
      apiVersion: 'v1',
      kind: this.type.kind,
      metadata: {
        ...refOf(owner),
        labels: { [MANAGED_BY_LABEL]: MANAGED_BY },
        annotations: {
          [OWNER_UID_ANNOTATION]: owner.metadata.uid ?? '',
          ...(retain(owner) ? { [RETAINED_ANNOTATION]: 'true' } : {}),
        },
        ...(this.usesFinalizer ? { finalizers: [STATE_FINALIZER] } : {}),
        ...(retain(owner) ? {} : { ownerReferences: [ownerReference(owner)] }),
      },
      ...(this.options.seal === undefined ? { type: 'Opaque' } : {}),
      [this.field]: data,
    };
  }

  private read(owner: KubeObject): Promise<Secret | undefined> {
    return this.options.client.get(this.type, this.options.refOf(owner));
  }

  /** What holds an object's state, for messages. */
  private whereOf(owner: KubeObject): string {
    const { namespace, name } = this.options.refOf(owner);
    return `${this.type.kind} ${namespace}/${name}`;
  }

  private assertOurs(owner: KubeObject, secret: KubeObject): void {
    const { name, uid } = owner.metadata;
    if (belongsTo(owner, secret)) return;
    const theirs = secret.metadata.annotations?.[OWNER_UID_ANNOTATION];
    const { deletionTimestamp, finalizers = [], ownerReferences = [] } = secret.metadata;
    const isHeld = finalizers.includes(STATE_FINALIZER);
    const hadOwner = ownerReferences.some((reference) => reference.kind === owner.kind && reference.name === name);
    if (!isHeld && (deletionTimestamp !== undefined || hadOwner)) {
      const message = `${this.whereOf(owner)} is the state of an earlier ${owner.kind} ${name}, and is deleted by the garbage collector in a moment.`;
      throw new PlanError('ErrResourceExists', message);
    }
    const held =
      isHeld && deletionTimestamp !== undefined
        ? ` It is being deleted, and goes once its finalizer ${STATE_FINALIZER} is taken off.`
        : '';
    const whose = theirs === undefined ? 'is not ours' : `belongs to an earlier object of that name (UID ${theirs})`;
    throw new PlanError(
      'ErrResourceExists',
      `${this.whereOf(owner)} ${whose}, and ${owner.kind} ${name} keeps its state there. ` +
        `Delete or rename it; to go on with its state, set its annotation ${OWNER_UID_ANNOTATION} to ${uid ?? ''}.${held}`,
      { isTerminal: true },
    );
  }
}

/** A state, or another Secret that goes with it. */
function typeOf({ kind }: Secret): ResourceType {
  return kind === owned.ConfigMap.kind ? owned.ConfigMap : owned.Secret;
}

function decodeData(data: Secret['data'] = {}): StateData {
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64')]));
}
