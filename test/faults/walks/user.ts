import type { AnyKind } from '../../../constructs/kind/kind';
import { sharedKeys, withDefaults } from '../../../constructs/kind/render';
import { OWNER_UID_ANNOTATION, PAUSED_ANNOTATION, SHARED_KEY_ANNOTATION } from '../../../constructs/kube/envelope';
import type { JsonObject, KubeObject } from '../../../constructs/kube/kube-object';
import type { ApiClient, ObjectRef } from '../../../operator/client/api-client';
import { ApiError } from '../../../operator/client/errors';
import { waitFor } from '../../../testing/wait-for';
import { operatorKinds } from '../../support/test-env';
import { ClusterView } from './cluster-view';
import { slotAt, type Propagation, type Slot, type UserStep } from './steps';

/** How long a name may take to become free before the user gives up, in milliseconds: with a finalizer and no operator it never does. */
const freeWithinMs = 3_000;
const options = { fieldManager: 'user' };

/** A user who goes straight to the API server, and notes what it takes. */
export class User {
  constructor(
    private readonly client: ApiClient,
    private readonly namespace: string,
    private readonly slots: readonly Slot[],
    private readonly ledger: DesiredState,
  ) {}

  /**
   * Does a step.
   *
   * @returns what came of it, for people
   * @throws ApiError when the server refuses
   */
  async perform(step: UserStep): Promise<string> {
    const slot = slotAt(this.slots, step.at);
    const kind = operatorKinds[slot.kind] as AnyKind;
    const ref = { namespace: this.namespace, name: slot.name };
    switch (step.do) {
      case 'put':
        return this.put(kind, ref, step.specs[slot.kind] ?? {});
      case 'change':
        return this.change(kind, ref, changed(step.specs[slot.kind] ?? {}, step));
      case 'scale':
        return this.scale(kind, ref, step.to);
      case 'pause':
        return this.change(kind, ref, { metadata: { annotations: { [PAUSED_ANNOTATION]: step.on ? 'true' : null } } });
      case 'delete':
        return this.delete(kind, ref, step.propagation);
      case 'again':
        await this.delete(kind, ref, step.propagation);
        return this.create(kind, ref, step.specs[slot.kind] ?? {}, freeWithinMs);
    }
  }

  private async put(kind: AnyKind, ref: ObjectRef, spec: JsonObject): Promise<string> {
    if (this.ledger.find(kind.kind, ref.name) === undefined) return this.create(kind, ref, spec, 0);
    const patch = [{ op: 'add', path: '/spec', value: spec }];
    return this.noted(this.client.patch(kind.type, ref, patch, { ...options, type: 'json' }));
  }

  /** @param patienceMs how long it is tried while an older object of the name is still going */
  private async create(kind: AnyKind, ref: ObjectRef, spec: JsonObject, patienceMs: number): Promise<string> {
    const body = { apiVersion: kind.apiVersion, kind: kind.kind, metadata: ref, spec };
    const created = await waitFor(
      async () => {
        try {
          return await this.client.create(kind.type, body, options);
        } catch (error) {
          if (!(error instanceof ApiError) || error.reason === 'AlreadyExists') throw error;
          return error;
        }
      },
      { timeout: patienceMs, describe: 'the name to be free' },
    ).catch((error: unknown) => {
      const { cause } = error as Error;
      throw cause instanceof ApiError ? cause : error;
    });
    if (created instanceof ApiError) throw created;
    return this.noted(Promise.resolve(created));
  }

  private change(kind: AnyKind, ref: ObjectRef, patch: object): Promise<string> {
    return this.noted(this.client.patch(kind.type, ref, patch, { ...options, type: 'merge' }));
  }

  private async scale(kind: AnyKind, ref: ObjectRef, to: number): Promise<string> {
    if (kind.scale === undefined) return this.change(kind, ref, { spec: { replicas: to } });
    const scaled = { spec: { replicas: to } };
    await this.client.patch(kind.type, ref, scaled, { ...options, type: 'merge', subresource: 'scale' });
    // The answer is a Scale; the object itself is what users want from now on.
    const object = await this.client.get(kind.type, ref);
    return this.noted(object === undefined ? Promise.reject(new Error('scaled, and gone')) : Promise.resolve(object));
  }

  private async delete(kind: AnyKind, ref: ObjectRef, propagation: Propagation): Promise<string> {
    if (propagation === 'Orphan') await this.release(kind, ref.name);
    const found = await this.client.delete(kind.type, ref, { propagation });
    if (found) this.ledger.deleted({ kind: kind.kind, name: ref.name });
    return found ? 'begun' : 'there was none';
  }

  /** What the owner holds at this moment stays when it goes; what is made until then says by its annotations for whom. */
  private async release(kind: AnyKind, name: string): Promise<void> {
    const view = await ClusterView.load(this.client, this.namespace);
    const owner = view.ownersOf(kind).find(({ metadata }) => metadata.name === name);
    if (owner === undefined) return;
    const { uid } = owner.metadata;
    this.ledger.release(uid);
    for (const { group, key } of sharedKeys(kind, withDefaults(kind, owner))) {
      this.ledger.release(`${kind.crdName}/${group.name}/${key}`);
    }
    for (const { object } of view.ownedObjects()) {
      if (object.metadata.ownerReferences?.some((reference) => reference.uid === uid) === true)
        this.ledger.release(object.metadata.uid);
    }
  }

  private async noted(answer: Promise<KubeObject>): Promise<string> {
    const object = await answer;
    // A change of one that is going is no wish that it should stand.
    if (object.metadata.deletionTimestamp === undefined) this.ledger.accepted(object);
    return 'taken';
  }
}

function changed(spec: JsonObject, { field, unset }: { readonly field: number; readonly unset: boolean }): object {
  const names = Object.keys(spec);
  const name = names[field % names.length];
  return { spec: name === undefined ? {} : { [name]: unset ? null : spec[name] } };
}

/** What the API server took of what users wanted, and what was let go on purpose: all that a walk's end is measured by. */
export class DesiredState {
  /** The last answer about each object that is to stand, by `kind/name`. */
  private readonly wanted = new Map<string, KubeObject>();
  /** Owners that were deleted with their children left behind, and children whose owner references somebody took away. */
  private readonly released = new Set<string>();

  /** The server has created or changed an object. */
  accepted(object: KubeObject): void {
    this.wanted.set(keyOf(object), object);
  }

  /** The server has begun to delete it. */
  deleted({ kind, name }: { readonly kind: string; readonly name: string }): void {
    this.wanted.delete(`${kind}/${name}`);
  }

  /**
   * Whatever bears this UID, belonged to what bears it, or was made for this shared key may stay when nobody owns it any more.
   *
   * @param sign a UID, or a shared key as the annotation says it
   */
  release(sign: string | undefined): void {
    if (sign !== undefined) this.released.add(sign);
  }

  isReleased({ metadata: { uid = '', annotations = {} } }: KubeObject): boolean {
    const signs = [uid, annotations[OWNER_UID_ANNOTATION], annotations[SHARED_KEY_ANNOTATION]];
    return signs.some((sign) => sign !== undefined && this.released.has(sign));
  }

  /** What users want, if they want it. */
  find(kind: string, name: string): KubeObject | undefined {
    return this.wanted.get(`${kind}/${name}`);
  }

  all(): readonly KubeObject[] {
    return [...this.wanted.values()];
  }
}

function keyOf({ kind, metadata: { name } }: KubeObject): string {
  return `${kind}/${name}`;
}
