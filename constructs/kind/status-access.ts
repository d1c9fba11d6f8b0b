import { RenderError } from '../kube/errors';
import type { Condition, KubeObject } from '../kube/kube-object';
import type { AnyKind, KindObject } from './kind';
import { describeObject } from './validate';

/**
 * Called with what is read: `status`, `status.image`, `status.*` when all fields are listed, or
 * `status.conditions[Found]` when more than the type of an {@link unknownCondition} is read.
 */
export type StatusReadListener = (path: string) => void;

/**
 * An object for `children`. In a kind without effects its status throws when it is read: only `observe` writes it, from
 * the children, so that children rendered from it would depend on themselves. Moreover, the status is empty in
 * `pulumi preview` and in snapshot tests, and on the server it may be lost, or of an earlier version of the operator.
 *
 * @param onRead - called for the status of a kind with effects. @default nothing is
 */
export function withStatusForChildren<K extends AnyKind>(
  kind: K,
  self: KindObject<K>,
  onRead: StatusReadListener = () => undefined,
): KindObject<K> {
  if (kind.effects.length > 0) return withListener(self, onRead);
  const message =
    "its kind renders children from self.status, which only the kind's own `observe` writes, from those children; render them from the spec";
  return withRefusedStatus(self, message);
}

/** An object for the `key` of a group of shared children: its status throws when it is read, since it may be lost. */
export function withoutStatusForKey<K extends AnyKind>(self: KindObject<K>, group: string): KindObject<K> {
  const message = `its kind takes the key of the shared children "${group}" from self.status, which may be lost; take it from the spec`;
  return withRefusedStatus(self, message);
}

const UNKNOWN = Symbol('unknown');

/** A condition in a status for `children` of which no more is known than that the kind has it. */
export function unknownCondition(type: string): Condition {
  const condition: Condition = { type, status: 'Unknown', reason: 'Pending', message: '', lastTransitionTime: '' };
  return Object.assign(condition, { [UNKNOWN]: true });
}

function withRefusedStatus<O extends KubeObject>(self: O, message: string): O {
  const readable: KubeObject = { ...(self as KubeObject) };
  // Not enumerable, so that copying the object does not read its status.
  Object.defineProperty(readable, 'status', {
    enumerable: false,
    get: () => {
      throw new RenderError(describeObject(self), message);
    },
  });
  return readable as O;
}

function withListener<O extends KubeObject>(self: O, onRead: StatusReadListener): O {
  const { status } = self as KubeObject;
  const watched = status === undefined ? undefined : watchFields(status as object, onRead);
  const readable: KubeObject = { ...(self as KubeObject) };
  // Enumerable, because a copy of the object has the status, and what it has is read later.
  Object.defineProperty(readable, 'status', {
    enumerable: true,
    get: () => {
      onRead('status');
      return watched;
    },
  });
  return readable as O;
}

function watchFields(status: object, onRead: StatusReadListener): object {
  const read = (field: string | symbol): void => {
    // `toJSON` is looked for by JSON.stringify, which then lists the fields.
    if (typeof field === 'string' && !(field in Object.prototype) && field !== 'toJSON') onRead(`status.${field}`);
  };
  return new Proxy(status, {
    get(target, field, receiver) {
      read(field);
      const value = Reflect.get(target, field, receiver) as unknown;
      if (field !== 'conditions' || !Array.isArray(value)) return value;
      return (value as readonly Condition[]).map((one) => (UNKNOWN in one ? watchCondition(one, onRead) : one));
    },
    has(target, field) {
      read(field);
      return Reflect.has(target, field);
    },
    getOwnPropertyDescriptor(target, field) {
      read(field);
      return Reflect.getOwnPropertyDescriptor(target, field);
    },
    ownKeys(target) {
      onRead('status.*');
      return Reflect.ownKeys(target);
    },
  });
}

function watchCondition(condition: Condition, onRead: StatusReadListener): Condition {
  const path = `status.conditions[${condition.type}]`;
  return new Proxy(condition, {
    get(target, field, receiver) {
      if (typeof field === 'string' && field !== 'type' && field in target) onRead(path);
      return Reflect.get(target, field, receiver) as unknown;
    },
    ownKeys(target) {
      onRead(path);
      return Reflect.ownKeys(target);
    },
  });
}
