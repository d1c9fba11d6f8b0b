import * as fc from 'fast-check';
import type { AnyKind } from '../../../constructs/kind/kind';
import { CronTab, Foo, MicroServiceDeploy } from '../../../constructs/kinds';
import type { Json, JsonObject } from '../../../constructs/kube/kube-object';
import { when, type Fault } from '../../../testing/fault-proxy/fault-proxy';
import {
  exceptLeases,
  conflict,
  cutResponse,
  cutEvents,
  delayedEvents,
  gone,
  goneInStream,
  internalError,
  dropResponse,
  resetBefore,
  resetMidway,
  slow,
  withProbability,
  staleReads,
  stall,
  tooManyRequests,
  truncatedResponse,
  unavailable,
} from '../../../testing/fault-proxy/faults';
import { specArbitrary } from '../../support/spec-arbitrary';
import { operatorKinds } from '../../support/test-env';
import { driftNames, type DriftName } from './drift';

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
  timeZone: fc.constantFrom<Json>('Europe/Berlin', 'UTC', 'Etc/GMT+3'),
};

/** Specs of a kind: all of them fit the schema's own keywords; rules across fields, and the children, the server may refuse. */
function specsOf(kind: AnyKind): fc.Arbitrary<JsonObject> {
  const sane = fc.record(kind === Foo ? { ...instead, replicas: pods(1) } : instead);
  return fc.tuple(specArbitrary(kind.schema.spec), sane, fc.nat(9)).map(([spec, chosen, n]) => {
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

/** What a fault may need to know. */
interface FaultContext {
  /** Which requests are hurt. */
  readonly seed: string;
  /** The cluster's present revision. */
  readonly revision: string;
}

/** The faults of a walk. Those that hurt a share leave the others, so that the operator gets on, and into states that it must get out of. */
const faults = {
  'reset before': ({ seed }) => withProbability(seed, 0.3, resetBefore),
  'reset midway': ({ seed }) => withProbability(seed, 0.3, resetMidway),
  'lose answer': ({ seed }) => withProbability(seed, 0.3, dropResponse),
  'cut answer': ({ seed }) => withProbability(seed, 0.3, cutResponse),
  'truncate answer': ({ seed }) => withProbability(seed, 0.3, truncatedResponse),
  stall: ({ seed }) => withProbability(seed, 0.2, stall),
  slow: () => slow({ delayMs: 150 }),
  'too many requests': ({ seed }) => withProbability(seed, 0.4, tooManyRequests(1)),
  'internal error': ({ seed }) => withProbability(seed, 0.4, internalError),
  unavailable: ({ seed }) => withProbability(seed, 0.4, unavailable()),
  conflict: ({ seed }) => withProbability(seed, 0.4, conflict),
  gone: () => gone,
  'gone in stream': () => goneInStream(2),
  'cut events': () => cutEvents(2),
  'delayed events': () => delayedEvents(1000),
  partition: () => partition(1000),
  'stale reads': ({ revision }) => staleReads(() => revision),
} satisfies Record<string, (context: FaultContext) => Fault>;

/** Nothing reaches the server for a while, in milliseconds; when it does again, the server has forgotten where the watches were. */
function partition(ms: number): Fault {
  const until = Date.now() + ms;
  return (exchange) => (Date.now() < until ? resetBefore(exchange) : gone(exchange));
}

type FaultName = keyof typeof faults;

const faultNames = Object.keys(faults) as readonly FaultName[];

/** Faults that hurt nothing but watches, which otherwise stand as they are. */
const ofWatches: readonly FaultName[] = ['gone', 'gone in stream', 'cut events', 'delayed events', 'partition'];

/** Whether the connections that stand are cut when a fault begins. */
export function dropsConnectionsFirst(name: FaultName, seed: number): boolean {
  return ofWatches.includes(name) || seed % 2 === 0;
}

/** A fault by its name. Leases are left alone: without them the operator gives up, which is another test's. */
export function faultOf(name: FaultName, context: FaultContext): Fault {
  return when(exceptLeases, faults[name](context));
}

/** One object that a walk may create: a place in the cluster, whether or not something stands there. */
export interface Slot {
  /** Of `operatorKinds`. */
  readonly kind: number;
  readonly name: string;
}

export type Propagation = 'Background' | 'Foreground' | 'Orphan';

/** What users do with an object. `at` names one of the walk's slots. */
export type UserStep =
  /** Creates the object, or replaces its whole spec. */
  | { readonly do: 'put'; readonly at: number; readonly specs: readonly JsonObject[] }
  /** Changes one field of the spec, or takes it away. */
  | {
      readonly do: 'change';
      readonly at: number;
      readonly specs: readonly JsonObject[];
      readonly field: number;
      readonly unset: boolean;
    }
  | { readonly do: 'scale'; readonly at: number; readonly to: number }
  | { readonly do: 'pause'; readonly at: number; readonly on: boolean }
  | { readonly do: 'delete'; readonly at: number; readonly propagation: Propagation }
  /** Deletes the object and creates it again as soon as its name is free. */
  | {
      readonly do: 'again';
      readonly at: number;
      readonly propagation: Propagation;
      readonly specs: readonly JsonObject[];
    };

/** What somebody does with a child; `child` counts those that stand. */
export interface DriftStep {
  readonly do: 'drift';
  readonly child: number;
  readonly how: DriftName;
}

/** What happens to the operator, the API server and the network between. */
export type WorldStep =
  | { readonly do: 'crash' | 'freeze' | 'thaw' | 'restart-api-server' | 'compact-etcd' | 'calm' | 'cut' }
  | { readonly do: 'fault'; readonly fault: FaultName; readonly seed: number };

type Step = UserStep | DriftStep | WorldStep;

/** A step, and how long nothing is done after it, in milliseconds. */
export type TimedStep = Step & { readonly then: number };

/** What a walk consists of. */
export interface Walk {
  readonly slots: readonly Slot[];
  readonly steps: readonly TimedStep[];
}

const at = fc.nat(11);
/** A spec for each of the six kinds: which one is taken depends on the slot. */
const specs = fc.tuple(...operatorKinds.map(specsOf));
const propagation = fc.constantFrom<Propagation>('Background', 'Background', 'Foreground', 'Orphan');

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('put' as const), at, specs }) },
  {
    weight: 9,
    arbitrary: fc.record({
      ...{ do: fc.constant('change' as const), at, specs },
      ...{ field: fc.nat(20), unset: fc.nat(4).map((n) => n === 0) },
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('scale' as const), at, to: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pause' as const), at, on: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('delete' as const), at, propagation }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('again' as const), at, propagation, specs }) },
  {
    weight: 8,
    arbitrary: fc.record({
      ...{ do: fc.constant('drift' as const), child: fc.nat(40), how: fc.constantFrom(...driftNames) },
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      ...{ do: fc.constant('fault' as const), fault: fc.constantFrom(...faultNames), seed: fc.nat(999) },
    }),
  },
  {
    weight: 7,
    arbitrary: fc.record({
      do: fc.constantFrom('crash', 'crash', 'freeze', 'freeze', 'thaw', 'thaw', 'calm', 'cut', 'cut'),
    }),
  },
  // These take seconds, so they are rare.
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('restart-api-server', 'compact-etcd') }) },
);

