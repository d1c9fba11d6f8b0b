import { setTimeout as delay } from 'node:timers/promises';
import { childTypes, type AnyKind, type CommonStatus } from '../../constructs/kind/kind';
import { MANAGED_BY_LABEL } from '../../constructs/kube/envelope';
import type { Condition, KubeObject } from '../../constructs/kube/kube-object';
import { owned, type ResourceType } from '../../constructs/kube/resource-type';
import { refOf, type ObjectRef } from '../../operator/client/api-client';
import { expectedChildren, expectedShared, type ExpectedChild, type OperatorProcess } from '../../testing';
import type { TestEnv } from './test-env';

/** Expects the children of an object to stand as rendered, with their envelope, and no others of its own. */
export async function expectChildren(env: TestEnv, kind: AnyKind, owner: KubeObject): Promise<void> {
  const expected = expectedChildren(kind, owner);
  await expectObjects(env, expected);
  expect(await ownedBy(env, kind, owner)).toEqual(expected.map(({ object }) => titleOf(object)).sort());
}

/** Waits until the children of an object stand so. */
export async function waitForChildren(env: TestEnv, kind: AnyKind, owner: KubeObject): Promise<void> {
  const { namespace } = owner.metadata;
  const watched = childTypes(kind).map((type) => ({ type, ...(namespace === undefined ? {} : { namespace }) }));
  const describe = `the children of ${owner.kind} ${owner.metadata.name} to stand as rendered`;
  await env.whenChanged(describe, watched, async () => {
    await expectChildren(env, kind, owner);
    return true;
  });
}

/** Expects objects to stand as they would be written; what the server or others add does not matter. */
export async function expectObjects(env: TestEnv, expected: readonly ExpectedChild[]): Promise<void> {
  for (const { type, object } of expected) {
    expect(await env.client.get(type, refOf(object))).toMatchObject(object);
  }
}

/** Waits until objects stand so. */
export async function untilStanding(env: TestEnv, expected: readonly ExpectedChild[]): Promise<void> {
  const watched = expected.map(({ type, object }) => ({ type, ...refOf(object) }));
  const names = expected.map(({ object }) => titleOf(object)).join(', ');
  await env.whenChanged(`${names} to stand as rendered`, watched, async () => {
    await expectObjects(env, expected);
    return true;
  });
}

/** All children that the objects of a kind are to have, those that they share too. */
export function childrenOfAll(kind: AnyKind, owners: readonly KubeObject[]): readonly ExpectedChild[] {
  return [...owners.flatMap((owner) => expectedChildren(kind, owner)), ...expectedShared(kind, owners)];
}

/** The names of what an object controls, by kind. */
async function ownedBy(env: TestEnv, kind: AnyKind, owner: KubeObject): Promise<readonly string[]> {
  const { namespace, uid } = owner.metadata;
  const lists = await Promise.all(
    childTypes(kind).map(async (type) => env.client.list(type, namespace === undefined ? {} : { namespace })),
  );
  return lists
    .flatMap(({ items }) => items)
    .filter(({ metadata }) => metadata.ownerReferences?.some((o) => o.controller === true && o.uid === uid))
    .map(titleOf)
    .sort();
}

