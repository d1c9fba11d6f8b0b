import { childTypes } from '../../../constructs/kind/kind';
import { HASH_ANNOTATION } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned, type WorkloadObject } from '../../../constructs/kube/resource-type';
import type { ManagedFieldsEntry } from '../../../operator/informer/field-ownership';
import { OperatorProcess, type ExpectedChild } from '../../../testing';
import { childrenOfAll, isReadyNow, settle, titleOf } from '../../support/assertions';
import type { TestEnv } from '../../support/test-env';
import { noCrash, formatCrashPoints, type CrashSelector, type CrashPoint, type WriteAddress } from './crash-point';
import { CrashingOperator } from './crashing-operator';
import type { Life, LifeContext, Stage } from './lives';

/** What came of a life. */
export interface LifeResult {
  /** How things stood after each stage. */
  readonly snapshots: ReadonlyMap<string, Snapshot>;
  /** What the server accepted of the operators. */
  readonly writes: readonly WriteAddress[];
  readonly crashes: readonly CrashPoint[];
}

/** A life did not come to its end. */
export class LifeError extends Error {
  override readonly name = 'LifeError';
}

/**
 * Lives through a life in a namespace of its own, with an operator of its own that is stopped where it was chosen.
 *
 * @throws LifeError when a stage does not settle, or an operator logs an error, with the crashes up to then
 */
export async function runLife(env: TestEnv, life: Life, choice: CrashSelector = noCrash): Promise<LifeResult> {
  const { kind } = life;
  const { account, env: variables } = env.platform;
  const scene: LifeContext = { env, kind, namespace: await env.namespace(`crash-${life.name.toLowerCase()}`) };
  const subject = await CrashingOperator.start({
    kubeconfig: await env.plane.kubeconfigFor(account),
    startOperator: (kubeconfig) => OperatorProcess.start({ kubeconfig, args: argumentsFor(scene), env: variables }),
    choice,
  });
  const crashes = (): readonly CrashPoint[] => subject.crashes.map((crash) => ({ life: life.name, ...crash }));
  try {
    const snapshots = await stages(scene, life.stages, subject);
    await subject.expectNoMissedEvents();
    if (subject.errors.length > 0) throw new Error(`the operator logged errors:\n${subject.errors.join('\n')}`);
    return { snapshots, writes: subject.accepted, crashes: crashes() };
  } catch (cause) {
    throw new LifeError(`a life of ${life.name}, crashed at\n${formatCrashPoints(crashes())}\n${String(cause)}`, {
      cause,
    });
  } finally {
    await subject.end();
  }
}

async function stages(
  scene: LifeContext,
  all: readonly Stage[],
  subject: CrashingOperator,
): Promise<ReadonlyMap<string, Snapshot>> {
  const snapshots = new Map<string, Snapshot>();
  const aliases = new Map([[scene.namespace, '<namespace>']]);
  for (const stage of all) {
    subject.enterStage(stage.name);
    await stage.act(scene);
    const { owners, children } = await lastState(scene, stage, subject);
    for (const { kind, metadata } of owners) aliases.set(metadata.uid ?? '', `<UID of ${kind} ${metadata.name}>`);
    snapshots.set(stage.name, snapshotOf(owners, children, aliases));
  }
  return snapshots;
}

/** How things stand at the end of a stage. After crashes in it the last operator must have found nothing to write: if need be, one more is started. */
async function lastState(scene: LifeContext, stage: Stage, subject: CrashingOperator): Promise<LifeObjects> {
  const standing = await settleStage(scene, stage, subject);
  if (subject.crashes.at(-1)?.write.stage !== stage.name || !subject.hasWritten) return standing;
  const writes = subject.writes.length;
  await subject.replace();
  const again = await settleStage(scene, stage, subject);
  expect(subject.writes.slice(writes)).toEqual([]);
  return again;
}

/** One kind, one namespace, no Lease to wait for, and a look now and then at what the watches may have missed. */
function argumentsFor({ env, kind, namespace }: LifeContext): readonly string[] {
  const own = ['--leader-elect', '--lease-', '--kinds', '--namespaces'];
  const rest = env.platform.args.filter((arg) => !own.some((name) => arg.startsWith(name)));
  return [...rest, `--kinds=${kind.crdName}`, `--namespaces=${namespace}`, '--audit-seconds=1'];
}