/** The kinds with the most to go wrong come more often: children that are renamed, shared, seeded. */
const kindOfSlot = fc.oneof(
  { weight: 2, arbitrary: fc.nat(operatorKinds.length - 1) },
  { weight: 1, arbitrary: fc.constantFrom(operatorKinds.indexOf(MicroServiceDeploy), operatorKinds.indexOf(Foo)) },
);
const slot: fc.Arbitrary<Slot> = fc.record({ kind: kindOfSlot, name: fc.constantFrom('a', 'b', 'c') });

/** Walks of so many steps. They begin with an object in each slot, since steps on nothing lead nowhere. */
export function walks(length: number): fc.Arbitrary<Walk> {
  const pause = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 400 }));
  const timed = fc.tuple(step, pause).map(([what, then]): TimedStep => ({ ...what, then }));
  const slots = fc.uniqueArray(slot, {
    minLength: 3,
    maxLength: 5,
    selector: ({ kind, name }) => `${String(kind)}/${name}`,
  });
  const first = fc.array(specs, { minLength: 5, maxLength: 5 });
  return fc
    .tuple(slots, first, fc.array(timed, { minLength: length, maxLength: length }))
    .map(([chosen, firsts, further]) => {
      const puts = chosen.map((_, i): TimedStep => ({ do: 'put', at: i, specs: firsts[i] ?? [], then: 0 }));
      return { slots: chosen, steps: [...puts, ...further] };
    });
}

/** A step in a line, for people. */
export function formatStep({ slots }: Walk, step: TimedStep): string {
  const shown = Object.entries(step).filter(([name]) => !['at', 'then', 'specs'].includes(name));
  const what = JSON.stringify(Object.fromEntries(shown));
  if (!('at' in step)) return what;
  const { kind, name } = slotAt(slots, step.at);
  const spec = 'specs' in step ? ` ${JSON.stringify(step.specs[kind])}` : '';
  return `${what} ${operatorKinds[kind]?.kind ?? ''}/${name}${spec}`;
}

/** The slot that a step means. */
export function slotAt(slots: readonly Slot[], index: number): Slot {
  return slots[index % slots.length] as Slot;
}
