import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import { resolve, sep } from 'node:path';
import type { InputReader } from '../../constructs/kind/effects';
import { errorMessage } from '../../constructs/kube/errors';
import { callKindFunction } from '../../constructs/kube/function-error';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { owned, typeKey, type ResourceType } from '../../constructs/kube/resource-type';
import { resolveReads, type ObjectKeyRef, type Read } from '../../constructs/kind/reads';
import { describeObject } from '../../constructs/kind/validate';
import type { ApiClient, ObjectRef } from '../client/api-client';
import { ApiError } from '../client/errors';
import { missingRule, withStop } from './forbidden';
import { PlanError } from './plan-runner';

/** Largest file or value that is read, in bytes: what a Secret can hold. */
const MAX_BYTES = 1_048_576;

/** What effects may read. */
export interface ReadPolicy {
  /** Namespaces whose Secrets are read for an object. */
  readonly namespacesFor: (by: KubeObject) => readonly string[];
  /** Directory whose files are read. @default none */
  readonly directory?: string;
  /**
   * Why an object may not read a Secret of these namespaces that it names; undefined when it may.
   * @default it may
   */
  readonly denyReason?: (secret: KubeObject, by: KubeObject) => string | undefined;
}

/** Reads what an effect's input is made of. */
export interface HashedInputReader extends InputReader {
  /** SHA-256, in hex, of the data of all objects that were read, also of data that is part of no input. */
  readonly contentHash: string;
}

/**
 * Reads Secrets and files for effects, within limits.
 *
 * Errors: PlanError saying which reference is not allowed, or what is missing. No message contains a value.
 */
export class EffectInputReader {
  constructor(
    private readonly client: ApiClient,
    private readonly limits: ReadPolicy,
  ) {}

  /** One value of a Secret. @param by - the object that names it */
  async secret(ref: ObjectKeyRef, by: KubeObject): Promise<string> {
    return this.valueOf(owned.Secret, ref, await this.objectAt(owned.Secret, ref, by)).toString('utf8');
  }

  /** The text of a file below the directory. */
  async file(path: string): Promise<string> {
    return (await this.bytesOf(path)).toString('utf8');
  }

  /**
   * Reads everything that the kind's reads of an object and an effect's files name, so that the effect's
   * input can then be built synchronously.
   *
   * @param optional - what is missing or not allowed is skipped. @default false
   */
  async reader<Self extends KubeObject>(
    reads: readonly Read<Self>[],
    self: Self,
    files: readonly string[],
    { optional = false }: { readonly optional?: boolean } = {},
  ): Promise<HashedInputReader> {
    const objects = new Map<string, KubeObject>();
    const digests = new Map<string, string>();
    const named = callKindFunction(describeObject(self), `${self.kind}.reads`, () => resolveReads(reads, self));
    for (const { type, ref } of named) {
      const object = await this.objectAt(type, ref, self, { isDeclared: true }).catch((error: unknown) => {
        if (optional && (error instanceof PlanError || (error instanceof ApiError && error.code === 403)))
          return undefined;
        throw error;
      });
      if (object !== undefined) objects.set(idOf(type, ref), object);
    }
    for (const path of files) digests.set(path, sha256(await this.bytesOf(path)));
    return {
      contentHash: contentHashOf(objects),
      digest: (type, ref) => {
        const object = objects.get(idOf(type, ref));
        if (object === undefined) throw new TypeError(`${idOf(type, ref)} is none of the kind's reads`);
        return sha256(this.valueOf(type, ref, object));
      },
      fileDigest: (path) => {
        const digest = digests.get(path);
        if (digest === undefined) throw new TypeError(`"${path}" is none of the effect's files`);
        return digest;
      },
    };
  }

  /** @param isDeclared - it is one of the kind's reads. @default false */
  private async objectAt(
    type: ResourceType,
    ref: ObjectRef,
    by: KubeObject,
    { isDeclared = false }: { readonly isDeclared?: boolean } = {},
  ): Promise<KubeObject> {
    const what = `${type.kind} ${ref.namespace ?? ''}/${ref.name}`;
    const { namespacesFor, denyReason } = this.limits;
    const namespaces = namespacesFor(by);
    if (type.scope === 'Namespaced' && !namespaces.includes(ref.namespace ?? '')) {
      const allowed = namespaces.length === 0 ? 'none' : namespaces.join(', ');
      throw new PlanError(
        'ErrNamespaceNotAllowed',
        `${what} is not read: the namespaces to read from are ${allowed}. Move it there, or configure its namespace too.`,
        { isTerminal: true },
      );
    }
    const object = await this.get(type, ref, by, isDeclared);
    const why = object === undefined ? undefined : denyReason?.(object, by);
    if (why !== undefined) {
      const message = `${what} is not read: ${why}. Name another Secret.`;
      throw new PlanError('ErrSecretNotAllowed', message, { isTerminal: true });
    }
    if (object !== undefined) return object;
    throw new PlanError('ErrNotFound', `${what} does not exist. Create it, or correct the reference.`);
  }