/** What stands in a scene: the objects of the kind, and everything of the types that they have for children. */
interface LifeObjects {
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
async function settleStage(scene: LifeContext, stage: Stage, subject: CrashingOperator): Promise<LifeObjects> {
  for (;;) {
    const crashes = subject.crashes.length;
    try {
      return await settleAtOnce(scene, stage, subject);
    } catch (error) {
      if (subject.crashes.length === crashes) throw error;
    }
  }
}

function settleAtOnce(scene: LifeContext, stage: Stage, subject: CrashingOperator): Promise<LifeObjects> {
  return settle(scene.env, {
    describe: `the stage ${stage.name} to settle`,
    operator: () => subject.currentOperator(),
    check: async () => {
      const found = await listObjects(scene);
      expectSettled(scene, stage, found);
      return found;
    },
    versions: (found) => versionsOf(found) + String(subject.writes.length),
  });
}

async function listObjects({ env, kind, namespace }: LifeContext): Promise<LifeObjects> {
  const [owners = [], ...children] = await Promise.all(
    [kind.type, ...childTypes(kind)].map(async (type) => {
      const { items } = await env.client.list(type, { namespace });
      // In a list they do not say what they are.
      return items.map((item) => ({ ...item, apiVersion: type.apiVersion, kind: type.kind }));
    }),
  );
  return { owners, children: children.flat().filter((child) => !CLUSTERS_OWN.includes(titleOf(child))) };
}

function expectSettled({ kind }: LifeContext, stage: Stage, { owners, children }: LifeObjects): void {
  expect(owners.map(({ metadata }) => metadata.name).sort()).toEqual([...stage.objects].sort());
  const expected = childrenOfAll(kind, owners);
  expect(children.map(titleOf).sort()).toEqual(expected.map(({ object }) => titleOf(object)).sort());
  for (const each of expected) expectObject(each, children);
  for (const child of children) if (child.kind === owned.Deployment.kind) expectCurrent(child);
  expect(owners.filter((owner) => !isReadyNow(owner)).map(({ status }) => status)).toEqual([]);
}

function expectObject({ object }: ExpectedChild, children: readonly KubeObject[]): void {
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

function versionsOf({ owners, children }: LifeObjects): string {
  return [...owners, ...children].map(({ metadata }) => `${metadata.uid}/${metadata.resourceVersion};`).join('');
}

/** How things stand, by `Kind name`; two lives that went alike have equal ones. */
export type Snapshot = Readonly<Record<string, unknown>>;

/** Words that differ from life to life, and what is said instead: UIDs, the namespace. */
type Aliases = ReadonlyMap<string, string>;

/** Written by controllers of the cluster, at their own pace. */
const CLUSTERS_MANAGER = 'kube-controller-manager';
const CLUSTERS_ANNOTATIONS = ['deployment.kubernetes.io/revision'];
/** A function of what was rendered, the namespace included; that it fits is seen where the children are. */
const HASHES = [HASH_ANNOTATION];
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/**
 * Takes down how objects stand, without what differs between two lives by its nature: UIDs, versions, times, addresses that the server gave,
 * and what controllers of the cluster write. Who owns which field stays: a crash must leave no field to nobody, or to two.
 *
 * @param owners - of these the status is ours, and part of it
 */
export function snapshotOf(owners: readonly KubeObject[], children: readonly KubeObject[], aliases: Aliases): Snapshot {
  const objects = [...owners, ...children.map((child) => without(child, ['status']))];
  const entries = objects.map((object) => [titleOf(object), aliased(plain(object), aliases)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function plain(object: KubeObject): object {
  const { metadata, spec } = object as KubeObject & { readonly spec?: object };
  const { annotations, managedFields = [] } = metadata as WireMeta;
  return {
    ...object,
    // The addresses of a Service are the server's choice.
    ...(spec === undefined ? {} : { spec: without(spec, ['clusterIP', 'clusterIPs']) }),
    metadata: {
      ...without(metadata, ['uid', 'resourceVersion', 'creationTimestamp', 'namespace', 'managedFields']),
      annotations: annotationsOf(annotations),
      managers: fieldsOf(managedFields),
    },
  };
}

type WireMeta = KubeObject['metadata'] & { readonly managedFields?: readonly ManagedFieldsEntry[] };

function without<T extends object>(object: T, names: readonly string[]): T {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name))) as T;
}

function annotationsOf(annotations: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const kept = Object.entries(annotations).filter(([name]) => !CLUSTERS_ANNOTATIONS.includes(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, HASHES.includes(name) ? '<hash>' : value]));
}

/** In the order of their names: the server's is that of their times. */
function fieldsOf(entries: readonly ManagedFieldsEntry[]): Readonly<Record<string, unknown>> {
  const ours = entries.filter(({ manager }) => manager !== CLUSTERS_MANAGER);
  const named = ours.map(({ manager = '', operation = '', subresource = '', fieldsV1 }) => {
    return [[manager, operation, subresource].join(' ').trimEnd(), fieldsV1] as const;
  });
  return Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function aliased(object: object, aliases: Aliases): unknown {
  let text = JSON.stringify(object, (_, value: unknown) => {
    return typeof value === 'string' && TIME.test(value) ? '<time>' : value;
  });
  for (const [word, alias] of aliases) text = text.replaceAll(word, alias);
  return JSON.parse(text);
}
