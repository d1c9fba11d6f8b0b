import type { CommonStatus } from '../../../../constructs/kind/kind';
import type { KubeObject } from '../../../../constructs/kube/kube-object';
import { Cluster, Kubeconfig, type ProvisionerWorld } from '../../../e2e/provisioner/world';
import { OperatorProcess } from '../../../../testing';
import type { Hosts } from '../../../support/hosts';
import type { RkeStandIn } from '../../../support/rke';
import { long } from '../../form';
import type { Choice } from '../choices';
import { CrashingOperator } from '../crashing-operator';
import { pointsText, type CrashPoint } from '../crash-point';
import { killWithDescendants } from '../descendants';
import { LifeCutShort, type LifeStory } from '../live-through';
import { snapshotOf, type Snapshot } from '../snapshot';
import { CLUSTER, clusterLife, settleCluster, type ClusterStage, type ClusterStanding } from './life';
import { effectsIn, overlaps, type RkeLog } from './rke-log';

/** Where Clusters live. */
export interface ClusterScene {
  readonly world: ProvisionerWorld;
  readonly hosts: Hosts;
  readonly standIn: RkeStandIn;
  readonly log: RkeLog;
}

/** Lives through the life of a Cluster; the snapshot of a stage tells too which effects ran to their end, and which machines stand. */
export async function liveThroughCluster(scene: ClusterScene, choice: Choice): Promise<LifeStory> {
  const { world, log } = scene;
  const { platform, plane } = world.bench;
  const args = platform.args.filter((arg) => !arg.startsWith('--leader-elect') && !arg.startsWith('--lease-'));
  const own = [`--config-dir=${world.configDir}`, `--key-dir=${world.keyDir}`, '--audit-seconds=1'];
  const env = { ...platform.env, PATH: world.path };
  const subject = await CrashingOperator.start({
    kubeconfig: await plane.kubeconfigFor(platform.account),
    begin: (kubeconfig) => OperatorProcess.start({ kubeconfig, args: [...args, ...own], env }),
    kill: async (operator) => {
      await killWithDescendants(operator);
      log.killed();
    },
    choice,
  });
  const began = log.length;
  const crashes = (): readonly CrashPoint[] => subject.crashes.map((crash) => ({ life: 'Cluster', ...crash }));
  try {
    const snapshots = new Map<string, Snapshot>();
    for (const stage of clusterLife) snapshots.set(stage.name, await liveThroughStage(scene, stage, subject));
    await subject.expectNothingMissed();
    expect(overlaps(log.since(began))).toEqual([]);
    expect(subject.errors).toEqual([]);
    return {
      snapshots,
      writes: subject.writes,
      crashes: crashes(),
    };
  } catch (cause) {
    throw new LifeCutShort(`a life of a Cluster, crashed at\n${pointsText(crashes())}\n${String(cause)}`, { cause });
  } finally {
    await subject.end();
  }
}

async function liveThroughStage(
  scene: ClusterScene,
  stage: ClusterStage,
  subject: CrashingOperator,
): Promise<Snapshot> {
  const { world, hosts, standIn, log } = scene;
  const began = log.length;
  subject.enter(stage.name);
  await stage.act(world, hosts);
  const standing = await lastState(scene, stage, subject);
  const attempts = attemptsOf(standing);
  const crashes = subject.crashes.filter(({ write }) => write.stage === stage.name).length;
  if (stage.stands && (attempts < 1 || attempts > 1 + crashes)) {
    throw new Error(`${String(attempts)} attempts after ${String(crashes)} crashes`);
  }
  return { ...clusterSnapshot(standing), effects: effectsIn(log.since(began)), machines: standIn.machines() };
}

/** In the long form yet another provisioner must find nothing to write after crashes. */
async function lastState(
  { world }: ClusterScene,
  stage: ClusterStage,
  subject: CrashingOperator,
): Promise<ClusterStanding> {
  const standing = await settleCluster(world, stage, subject);
  if (!long || subject.crashes.at(-1)?.write.stage !== stage.name) return standing;
  const writes = subject.writes.length;
  await subject.replace();
  const again = await settleCluster(world, stage, subject);
  expect(subject.writes.slice(writes)).toEqual([]);
  return again;
}

function attemptsOf({ objects }: ClusterStanding): number {
  const cluster = objects.find(({ metadata, status }) => metadata.name === CLUSTER && hasAttempts(status));
  return (cluster?.status as { readonly attempts?: number } | undefined)?.attempts ?? 0;
}

function hasAttempts(status: unknown): boolean {
  return typeof (status as { readonly attempts?: number } | undefined)?.attempts === 'number';
}

function clusterSnapshot({ objects, secrets }: ClusterStanding): Snapshot {
  const aliases = new Map(objects.map(({ metadata }, i) => [metadata.uid ?? '', `<UID ${String(i)}>`]));
  const kinds = objects.map((object) => ({ ...object, ...kindOf(object) }));
  return snapshotOf(kinds.map(withoutAttempts), secrets.map(withoutValues), aliases);
}

/** In a list they do not say what they are. */
function kindOf({ spec }: KubeObject): Pick<KubeObject, 'apiVersion' | 'kind'> {
  const { apiVersion, kind } = Object.hasOwn(spec as object, 'nodes') ? Cluster : Kubeconfig;
  return { apiVersion, kind };
}

/** A crash in the middle of an attempt has used it up, and the next one may find that all is done. */
function withoutAttempts(object: KubeObject): KubeObject {
  const { conditions = [], ...status } = (object.status ?? {}) as CommonStatus;
  const others = Object.entries(status).filter(([name]) => name !== 'attempts');
  const told = conditions.map(({ message, ...rest }) => ({ ...rest, message: runs.test(message) ? '<run>' : message }));
  return { ...object, status: { ...Object.fromEntries(others), conditions: told } };
}

/** What a run says that went well. */
const runs = /^(\d+ tasks changed something|Every machine was as it should be)[.]$/;

/** Keys and certificates are other ones each time; of records what counts is how the last run ended. */
function withoutValues(secret: KubeObject): KubeObject {
  const { data = {} } = secret as { readonly data?: Readonly<Record<string, string>> };
  const told = Object.entries(data).map(([key, value]) => [key, key === 'effects.json' ? statesIn(value) : '<secret>']);
  return { ...secret, kind: 'Secret', data: Object.fromEntries(told) as Readonly<Record<string, unknown>> };
}

function statesIn(base64: string): Readonly<Record<string, string>> {
  const records = JSON.parse(Buffer.from(base64, 'base64').toString()) as Readonly<Record<string, { state: string }>>;
  return Object.fromEntries(Object.entries(records).map(([name, { state }]) => [name, state]));
}
