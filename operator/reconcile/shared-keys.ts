import type { AnyKind } from '../../constructs/kind/kind';
import { sharedKeys, withDefaults, type SharedKey } from '../../constructs/kind/render';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { refOf, type ObjectRef } from '../client/api-client';
import type { Readiness } from '../status/conditions';
import type { FunctionLimits } from './function-limits';

/**
 * The shared keys that an object names, found within the time limit.
 *
 * @throws InvalidObjectError when the spec does not fit the schema; KindFunctionError
 */
export function sharedKeysOf(kind: AnyKind, limits: FunctionLimits, object: KubeObject): readonly SharedKey[] {
  return limits.of(object).run('shared keys', () => sharedKeys(kind, withDefaults(kind, object)));
}

/** Which objects of a kind name which shared keys. */
export class SharedKeyIndex {
  private readonly idsByObject = new Map<string, readonly string[]>();
  private readonly objectsById = new Map<string, Map<string, ObjectRef>>();

  constructor(
    private readonly kind: AnyKind,
    private readonly limits: FunctionLimits,
  ) {}

  /** Records which ids an object names now. @returns the ids that it names or named */
  update(object: KubeObject): readonly string[] {
    return this.set(object, this.idsOf(object));
  }

  /** Removes an object that was deleted. @returns the ids that it named */
  remove(object: KubeObject): readonly string[] {
    return this.set(object, []);
  }

  /** The ids that an object named at its last update. */
  ids(ref: ObjectRef): readonly string[] {
    return this.idsByObject.get(keyOf(ref)) ?? [];
  }

  /** The objects that name an id, in the order of their names: the order of owner references is part of what is applied. */
  objects(id: string): readonly ObjectRef[] {
    const refs = [...(this.objectsById.get(id)?.values() ?? [])];
    return refs.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  private idsOf(object: KubeObject): readonly string[] {
    if (this.kind.shared.length === 0) return [];
    try {
      const keys = sharedKeysOf(this.kind, this.limits, object);
      return keys.map(({ group, key }) => sharedId(group.name, object.metadata.namespace, key));
    } catch {
      // The object's own reconcile reports what is wrong with it, or with its kind. Until then it keeps its
      // ids.
      return this.ids(object.metadata);
    }
  }

  private set(object: KubeObject, ids: readonly string[]): readonly string[] {
    const key = keyOf(object.metadata);
    const before = this.ids(object.metadata);
    for (const id of before) if (!ids.includes(id)) this.drop(id, key);
    for (const id of ids) {
      const objects = this.objectsById.get(id) ?? new Map<string, ObjectRef>();
      this.objectsById.set(id, objects.set(key, refOf(object)));
    }
    if (ids.length === 0) this.idsByObject.delete(key);
    else this.idsByObject.set(key, ids);
    return [...new Set([...before, ...ids])];
  }

  private drop(id: string, key: string): void {
    const objects = this.objectsById.get(id);
    objects?.delete(key);
    if (objects?.size === 0) this.objectsById.delete(id);
  }
}

function keyOf({ namespace, name }: ObjectRef): string {
  return `${namespace ?? ''}/${name}`;
}

/** The state of the children of one shared key, for the objects that share them. */
export type SharedState =
  | { readonly state: 'applied' }
  /** Not applied, with what the objects that share them show in `Ready`. */
  | {
      readonly state: 'failed';
      readonly readiness: Readiness;
      /**
       * ServiceAccounts of the key that do not exist or are somebody else's: nothing may run under them.
       * @default none
       */
      readonly missingAccounts?: readonly string[];
    };

/** The states of shared keys, by {@link sharedId}. Undefined before the first reconcile of a key. */
export interface SharedStates {
  get(id: string): SharedState | undefined;
}

/** One string for a shared key: group, namespace and key. */
export function sharedId(group: string, namespace: string | undefined, key: string): string {
  return `${group}/${namespace ?? ''}/${key}`;
}
