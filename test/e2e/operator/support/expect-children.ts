import { childTypes, type AnyKind } from '../../../../constructs/kind/kind';
import type { KubeObject } from '../../../../constructs/kube/kube-object';
import { refOf } from '../../../../operator/client/api-client';
import { expectedChildren, type ExpectedChild } from '../../../../testing';
import type { Bench } from './bench';

/** Expects the children of an object to stand as rendered, with their envelope, and no others of its own. */
export async function expectChildren(bench: Bench, kind: AnyKind, owner: KubeObject): Promise<void> {
  const expected = expectedChildren(kind, owner);
  await expectStanding(bench, expected);
  expect(await ownedBy(bench, kind, owner)).toEqual(expected.map(({ object }) => nameOf(object)).sort());
}

/** Waits until the children of an object stand so. */
export async function childrenStand(bench: Bench, kind: AnyKind, owner: KubeObject): Promise<void> {
  const { namespace } = owner.metadata;
  const watched = childTypes(kind).map((type) => ({ type, ...(namespace === undefined ? {} : { namespace }) }));
  const describe = `the children of ${owner.kind} ${owner.metadata.name} to stand as rendered`;
  await bench.whenChanged(describe, watched, async () => {
    await expectChildren(bench, kind, owner);
    return true;
  });
}

/** Expects objects to stand as they would be written; what the server or others add does not matter. */
export async function expectStanding(bench: Bench, expected: readonly ExpectedChild[]): Promise<void> {
  for (const { type, object } of expected) {
    expect(await bench.client.get(type, refOf(object))).toMatchObject(object);
  }
}

/** Waits until objects stand so. */
export async function untilStanding(bench: Bench, expected: readonly ExpectedChild[]): Promise<void> {
  const watched = expected.map(({ type, object }) => ({ type, ...refOf(object) }));
  const names = expected.map(({ object }) => nameOf(object)).join(', ');
  await bench.whenChanged(`${names} to stand as rendered`, watched, async () => {
    await expectStanding(bench, expected);
    return true;
  });
}

/** The names of what an object controls, by kind. */
export async function ownedBy(bench: Bench, kind: AnyKind, owner: KubeObject): Promise<readonly string[]> {
  const { namespace, uid } = owner.metadata;
  const lists = await Promise.all(
    childTypes(kind).map(async (type) => bench.client.list(type, namespace === undefined ? {} : { namespace })),
  );
  return lists
    .flatMap(({ items }) => items)
    .filter(({ metadata }) => metadata.ownerReferences?.some((o) => o.controller === true && o.uid === uid))
    .map(nameOf)
    .sort();
}

function nameOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata.name}`;
}
