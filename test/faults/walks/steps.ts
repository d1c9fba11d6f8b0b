import * as fc from 'fast-check';
import type { JsonObject } from '../../../constructs/kube/kube-object';
import { Foo, MicroServiceDeploy } from '../../../constructs/kinds';
import { operatorKinds } from '../../e2e/operator/support/bench';
import { driftNames, type DriftName } from './drift';
import { faultNames, type FaultName } from './walk-faults';
import { specsOf } from './specs';

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

export type Step = UserStep | DriftStep | WorldStep;

/** A step, and how long nothing is done after it, in milliseconds. */
export type Timed = Step & { readonly then: number };

/** What a walk consists of. */
export interface Walk {
  readonly slots: readonly Slot[];
  readonly steps: readonly Timed[];
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
  const timed = fc.tuple(step, pause).map(([what, then]): Timed => ({ ...what, then }));
  const slots = fc.uniqueArray(slot, {
    minLength: 3,
    maxLength: 5,
    selector: ({ kind, name }) => `${String(kind)}/${name}`,
  });
  const first = fc.array(specs, { minLength: 5, maxLength: 5 });
  return fc
    .tuple(slots, first, fc.array(timed, { minLength: length, maxLength: length }))
    .map(([chosen, firsts, further]) => {
      const puts = chosen.map((_, i): Timed => ({ do: 'put', at: i, specs: firsts[i] ?? [], then: 0 }));
      return { slots: chosen, steps: [...puts, ...further] };
    });
}

/** A step in a line, for people. */
export function lineOf({ slots }: Walk, step: Timed): string {
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
