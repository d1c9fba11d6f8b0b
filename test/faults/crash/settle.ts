import { childTypes } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned, type WorkloadObject } from '../../../constructs/kube/resource-type';
import { expectedChildren, expectedShared, type ExpectedChild, type OperatorProcess } from '../../../testing';
import { ready } from '../../e2e/operator/support/conditions';
import type { CrashingOperator } from './crashing-operator';
import type { Scene, Stage } from './life';

/** What stands in a scene: the objects of the kind, and everything of the types that they have for children. */
export interface Standing {
  readonly owners: readonly KubeObject[];
  readonly children: readonly KubeObject[];
}

/** Every namespace has them. */
const CLUSTERS_OWN = ['ConfigMap kube-root-ca.crt', 'ServiceAccount default'];

/**
 * Waits until the change of a stage is dealt with: its objects are Ready, exactly their children stand, as rendered and current, and the
 * operator has nothing left to do; and nothing of it changes from one look to the next. The patience begins anew with every crash.
 *
 * @throws Error at the end of the patience, with what was still open
 */
export async function settle(scene: Scene, stage: Stage, subject: CrashingOperator): Promise<Standing> {
  for (;;) {
    const crashes = subject.crashes.length;
    try {
      return await settleAtOnce(scene, stage, subject);
    } catch (error) {
      if (subject.crashes.length === crashes) throw error;
    }
  }
}

function settleAtOnce(scene: Scene, stage: Stage, subject: CrashingOperator): Promise<Standing> {
  let before = '';
  return scene.bench.eventually(`the stage ${stage.name} to settle`, async () => {
    const operator = await subject.living();
    const standing = await lookAround(scene);
    expectSettled(scene, stage, standing);
    await expectQuiet(operator);
    const now = versionsOf(standing) + String(subject.writes.length);
    const isStill = now === before && operator === (await subject.living());
    before = now;
    return isStill ? standing : undefined;
  });
}

async function lookAround({ bench, kind, namespace }: Scene): Promise<Standing> {
  const [owners = [], ...children] = await Promise.all(
    [kind.type, ...childTypes(kind)].map(async (type) => {
      const { items } = await bench.client.list(type, { namespace });
      // In a list they do not say what they are.
      return items.map((item) => ({ ...item, apiVersion: type.apiVersion, kind: type.kind }));
    }),
  );
  return { owners, children: children.flat().filter((child) => !CLUSTERS_OWN.includes(titleOf(child))) };
}

function expectSettled({ kind }: Scene, stage: Stage, { owners, children }: Standing): void {
  expect(owners.map(({ metadata }) => metadata.name).sort()).toEqual([...stage.objects].sort());
  const expected = [...owners.flatMap((owner) => expectedChildren(kind, owner)), ...expectedShared(kind, owners)];
  expect(children.map(titleOf).sort()).toEqual(expected.map(({ object }) => titleOf(object)).sort());
  for (const each of expected) expectStanding(each, children);
  for (const child of children) if (child.kind === owned.Deployment.kind) expectCurrent(child);
  expect(owners.filter((owner) => !ready(owner)).map(({ status }) => status)).toEqual([]);
}

function expectStanding({ object }: ExpectedChild, children: readonly KubeObject[]): void {
  expect(children.find((child) => titleOf(child) === titleOf(object))).toMatchObject(object);
}

function expectCurrent({ metadata, spec, status = {} }: WorkloadObject): void {
  const { observedGeneration, replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = status;
  const wanted = spec?.replicas;
  expect({ observedGeneration, replicas, updatedReplicas, availableReplicas }).toEqual({
    observedGeneration: metadata.generation,
    replicas: wanted,
    updatedReplicas: wanted,
    availableReplicas: wanted,
  });
}

async function expectQuiet(operator: OperatorProcess): Promise<void> {
  const metrics = await operator.metrics();
  const open = metrics.sum('workqueue_depth') + metrics.sum('controller_runtime_active_workers');
  expect({ open, missed: metrics.sum('kindred_missed_events_total') }).toEqual({ open: 0, missed: 0 });
}

function titleOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata.name}`;
}

function versionsOf({ owners, children }: Standing): string {
  return [...owners, ...children].map(({ metadata }) => `${metadata.uid}/${metadata.resourceVersion};`).join('');
}
