import { childTypes } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { typeKey, type ResourceType } from '../../../constructs/kube/resource-type';
import { waitFor } from '../../../local/testing';
import { expectedChildren, expectedShared } from '../../../testing';
import { operatorKinds, type Bench } from '../../e2e/operator/support/bench';
import { condition, ready } from '../../e2e/operator/support/conditions';
import { form } from '../form';
import { leftBehind } from './left-behind';
import type { Load } from './load';

/** After a long outage, delays have grown as long as it was; and a machine that does ten things at once is slow. */
const patienceMs = form({ short: 100_000, long: 240_000 });

/** Waits until everything stands that the specs describe, and nothing else. */
export async function endStateReached(load: Load): Promise<void> {
  const { namespace } = load;
  await waitFor(
    async () => {
      await expectEndState(load);
      return true;
    },
    { describe: `the end state of ${namespace}`, timeout: patienceMs, interval: 250 },
  );
}

/**
 * Expects that the objects of the six kinds are those that live, all Ready as they stand now; that their children, and those that they
 * share, stand as rendered; and that nothing is left that belonged to others.
 */
export async function expectEndState({ bench, namespace, living }: Load): Promise<void> {
  const owners = await Promise.all(operatorKinds.map(({ type }) => itemsOf(bench, type, namespace)));
  const types = new Map(operatorKinds.flatMap(childTypes).map((type) => [typeKey(type), type]));
  const children = (await Promise.all([...types.values()].map((type) => itemsOf(bench, type, namespace)))).flat();
  const expected = operatorKinds.flatMap((kind, i) => {
    const ofKind = [...(owners[i] ?? [])].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    return [...ofKind.flatMap((owner) => expectedChildren(kind, owner)), ...expectedShared(kind, ofKind)];
  });
  const isOurs = ({ metadata }: KubeObject): boolean =>
    metadata.ownerReferences?.some(({ kind }) => operatorKinds.some((known) => known.kind === kind)) === true;
  // All at once: what is still there of an owner tells why it is.
  expect({
    owners: owners.flat().map(standing).sort(),
    notReady: owners.flat().flatMap(whyNotReady),
    children: children.filter(isOurs).map(standing).sort(),
    leftBehind: children
      .filter(isOurs)
      .map(leftBehind)
      .filter((path) => path !== undefined),
  }).toEqual({
    owners: living.map(({ kind, name }) => `${kind.kind} ${name}`).sort(),
    notReady: [],
    children: expected.map(({ object }) => titleOf(object)).sort(),
    leftBehind: [],
  });
  for (const { object } of expected)
    expect(children.find((child) => titleOf(child) === titleOf(object))).toMatchObject(object);
}

async function itemsOf(bench: Bench, type: ResourceType, namespace: string): Promise<readonly KubeObject[]> {
  return (await bench.client.list(type, { namespace })).items;
}

/** An object by its title, and where it is being deleted, what holds it. */
function standing(object: KubeObject): string {
  const { deletionTimestamp, finalizers = [] } = object.metadata;
  if (deletionTimestamp === undefined) return titleOf(object);
  return `${titleOf(object)}, going since ${deletionTimestamp}, held by ${finalizers.join(', ')}`;
}

function whyNotReady(owner: KubeObject): readonly string[] {
  if (ready(owner)) return [];
  return [`${titleOf(owner)}: ${condition(owner, 'Ready')?.message ?? 'no condition'}`];
}

function titleOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata.name}`;
}
