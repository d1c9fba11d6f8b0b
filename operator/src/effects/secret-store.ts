import { isDeepStrictEqual } from 'node:util';
import { MANAGED_BY, MANAGED_BY_LABEL, OWNER_UID_ANNOTATION, ownerReference } from '../../../constructs/core/envelope';
import type { KubeObject } from '../../../constructs/core/kube-object';
import { owned } from '../../../constructs/core/owned';
import type { ApiClient } from '../client/api-client';
import { ApiError } from '../client/errors';
import type { EffectRecord } from './effect-record';
import { EMPTY_STATE } from './effect-store';
import type { EffectState, EffectStore } from './effect-store';
import { PlanError } from './plan-runner';

/** Key of the records within the Secret. */
const RECORDS = 'effects.json';
/** In front of the names of values, as keys of the Secret. */
const VALUE = 'value.';

/**
 * The largest state that is stored, in bytes of its values: a Secret holds 1 MiB.
 * Source: `MaxSecretSize` of `k8s.io/api/core/v1`.
 */
export const MAX_STATE_BYTES = 1_048_576;

const FIELD_MANAGER = 'kindred-state';

interface Secret extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** What a {@link SecretStore} is made of. */
export interface SecretStoreOptions {
  readonly client: ApiClient;
  /** Where the Secrets are. */
  readonly namespace: string;
  /** The name of an object's Secret. */
  readonly nameOf: (owner: KubeObject) => string;
  /** Whether the Secret stays when its owner goes. */
  readonly retain: (owner: KubeObject) => boolean;
  /** Names of Secrets that others write, and that stay or go with it. @default none */
  readonly besides?: (owner: KubeObject) => readonly string[];
}

/**
 * Keeps the state of effects in a Secret for each object.
 *
 * Guarantees: a Secret of another owner is neither read nor written; each write bears the UID and resourceVersion that were read, so that
 * two processes never overwrite each other's state: a Conflict (409) means that it must be loaded anew. One that was deleted is made again.
 *
 * Caveat: an object and its Secret go together. Restoring one without the other from a backup makes the UID differ: see `adopt`.
 *
 * Errors: PlanError `ErrResourceExists` for a Secret of somebody else, `ErrStateTooLarge` beyond 1 MiB.
 */
export class SecretStore implements EffectStore {
  private readonly standing = new Map<string, Secret>();
  /** By name: for which owner it was seen whether it stays. */
  private readonly claimed = new Map<string, string>();

  constructor(private readonly options: SecretStoreOptions) {}

  async load(owner: KubeObject): Promise<EffectState> {
    const { client, namespace, nameOf } = this.options;
    const name = nameOf(owner);
    const secret = await client.get(owned.Secret, { namespace, name });
    if (secret === undefined) {
      this.standing.delete(name);
      return EMPTY_STATE;
    }
    this.assertOurs(owner, secret);
    this.standing.set(name, secret);
    return decode(secret);
  }

  async save(owner: KubeObject, state: EffectState): Promise<void> {
    const body = this.bodyOf(owner, state);
    const { name } = body.metadata;
    const before = this.standing.get(name);
    try {
      this.standing.set(name, before === undefined ? await this.create(owner, body) : await this.update(before, body));
    } catch (error) {
      // Deleted by somebody: what is known here is all that is left of it.
      if (before === undefined || !(error instanceof ApiError) || error.code !== 404) throw error;
      this.standing.set(name, await this.create(owner, body));
    }
  }

  async claim(owner: KubeObject): Promise<void> {
    const { client, namespace, nameOf, retain, besides } = this.options;
    const key = `${owner.metadata.uid ?? ''} ${String(retain(owner))}`;
    const name = nameOf(owner);
    if (this.claimed.get(name) === key) return;
    const names = [name, ...(besides?.(owner) ?? [])];
    for (const each of names) {
      const secret = await client.get(owned.Secret, { namespace, name: each });
      if (secret?.metadata.annotations?.[OWNER_UID_ANNOTATION] !== owner.metadata.uid || secret === undefined) continue;
      const { ownerReferences = [] } = secret.metadata;
      if ((ownerReferences.length === 0) === retain(owner)) continue;
      const wanted = retain(owner) ? [] : [ownerReference(owner)];
      const written = await this.update(secret, {
        ...secret,
        metadata: { ...secret.metadata, ownerReferences: wanted },
      });
      if (each === name) this.standing.set(name, written);
    }
    this.claimed.set(name, key);
  }

