import { type Value, type Values, Secret, Unknown, isMap, unknown } from './values';

// How the SDK writes what JSON has no word for. The constants are the protocol's own (sdk/go/common/resource/properties.go).
const signatureKey = '4dabf18193072939515e22adb298388d';
const secretSignature = '1b47061264138c4ac30d75fd1eb44270';
const resourceSignature = '5cf8f73096256a8f31e491e813e4eb8e';
const outputSignature = 'd0e6a833031e9bbcd3f4e8bde6ca49a4';

/** Stands for an unknown on the wire. */
export const unknownOnWire = '04da6b54-80e4-46f7-96ec-b56ff0331ba9';

/** JSON as the protocol carries it. */
export type Wire = null | boolean | number | string | Wire[] | { [key: string]: Wire };

/** Reads the properties of a request. */
export function valuesFromWire(wire: { [key: string]: Wire }): Values {
  return Object.fromEntries(Object.entries(wire).map(([key, item]) => [key, fromWire(item)]));
}

/** Reads a value. A reference to a resource becomes its ID, as for a provider that knows no references. */
export function fromWire(wire: Wire): Value {
  if (wire === unknownOnWire) return unknown;
  if (typeof wire !== 'object' || wire === null) return wire;
  if (Array.isArray(wire)) return wire.map(fromWire);
  const { [signatureKey]: signature, ...rest } = wire;
  switch (signature) {
    case undefined:
      return valuesFromWire(wire);
    case secretSignature:
      return marked(fromWire(rest.value ?? null));
    case resourceSignature:
      return rest.id === undefined || rest.id === '' ? fromWire(rest.urn ?? '') : fromWire(rest.id);
    case outputSignature: {
      const value = rest.value === undefined ? unknown : fromWire(rest.value);
      return rest.secret === true ? marked(value) : value;
    }
    default:
      throw new Error('assets and archives are not supported by the test engine');
  }
}

function marked(value: Value): Secret {
  return value instanceof Secret ? value : new Secret(value);
}

/** Writes properties for a response. */
export function valuesToWire(values: Values): { [key: string]: Wire } {
  return Object.fromEntries(Object.entries(values).map(([key, item]) => [key, toWire(item)]));
}

/** Writes a value. */
export function toWire(value: Value): Wire {
  if (value instanceof Unknown) return unknownOnWire;
  if (value instanceof Secret) return { [signatureKey]: secretSignature, value: toWire(value.value) };
  if (Array.isArray(value)) return value.map(toWire);
  return isMap(value) ? valuesToWire(value) : value;
}
