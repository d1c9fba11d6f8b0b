import type { Problem } from '../kube/errors';
import type { JsonObject } from '../kube/kube-object';
import { nameProblem } from '../kube/names';
import type { ObjectKeyRef } from './reads';
import type { ResourceType } from '../kube/resource-type';

/**
 * An action outside the Kubernetes API for an object: `rke up`, steps on machines over SSH, a probe. The
 * declaration is data: the plan that it names decides what to do on which machine, and a provisioner executes
 * that plan.
 *
 * Guarantees:
 * - An effect runs when `when` is true and the hash of its input differs from that of its last success; with
 *   `everySeconds` it also runs again after that time. If nothing changed, nothing runs, after a restart too.
 * - One effect runs at a time per object, in the order of the declaration; each waits for the success of the
 *   one before.
 * - At most `maxAttempts` runs per input (and per period, with `everySeconds`), with exponential backoff
 *   between them; then the object is `Stalled` until its spec, something it reads, or the annotation
 *   `kindred.dev/reconcile-at` changes. Removal has the same limit; `kindred.dev/force-remove: "true"` skips
 *   it.
 * - Children that follow from a status field that an effect may still report for its present input are neither
 *   changed nor deleted until it has reported it or succeeded.
 * - A run that fails with `isTerminal` is the last one until such a change, with `everySeconds` too.
 * - Effects of the phase `apply` never run once the object is being deleted; those of the phase `remove` run
 *   only then, before the finalizer is dropped, and also when the last run of `apply` failed halfway.
 * - Inputs, steps, logs, events and status contain no secret: secrets are named by reference, and passed over
 *   stdin.
 *
 * Assumptions: `when`, `input`, `files` and `maxAttempts` are pure. Each step of the plan is idempotent: it
 * checks first whether it is done already. What must outlast a run is kept in a marker on the machine or in a
 * Secret. An effect does not need the children that follow from its own report.
 *
 * Caveats: a change of the spec does not stop a running effect; it is applied afterwards. An effect that is
 * still queued is requested again with the new input, at the end of the queue. A stopping process finishes
 * the running step and starts no other.
 */
export interface Effect<Self> {
  /** Names the effect within its kind, in status, metrics and messages: a DNS label. */
  readonly name: string;
  readonly phase: EffectPhase;
  /** The plan that executes the input, for example `rke.up`. A provisioner must know it. */
  readonly plan: string;
  /** @default always */
  readonly when?: (self: Self) => boolean;
  /**
   * All that the plan needs to know, as JSON; undefined fields are left out. Its hash decides whether the
   * effect must run again.
   */
  readonly input: (self: Self, read: InputReader) => Readonly<Record<string, unknown>>;
  /** Files, below the directory that the operator is configured with, whose content is part of the input. @default none */
  readonly files?: (self: Self) => readonly string[];
  /** How long one run may take, all steps together. At most a day. */
  readonly timeoutSeconds: number;
  readonly maxAttempts: (self: Self) => number;
  /** Run again after this time even if nothing changed: for probes. @default never */
  readonly everySeconds?: number;
  /**
   * The fields of the object's status that the runs report; a run that reports another one fails. Children that follow
   * from one of them wait while the effect has not succeeded for its present input. An effect that only checks something
   * reports none (`[]`), so that no child waits for it.
   * @default any field
   */
  readonly reports?: readonly string[];
  /**
   * One of the kind's own condition types: True while the last run for the current input succeeded.
   * @default none
   */
  readonly condition?: string;
}

/** Whether an effect applies what an object specifies, or removes it when the object is deleted. */
export type EffectPhase = 'apply' | 'remove';

/**
 * Digests of values outside the object. An effect's input contains digests of secrets, never the secrets
 * themselves.
 *
 * Errors: each function throws when the value does not exist; the effect then waits until it does.
 */
export interface InputReader {
  /** SHA-256, in hex, of one value of a Secret or ConfigMap that the kind's `reads` name, decoded. */
  readonly digest: (type: ResourceType, ref: ObjectKeyRef) => string;
  /** SHA-256, in hex, of a file that the effect's `files` name. */
  readonly fileDigest: (path: string) => string;
}

/** An effect of one object, as plain data: what a provisioner queues, hashes and hands to the plan. */
export interface EffectRun {
  readonly name: string;
  readonly phase: EffectPhase;
  readonly plan: string;
  readonly input: JsonObject;
  readonly timeoutSeconds: number;
  readonly maxAttempts: number;
  readonly everySeconds?: number;
}