  private async get(
    type: ResourceType,
    ref: ObjectRef,
    by: KubeObject,
    isDeclared: boolean,
  ): Promise<KubeObject | undefined> {
    try {
      return await this.client.get(type, ref);
    } catch (error) {
      // The kind's reads grant what is in the object's own namespace, or of the cluster's scope.
      const isDerived = isDeclared && (ref.namespace === undefined || ref.namespace === by.metadata.namespace);
      const rule = missingRule(error, by, { isDerived });
      if (rule === undefined) throw error;
      throw new PlanError('ErrForbidden', `${withStop(errorMessage(error))} ${rule}`, { cause: error });
    }
  }

  private valueOf(type: ResourceType, ref: ObjectKeyRef, object: KubeObject): Buffer {
    const { data } = object as { readonly data?: Readonly<Record<string, string>> };
    const value = data?.[ref.key];
    if (value !== undefined) {
      // A ConfigMap's data is text; a Secret's is base64.
      return typeKey(type) === typeKey(owned.Secret) ? Buffer.from(value, 'base64') : Buffer.from(value, 'utf8');
    }
    const what = `${type.kind} ${ref.namespace ?? ''}/${ref.name}`;
    throw new PlanError('ErrNotFound', `${what} has no key "${ref.key}". Add it, or correct the reference.`);
  }

  private async bytesOf(path: string): Promise<Buffer> {
    const { directory } = this.limits;
    if (directory === undefined) {
      throw refused(path, 'no directory is configured to read files from', 'Start with --config-dir, or use a Secret.');
    }
    const root = await realpath(directory).catch((cause: unknown) => {
      throw refused(path, 'the configured directory cannot be read', 'See --config-dir.', cause);
    });
    const wanted = resolve(root, path);
    // Checks the path as text first: an error must not reveal whether a file exists elsewhere.
    if (!isBelow(root, wanted) && !isBelow(resolve(directory), wanted)) throw refused(path, ...LEAVES);
    const real = await realpath(wanted).catch((cause: unknown) => {
      throw refused(
        path,
        'it cannot be found in the configured directory',
        'Put it there, or correct the path.',
        cause,
      );
    });
    if (!isBelow(root, real)) throw refused(path, ...LEAVES);
    return readRegular(path, real);
  }
}

const LEAVES = ['it leads out of the configured directory', 'Put the file itself there.'] as const;

function isBelow(root: string, path: string): boolean {
  return path.startsWith(root.endsWith(sep) ? root : root + sep);
}

/**
 * Reads the file that a path was resolved to. A link that has replaced it since is not followed, and a pipe
 * is not waited for.
 */
async function readRegular(path: string, real: string): Promise<Buffer> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(real, flags).catch((cause: unknown) => {
    throw refused(path, 'it cannot be opened', 'See that it is a file that the operator may read.', cause);
  });
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw refused(path, 'it is no regular file', 'Name a file.');
    const { size } = stat;
    if (size > MAX_BYTES) throw refused(path, `it has ${size} bytes; at most ${MAX_BYTES} are read`, 'Name another.');
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

function refused(path: string, why: string, help: string, cause?: unknown): PlanError {
  return new PlanError('ErrFile', `The file "${path}" is not read: ${why}. ${help}`, {
    ...(cause === undefined ? { isTerminal: true } : { cause }),
  });
}

function idOf(type: ResourceType, ref: ObjectRef): string {
  return `${typeKey(type)} ${ref.namespace ?? ''}/${ref.name}`;
}

/** Hashes the data only: labels and the like do not count. */
function contentHashOf(objects: ReadonlyMap<string, KubeObject>): string {
  const entries = [...objects].map(([id, object]) => [
    id,
    Object.entries((object['data'] as object | undefined) ?? {}).sort(),
  ]);
  return sha256(Buffer.from(JSON.stringify(entries)));
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
