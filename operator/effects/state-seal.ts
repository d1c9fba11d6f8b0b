import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { MANAGED_BY, MANAGED_BY_LABEL, OWNER_UID_ANNOTATION, STATE_KEY_SECRET } from '../../constructs/kube/envelope';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { groupOf, owned } from '../../constructs/kube/resource-type';
import type { ApiClient, ObjectRef } from '../client/api-client';
import { ApiError } from '../client/errors';
import { PlanError } from './plan-runner';
import type { Secret, StateData } from './state-secret';

/** The only key of a sealed state's data. */
const SEALED = 'state';
/** AES-256 in Galois/Counter Mode. Source: NIST SP 800-38D. */
const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
/** How much of the key's SHA-256 tells keys apart. */
const ID_BYTES = 8;
/** Random, as the standard allows for up to 2^32 states under one key. */
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Seals the states of objects that are kept in the namespaces of their users, who may read and change what is there: a
 * user could otherwise have the operator act, with its own credentials, on what belongs to somebody else.
 *
 * Guarantees: who does not have the key can neither read a state nor make one, nor pass the state of one object off as
 * that of another. A state that is not authentic is not even parsed.
 *
 * Caveat: an older state of an object of the same name passes; who may write there can so have a plan run again.
 *
 * The key is made when the first state is sealed, in a Secret that nothing but this reads; it belongs into the backup of
 * the cluster. A key that is deleted while an operator runs is stored again by that operator; a state is never opened
 * by a key that was made for it anew.
 */
export class StateSeal {
  /** As it was last read. */
  private key: Buffer | undefined;

  constructor(
    private readonly client: ApiClient,
    /** The operator's own. */
    private readonly namespace: string,
  ) {}

  /** @throws ApiError, TransportError when the key can neither be read nor be created */
  async seal(data: StateData, owner: KubeObject): Promise<StateData> {
    // Read each time: nobody could open a state again whose key is only in this process.
    const key = (await this.read()) ?? (await this.create());
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, key, iv).setAAD(identityOf(owner));
    const entries = Object.entries(data).map(([name, bytes]) => [name, bytes.toString('base64')] as const);
    const sealed = [cipher.update(JSON.stringify(Object.fromEntries(entries)), 'utf8'), cipher.final()];
    return { [SEALED]: Buffer.concat([idOf(key), iv, cipher.getAuthTag(), ...sealed]) };
  }

  /**
   * @param where - the object that holds the state, for the error
   * @throws PlanError `ErrState` when the state is not authentic, or the key is missing; ApiError, TransportError when the
   * key cannot be read
   */
  async open(data: StateData, owner: KubeObject, where: string): Promise<StateData> {
    const sealed = data[SEALED] ?? Buffer.alloc(0);
    const [id, rest] = [sealed.subarray(0, ID_BYTES), sealed.subarray(ID_BYTES)];
    const isIts = (key: Buffer | undefined): key is Buffer => key !== undefined && id.equals(idOf(key));
    const key = isIts(this.key) ? this.key : await this.read();
    const file = `Secret ${this.namespace}/${STATE_KEY_SECRET}`;
    if (key === undefined) {
      const { kind, metadata } = owner;
      const message = `The state of ${kind} ${metadata.name} in ${where} cannot be used: its key is missing. Restore ${file}.`;
      throw new PlanError('ErrState', message);
    }
    if (!isIts(key)) throw unreadable(owner, where, `it was changed, or sealed with another key than that of ${file}`);
    try {
      const [iv, tag] = [rest.subarray(0, IV_BYTES), rest.subarray(IV_BYTES, IV_BYTES + TAG_BYTES)];
      const decipher = createDecipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES })
        .setAAD(identityOf(owner))
        .setAuthTag(tag);
      const text = Buffer.concat([decipher.update(rest.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString();
      const entries = Object.entries(JSON.parse(text) as Readonly<Record<string, string>>);
      return Object.fromEntries(entries.map(([name, value]) => [name, Buffer.from(value, 'base64')]));
    } catch (cause) {
      throw unreadable(owner, where, 'it was changed by somebody else, or is that of another object', cause);
    }
  }

  private get ref(): Required<ObjectRef> {
    return { namespace: this.namespace, name: STATE_KEY_SECRET };
  }

  /** Stores the key: that of this process if it has one, since there are states that were sealed with it. */
  private async create(): Promise<Buffer> {
    const key = this.key ?? randomBytes(KEY_BYTES);
    const body = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        ...this.ref,
        labels: { [MANAGED_BY_LABEL]: MANAGED_BY },
        // It belongs to no object, so that none may name it as its input.
        annotations: { [OWNER_UID_ANNOTATION]: 'operator' },
      },
      type: 'Opaque',
      immutable: true,
      data: { key: key.toString('base64') },
    };
    try {
      await this.client.create(owned.Secret, body, { fieldManager: 'kindred-state' });
      this.key = key;
      return key;
    } catch (error) {
      if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
      // Another operator of this namespace, or another state, was first.
      const theirs = await this.read();
      if (theirs === undefined) throw error;
      return theirs;
    }
  }

  private async read(): Promise<Buffer | undefined> {
    const secret: Secret | undefined = await this.client.get(owned.Secret, this.ref);
    if (secret === undefined) return undefined;
    const key = Buffer.from(secret.data?.['key'] ?? '', 'base64');
    if (key.length === KEY_BYTES) return (this.key = key);
    throw new PlanError(
      'ErrState',
      `Secret ${this.namespace}/${STATE_KEY_SECRET} holds no key of ${KEY_BYTES} bytes. Restore it; or delete it if no state was ever sealed with it.`,
    );
  }
}

/** What a state is bound to. Not the UID, which is another after both were restored from a backup. */
function identityOf({ apiVersion, kind, metadata: { namespace = '', name } }: KubeObject): Buffer {
  return Buffer.from(JSON.stringify([groupOf({ apiVersion }), kind, namespace, name]), 'utf8');
}

function idOf(key: Buffer): Buffer {
  return createHash('sha256').update(key).digest().subarray(0, ID_BYTES);
}

function unreadable({ kind, metadata: { name } }: KubeObject, where: string, why: string, cause?: unknown): PlanError {
  return new PlanError(
    'ErrState',
    `The state of ${kind} ${name} in ${where} cannot be used: ${why}. Restore both as they were; or remove by hand what ` +
      `the effects of ${name} made, and delete ${where}, its finalizer too.`,
    { isTerminal: true, ...(cause === undefined ? {} : { cause }) },
  );
}
