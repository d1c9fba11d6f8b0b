import type { Bench } from '../../e2e/operator/support/bench';
import { OperatorProcess } from '../../../testing';
import { nowhere, type Choice } from './choices';
import { CrashingOperator } from './crashing-operator';
import { pointsText, type CrashPoint, type WriteAddress } from './crash-point';
import type { Life, Scene, Stage } from './life';
import { settle, type Standing } from './settle';
import { snapshotOf, type Snapshot } from './snapshot';

/** What came of a life. */
export interface LifeStory {
  /** How things stood after each stage. */
  readonly snapshots: ReadonlyMap<string, Snapshot>;
  /** What the server accepted of the operators. */
  readonly writes: readonly WriteAddress[];
  readonly crashes: readonly CrashPoint[];
}

/** A life did not come to its end. */
export class LifeCutShort extends Error {
  override readonly name = 'LifeCutShort';
}

/**
 * Lives through a life in a namespace of its own, with an operator of its own that is stopped where it was chosen.
 *
 * @throws LifeCutShort when a stage does not settle, or an operator logs an error, with the crashes up to then
 */
export async function liveThrough(bench: Bench, life: Life, choice: Choice = nowhere): Promise<LifeStory> {
  const { kind } = life;
  const { account, env } = bench.platform;
  const scene: Scene = { bench, kind, namespace: await bench.namespace(`crash-${life.name.toLowerCase()}`) };
  const subject = await CrashingOperator.start({
    kubeconfig: await bench.plane.kubeconfigFor(account),
    begin: (kubeconfig) => OperatorProcess.start({ kubeconfig, args: argumentsFor(scene), env }),
    choice,
  });
  const crashes = (): readonly CrashPoint[] => subject.crashes.map((crash) => ({ life: life.name, ...crash }));
  try {
    const snapshots = await stages(scene, life.stages, subject);
    await subject.expectNothingMissed();
    if (subject.errors.length > 0) throw new Error(`the operator logged errors:\n${subject.errors.join('\n')}`);
    return { snapshots, writes: subject.accepted, crashes: crashes() };
  } catch (cause) {
    throw new LifeCutShort(`a life of ${life.name}, crashed at\n${pointsText(crashes())}\n${String(cause)}`, { cause });
  } finally {
    await subject.end();
  }
}

async function stages(
  scene: Scene,
  all: readonly Stage[],
  subject: CrashingOperator,
): Promise<ReadonlyMap<string, Snapshot>> {
  const snapshots = new Map<string, Snapshot>();
  const aliases = new Map([[scene.namespace, '<namespace>']]);
  for (const stage of all) {
    subject.enter(stage.name);
    await stage.act(scene);
    const { owners, children } = await lastState(scene, stage, subject);
    for (const { kind, metadata } of owners) aliases.set(metadata.uid ?? '', `<UID of ${kind} ${metadata.name}>`);
    snapshots.set(stage.name, snapshotOf(owners, children, aliases));
  }
  return snapshots;
}

/** How things stand at the end of a stage. After crashes in it the last operator must have found nothing to write: if need be, one more is started. */
async function lastState(scene: Scene, stage: Stage, subject: CrashingOperator): Promise<Standing> {
  const standing = await settle(scene, stage, subject);
  if (subject.crashes.at(-1)?.write.stage !== stage.name || !subject.hasWritten) return standing;
  const writes = subject.writes.length;
  await subject.replace();
  const again = await settle(scene, stage, subject);
  expect(subject.writes.slice(writes)).toEqual([]);
  return again;
}

/** One kind, one namespace, no Lease to wait for, and a look now and then at what the watches may have missed. */
function argumentsFor({ bench, kind, namespace }: Scene): readonly string[] {
  const own = ['--leader-elect', '--lease-', '--kinds', '--namespaces'];
  const rest = bench.platform.args.filter((arg) => !own.some((name) => arg.startsWith(name)));
  return [...rest, `--kinds=${kind.crdName}`, `--namespaces=${namespace}`, '--audit-seconds=1'];
}
