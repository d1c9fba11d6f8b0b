import * as fc from 'fast-check';
import type { AnyKind } from '../../../constructs/kind/kind';
import type { Json, JsonObject } from '../../../constructs/kube/kube-object';
import { CronTab, Foo, MicroServiceDeploy } from '../../../constructs/kinds';
import { specOf } from '../../support/spec-arbitrary';

/** Some of these are names of objects too, so that objects of one kind and of several meet under one name. */
const childName = fc.constantFrom<Json>('a', 'b', 'd', 'e', 'f');

/** Now and then something that a Deployment's validation refuses, such as a blank. */
const image = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom<Json>('nginx:1', 'nginx:2', 'busybox') },
  { weight: 1, arbitrary: fc.string({ minLength: 1, maxLength: 20 }) },
);
const pods = (min: number): fc.Arbitrary<Json> => fc.integer({ min, max: 3 });

/** Written in ways that the server stores otherwise. */
const requirements = fc.constantFrom<Json>(
  {},
  { requests: { cpu: '1000m', memory: '1024Mi' } },
  { requests: { cpu: '0.25' }, limits: { cpu: '0.5', memory: '1e9' } },
  { limits: { cpu: 1 } },
);

/**
 * What stands in a field instead of what its schema admits: names that meet, numbers of pods that one fake node starts at once, schedules that
 * never come due while a test runs (a Job that starts is a change of its own).
 */
const instead: Readonly<Record<string, fc.Arbitrary<Json>>> = {
  image,
  podImage: image,
  size: pods(0),
  replicas: pods(0),
  // It cannot be changed, so mostly it is the same.
  msName: fc.oneof({ weight: 4, arbitrary: fc.constant('a') }, { weight: 1, arbitrary: fc.constant('g') }),
  fullName: childName,
  deploymentName: childName,
  resourceRequirements: requirements,
  cronSpec: fc.constantFrom<Json>('0 0 30 2 *', '15 3 31 Apr ?', '59 23 30 2 *'),
  timeZone: fc.constantFrom<Json>('Europe/Berlin', 'UTC', 'Etc/GMT+3', 'Nowhere/AtAll'),
};

/** Specs of a kind: all of them fit the schema's own keywords; rules across fields, and the children, the server may refuse. */
export function specsOf(kind: AnyKind): fc.Arbitrary<JsonObject> {
  const sane = fc.record(kind === Foo ? { ...instead, replicas: pods(1) } : instead);
  return fc.tuple(specOf(kind.schema.spec), sane, fc.nat(9)).map(([spec, chosen, n]) => {
    const fields = Object.entries(spec as JsonObject);
    const object = Object.fromEntries(fields.map(([field, value]) => [field, chosen[field] ?? value]));
    // One in ten breaks the rules across fields, and is refused.
    return n === 0 ? object : fitting(kind, object, n);
  });
}

/** Keeps to the rules across fields. */
function fitting(kind: AnyKind, spec: JsonObject, n: number): JsonObject {
  if (kind === CronTab) return { image: 'busybox', cronSpec: '0 0 30 2 *', ...spec };
  if (kind !== MicroServiceDeploy) return spec;
  const { config, configSecretRef, ...rest } = spec;
  const chosen = n % 3 === 0 ? { configSecretRef } : { config };
  return Object.fromEntries(
    Object.entries({ ...rest, ...chosen }).filter((entry): entry is [string, Json] => entry[1] !== undefined),
  );
}