/** An object in an expectation: `Deployment web`. */
export function titleOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata.name}`;
}

/** A condition of an object, if it has it. */
export function findCondition(object: KubeObject, type: string): Condition | undefined {
  return statusOf(object).conditions?.find((candidate) => candidate.type === type);
}

/** The status of a condition of an object, if it has it. */
export function conditionStatus(object: KubeObject, type: string): string | undefined {
  return findCondition(object, type)?.status;
}

/** Whether a condition stands at this status, for the generation that stands. */
export function hasCondition(object: KubeObject, type: string, status: Condition['status']): boolean {
  const found = findCondition(object, type);
  return found?.status === status && found.observedGeneration === object.metadata.generation;
}

/** Whether the object is Ready as it stands now, not as it stood a change ago. */
export function isReadyNow(object: KubeObject): boolean {
  return hasCondition(object, 'Ready', 'True') && statusOf(object).observedGeneration === object.metadata.generation;
}

function statusOf(object: KubeObject): CommonStatus {
  return object.status ?? {};
}

const EVENTS: ResourceType = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  plural: 'events',
  scope: 'Namespaced',
};

/** An event as `events.k8s.io/v1` has it. */
interface RecordedEvent extends KubeObject {
  readonly type: string;
  readonly reason: string;
  readonly note: string;
  readonly regarding: { readonly kind: string; readonly name: string; readonly uid: string };
}

/** Waits for an event about an object. */
export async function waitForEvent(env: TestEnv, object: KubeObject, reason: string): Promise<RecordedEvent> {
  const { namespace = 'default', uid } = object.metadata;
  const describe = `an event ${reason} about ${object.kind} ${object.metadata.name}`;
  return env.whenChanged(describe, [{ type: EVENTS, namespace }], async () => {
    const { items } = await env.client.list(EVENTS, { namespace });
    return (items as readonly RecordedEvent[]).find((event) => event.regarding.uid === uid && event.reason === reason);
  });
}

/** Waits until an operator has nothing left to do and has looked at so many keys at least. */
export async function waitUntilIdle(env: TestEnv, operator: OperatorProcess, reconciles = 0): Promise<void> {
  await env.eventually(`the operator to have nothing left to do after ${String(reconciles)} reconciles`, async () => {
    const metrics = await operator.metrics();
    return metrics.openWork() === 0 && metrics.sum('controller_runtime_reconcile_total') >= reconciles
      ? true
      : undefined;
  });
}

/** When everything counts as settled. */
interface SettleOptions<T> {
  readonly describe: string;
  /** The operator that works at the moment. */
  readonly operator: () => Promise<OperatorProcess>;
  /** Reads how things are. @throws Error with what is not as it must be yet */
  readonly check: () => Promise<T>;
  /** What must be the same in two reads, such as the versions of all objects. */
  readonly versions: (state: T) => string;
  /** For how long that must stay the same, in milliseconds. @default from one read to the next */
  readonly stillMs?: number;
  /** How long it may take, in milliseconds. @default as long as anything else */
  readonly timeoutMs?: number;
}

/**
 * Waits until all is as it must be and nothing moves any more: the operator has nothing left to do and has
 * missed no event, and nothing changes from one read to the next, the operator's process included.
 *
 * @throws Error with what was wrong at last
 */
export async function settle<T>(env: TestEnv, options: SettleOptions<T>): Promise<T> {
  const { operator, check, versions, stillMs = 0 } = options;
  let last: { readonly running: OperatorProcess; readonly seen: string } | undefined;
  const settled = async (): Promise<T | undefined> => {
    // What is wrong in between begins the wait again.
    const before = last;
    last = undefined;
    const running = await operator();
    const state = await check();
    const metrics = await running.metrics();
    expect({ openWork: metrics.openWork(), missed: metrics.sum('kindred_missed_events_total') }).toEqual({
      openWork: 0,
      missed: 0,
    });
    const seen = versions(state);
    if (before?.seen === seen && before.running === running && (await operator()) === running) return state;
    last = { running, seen };
    await delay(stillMs);
    return undefined;
  };
  return env.eventually(options.describe, settled, options.timeoutMs);
}

/** A change of a child that somebody else makes; each must be undone. */
type Edit = readonly [what: string, patch: object];

/** The edits that any Deployment of ours must come back from. */
export function deploymentEdits(container: string): readonly Edit[] {
  return [
    ['label removed', { metadata: { labels: { [MANAGED_BY_LABEL]: null } } }],
    ['image changed', { spec: { template: { spec: { containers: [{ name: container, image: 'stranger:1' }] } } } }],
  ];
}

/** One more for a kind that renders the number of pods. */
export const replicasEdit: Edit = ['replicas changed', { spec: { replicas: 7 } }];

/** Edits a Deployment in several ways, then deletes it, and expects it back as rendered each time. */
export async function expectDeploymentRestored(
  env: TestEnv,
  kind: AnyKind,
  owner: ObjectRef,
  child: ObjectRef,
  edits: readonly Edit[],
): Promise<void> {
  const live = await env.get(kind.type, owner);
  for (const [, patch] of edits) {
    await env.patch(owned.Deployment, child, patch);
    await waitForChildren(env, kind, live);
  }
  const { uid } = (await env.get(owned.Deployment, child)).metadata;
  await env.client.delete(owned.Deployment, child);
  await env.waitUntil(owned.Deployment, child, 'to be made anew', ({ metadata }) => metadata.uid !== uid);
  await waitForChildren(env, kind, live);
  await env.waitUntil(kind.type, owner, 'Ready again', isReadyNow);
}