/** The effects of a phase that concern `self`, in the order of the declaration. */
export function selectEffects<Self>(
  effects: readonly Effect<Self>[],
  self: Self,
  phase: EffectPhase,
): readonly Effect<Self>[] {
  return effects.filter((effect) => effect.phase === phase && (effect.when?.(self) ?? true));
}

/**
 * Whether the state of a kind's effects is stored, in a Secret or ConfigMap for each object. A kind all of whose effects
 * repeat (`everySeconds`) needs none: they are run again after a restart.
 */
export function storesState({ effects }: { readonly effects: readonly Effect<never>[] }): boolean {
  return effects.some(({ everySeconds }) => everySeconds === undefined);
}

/**
 * An effect of `self` with its input.
 *
 * @throws TypeError when the input is no JSON or `maxAttempts` is no positive integer; whatever `read` throws
 */
export function buildEffectRun<Self>(effect: Effect<Self>, self: Self, read: InputReader): EffectRun {
  const { name, phase, plan, timeoutSeconds, everySeconds } = effect;
  const maxAttempts = effect.maxAttempts(self);
  if (!Number.isInteger(maxAttempts) || maxAttempts < 1) {
    throw new TypeError(`the effect "${name}" may be attempted ${maxAttempts} times; give an integer of at least 1`);
  }
  const written = effect.input(self, read);
  const input = JSON.parse(JSON.stringify(written)) as JsonObject;
  assertJson(written, `the input of the effect "${name}"`);
  return {
    ...{ name, phase, plan, input, timeoutSeconds, maxAttempts },
    ...(everySeconds === undefined ? {} : { everySeconds }),
  };
}

/**
 * Rejects what is not JSON: it would be changed or lost on its way to the plan, and its hash would be wrong.
 */
function assertJson(value: unknown, path: string): void {
  const plain = value === null || ['string', 'boolean', 'undefined'].includes(typeof value) || Number.isFinite(value);
  if (plain) return;
  if (typeof value !== 'object' || !isPlain(value)) {
    throw new TypeError(`${path} is no JSON; give strings, numbers, booleans, lists and plain objects`);
  }
  for (const [key, item] of Object.entries(value)) assertJson(item, `${path}.${key}`);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype || prototype === null;
}

const PLAN_PATTERN = /^[a-z][a-z0-9]*([.][a-z][a-z0-9-]*)+$/;
const DAY_SECONDS = 86_400;
const MIN_PERIOD_SECONDS = 10;

/** What is wrong with a kind's effects. */
export function effectProblems(
  effects: readonly Effect<never>[],
  {
    hasFinalizer,
    conditionTypes,
    statusFields,
  }: {
    readonly hasFinalizer: boolean;
    readonly conditionTypes: readonly string[];
    readonly statusFields: readonly string[];
  },
): Problem[] {
  const problems: Problem[] = [];
  const names = new Set<string>();
  effects.forEach((effect, i) => {
    const check = (ok: boolean, field: string, message: string): void => {
      if (!ok) problems.push({ path: `effects[${String(i)}].${field}`, message });
    };
    const { name, phase, plan, timeoutSeconds, everySeconds = DAY_SECONDS, condition } = effect;
    const problem = nameProblem(name, { format: 'dns-label' });
    check(problem === undefined, 'name', problem ?? '');
    check(!names.has(name), 'name', `"${name}" stands twice`);
    names.add(name);
    check(PLAN_PATTERN.test(plan), 'plan', `"${plan}" must be lower-case words joined by dots, such as rke.up`);
    const declared = condition === undefined || conditionTypes.includes(condition);
    check(declared, 'condition', `"${String(condition)}" is none of the kind's conditionTypes`);
    const unknown = effect.reports?.find((field) => !statusFields.includes(field));
    check(unknown === undefined, 'reports', `"${String(unknown)}" is none of the fields of the kind's status`);
    const timely = Number.isInteger(timeoutSeconds) && timeoutSeconds >= 1 && timeoutSeconds <= DAY_SECONDS;
    check(timely, 'timeoutSeconds', `${timeoutSeconds} must be an integer from 1 to ${DAY_SECONDS}`);
    const seldom = Number.isInteger(everySeconds) && everySeconds >= MIN_PERIOD_SECONDS;
    check(seldom, 'everySeconds', `${everySeconds} must be an integer of at least ${MIN_PERIOD_SECONDS}`);
    check(
      phase === 'apply' || effect.everySeconds === undefined,
      'everySeconds',
      'what is removed once is not removed again; leave it out',
    );
    check(
      phase === 'apply' || hasFinalizer,
      'phase',
      'without a finalizer the object is gone before its removal could run; give the kind one',
    );
  });
  return problems;
}