  private update(before: Secret, body: Secret): Promise<Secret> {
    const { uid, resourceVersion } = before.metadata;
    const precise = { ...body, metadata: { ...body.metadata, uid, resourceVersion } };
    return this.options.client.update(owned.Secret, precise, { fieldManager: FIELD_MANAGER });
  }

  private async create(owner: KubeObject, body: Secret): Promise<Secret> {
    const { client, namespace } = this.options;
    try {
      return await client.create(owned.Secret, body, { fieldManager: FIELD_MANAGER });
    } catch (error) {
      if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
      const secret: Secret | undefined = await client.get(owned.Secret, { namespace, name: body.metadata.name });
      if (secret === undefined) throw error;
      this.assertOurs(owner, secret);
      // An answer of ours that was lost; or another process was first, whose state counts.
      if (!isDeepStrictEqual(secret.data, body.data)) throw error;
      return secret;
    }
  }

  private bodyOf(owner: KubeObject, { records, values }: EffectState): Secret {
    const { namespace, nameOf, retain } = this.options;
    const data: Record<string, string> = { [RECORDS]: encode(JSON.stringify(records)) };
    for (const [name, value] of Object.entries(values)) data[VALUE + name] = encode(value);
    const name = nameOf(owner);
    const bytes = Object.values(data).reduce((sum, value) => sum + Buffer.byteLength(value, 'base64'), 0);
    if (bytes > MAX_STATE_BYTES) {
      throw new PlanError(
        'ErrStateTooLarge',
        `The state of ${owner.kind} ${owner.metadata.name} has ${bytes} bytes; the Secret ${namespace}/${name} holds at most ` +
          `${MAX_STATE_BYTES}. Make it smaller: fewer nodes, or a cluster of its own for some of them.`,
        { hopeless: true },
      );
    }
    return {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        ...{ namespace, name },
        labels: { [MANAGED_BY_LABEL]: MANAGED_BY },
        annotations: { [OWNER_UID_ANNOTATION]: owner.metadata.uid ?? '' },
        // Not a controller's: nothing renders it, so nothing may prune it.
        ...(retain(owner) ? {} : { ownerReferences: [ownerReference(owner)] }),
      },
      type: 'Opaque',
      data,
    };
  }

  private assertOurs(owner: KubeObject, secret: KubeObject): void {
    const { name, uid } = owner.metadata;
    const theirs = secret.metadata.annotations?.[OWNER_UID_ANNOTATION];
    if (theirs === uid) return;
    const whose = theirs === undefined ? 'is not ours' : `belongs to an earlier object of that name (UID ${theirs})`;
    throw new PlanError(
      'ErrResourceExists',
      `Secret ${secret.metadata.namespace ?? ''}/${secret.metadata.name} ${whose}, and ${owner.kind} ${name} keeps its state there. ` +
        `Delete or rename it; to go on with its state, set its annotation ${OWNER_UID_ANNOTATION} to ${uid ?? ''}.`,
      { hopeless: true },
    );
  }
}

function decode({ data = {} }: Secret): EffectState {
  const text = (value: string): string => Buffer.from(value, 'base64').toString('utf8');
  const records = data[RECORDS] === undefined ? {} : (JSON.parse(text(data[RECORDS])) as Record<string, EffectRecord>);
  const values = Object.entries(data)
    .filter(([key]) => key.startsWith(VALUE))
    .map(([key, value]) => [key.slice(VALUE.length), text(value)]);
  return { records, values: Object.fromEntries(values) as Record<string, string> };
}

function encode(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64');
}
