import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CommonStatus } from '../../../../constructs/kind/kind';
import type { KubeObject } from '../../../../constructs/kube/kube-object';
import { owned } from '../../../../constructs/kube/resource-type';
import { OperatorProcess } from '../../../../testing';
import type { Hosts } from '../../../support/hosts';
import {
  Cluster,
  Kubeconfig,
  STATE_NAMESPACE,
  rkeSpec,
  type ProvisionerTestEnv,
} from '../../../support/provisioner-env';
import { conditionStatus, settle } from '../../../support/assertions';
import type { FakeRkeBinary } from '../../../support/rke/rke';
import { isLongMode } from '../../mode';
import { formatCrashPoints, type CrashSelector, type CrashPoint } from '../crash-point';
import { CrashingOperator, killWithDescendants } from '../crashing-operator';
import { LifeError, snapshotOf, type LifeResult, type Snapshot } from '../run-life';

/** Where Clusters live. */
export interface ClusterLifeContext {
  readonly world: ProvisionerTestEnv;
  readonly hosts: Hosts;
  readonly standIn: FakeRkeBinary;
  readonly log: RkeRunLog;
}

/** Lives through the life of a Cluster; the snapshot of a stage tells too which effects ran to their end, and which machines stand. */
export async function runClusterLife(scene: ClusterLifeContext, choice: CrashSelector): Promise<LifeResult> {
  const { world, log } = scene;
  const { platform, plane } = world.env;
  const args = platform.args.filter((arg) => !arg.startsWith('--leader-elect') && !arg.startsWith('--lease-'));
  const own = [`--config-dir=${world.configDir}`, `--key-dir=${world.keyDir}`, '--audit-seconds=1'];
  const env = { ...platform.env, PATH: world.path };
  const subject = await CrashingOperator.start({
    kubeconfig: await plane.kubeconfigFor(platform.account),
    startOperator: (kubeconfig) =>
      OperatorProcess.start({ program: 'provisioner', kubeconfig, args: [...args, ...own], env }),
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
    for (const stage of clusterLife) snapshots.set(stage.name, await runClusterStage(scene, stage, subject));
    await subject.expectNoMissedEvents();
    expect(overlappingRuns(log.since(began))).toEqual([]);
    expect(subject.errors).toEqual([]);
    return {
      snapshots,
      writes: subject.writes,
      crashes: crashes(),
    };
  } catch (cause) {
    throw new LifeError(`a life of a Cluster, crashed at\n${formatCrashPoints(crashes())}\n${String(cause)}`, {
      cause,
    });
  } finally {
    await subject.end();
  }
}

async function runClusterStage(
  scene: ClusterLifeContext,
  stage: ClusterStage,
  subject: CrashingOperator,
): Promise<Snapshot> {
  const { world, hosts, standIn, log } = scene;
  const began = log.length;
  subject.enterStage(stage.name);
  await stage.act(world, hosts);
  const standing = await lastState(scene, stage, subject);
  const attempts = attemptsOf(standing);
  const crashes = subject.crashes.filter(({ write }) => write.stage === stage.name).length;
  if (stage.exists && (attempts < 1 || attempts > 1 + crashes)) {
    throw new Error(`${String(attempts)} attempts after ${String(crashes)} crashes`);
  }
  return { ...clusterSnapshot(standing), effects: completedRuns(log.since(began)), machines: standIn.machines() };
}

/** In the long form yet another provisioner must find nothing to write after crashes. */
async function lastState(
  { world }: ClusterLifeContext,
  stage: ClusterStage,
  subject: CrashingOperator,
): Promise<ClusterObjects> {
  const standing = await settleCluster(world, stage, subject);
  if (!isLongMode || subject.crashes.at(-1)?.write.stage !== stage.name) return standing;
  const writes = subject.writes.length;
  await subject.replace();
  const again = await settleCluster(world, stage, subject);
  expect(subject.writes.slice(writes)).toEqual([]);
  return again;
}

function attemptsOf({ objects }: ClusterObjects): number {
  const cluster = objects.find(({ metadata, status }) => metadata.name === CLUSTER && hasAttempts(status));
  return (cluster?.status as { readonly attempts?: number } | undefined)?.attempts ?? 0;
}

function hasAttempts(status: unknown): boolean {
  return typeof (status as { readonly attempts?: number } | undefined)?.attempts === 'number';
}

function clusterSnapshot({ objects, secrets }: ClusterObjects): Snapshot {
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
  const told = conditions.map(({ message, ...rest }) => ({
    ...rest,
    message: RUN_MESSAGE.test(message) ? '<run>' : message,
  }));
  return { ...object, status: { ...Object.fromEntries(others), conditions: told } };
}

/** What a run says that went well. */
const RUN_MESSAGE = /^(\d+ tasks changed something|Every machine was as it should be)[.]$/;

/** Keys and certificates are other ones each time; of records what counts is how the last run ended. */
function withoutValues(secret: KubeObject): KubeObject {
  const { data = {} } = secret as { readonly data?: Readonly<Record<string, string>> };
  const told = Object.entries(data).map(([key, value]) => [
    key,
    key === 'effects.json' ? effectStates(value) : '<secret>',
  ]);
  return { ...secret, kind: 'Secret', data: Object.fromEntries(told) as Readonly<Record<string, unknown>> };
}

function effectStates(base64: string): Readonly<Record<string, string>> {
  const records = JSON.parse(Buffer.from(base64, 'base64').toString()) as Readonly<Record<string, { state: string }>>;
  return Object.fromEntries(Object.entries(records).map(([name, { state }]) => [name, state]));
}

/** Of this process alone: RKE's folders for runs are this machine's. */
const CLUSTER = `edge-${String(process.pid)}`;

/** A change of the Cluster. */
interface ClusterStage {
  readonly name: 'create' | 'change' | 'delete';
  readonly act: (world: ProvisionerTestEnv, hosts: Hosts) => Promise<unknown>;
  readonly exists: boolean;
}

/** So many attempts that no crash makes a person necessary. */
const spec = (hosts: Hosts, names: readonly string[]): ReturnType<typeof rkeSpec> => ({
  ...rkeSpec(hosts, names),
  maxAttempts: 50,
});

/** A Cluster of RKE comes up, gets another machine, and is taken down. */
const clusterLife: readonly ClusterStage[] = [
  {
    name: 'create',
    act: ({ env }, hosts) => env.createOfKind(Cluster, { name: CLUSTER }, spec(hosts, ['n1'])),
    exists: true,
  },
  {
    name: 'change',
    act: ({ env }, hosts) => env.patchSpec(Cluster, { name: CLUSTER }, spec(hosts, ['n1', 'n2'])),
    exists: true,
  },
  { name: 'delete', act: ({ env }) => env.client.delete(Cluster.type, { name: CLUSTER }), exists: false },
];

/** What stands of a Cluster. */
interface ClusterObjects {
  readonly objects: readonly KubeObject[];
  readonly secrets: readonly KubeObject[];
}

/** Waits until the provisioner has dealt with a stage and has nothing left to do. */
async function settleCluster(
  { env }: ProvisionerTestEnv,
  { name, exists: stands }: ClusterStage,
  subject: CrashingOperator,
): Promise<ClusterObjects> {
  const read = async (): Promise<ClusterObjects> => {
    const [clusters, kubeconfigs, secrets] = await Promise.all([
      env.client.list(Cluster.type, {}),
      env.client.list(Kubeconfig.type, {}),
      env.client.list(owned.Secret, { namespace: STATE_NAMESPACE }),
    ]);
    const objects = [...clusters.items, ...kubeconfigs.items];
    expect([objects.length, secrets.items.length]).toEqual(stands ? [2, 2] : [0, 0]);
    expect(objects.filter((object) => !isReady(object)).map(({ status }) => status)).toEqual([]);
    return { objects, secrets: secrets.items };
  };
  return settle(env, {
    describe: `the stage ${name} to settle`,
    operator: () => subject.currentOperator(),
    check: read,
    versions: ({ objects, secrets }) => {
      const versions = [...objects, ...secrets].map(({ metadata }) => metadata.resourceVersion).join();
      return `${versions} ${String(subject.writes.length)}`;
    },
  });
}

function isReady(object: KubeObject): boolean {
  const { observedGeneration } = (object.status ?? {}) as { readonly observedGeneration?: number };
  return conditionStatus(object, 'Ready') === 'True' && observedGeneration === object.metadata.generation;
}

/** When runs of the stand-in for `rke` began and ended, in the order in which it happened. */
export class RkeRunLog {
  private readonly path: string;

  private constructor(standIn: FakeRkeBinary) {
    this.path = join(standIn.folder, 'runs');
  }

  /** Puts itself in front of the stand-in. */
  static of(standIn: FakeRkeBinary): RkeRunLog {
    const log = new RkeRunLog(standIn);
    const rke = join(standIn.bin, 'rke');
    const inner = join(standIn.bin, 'rke-inner');
    renameSync(rke, inner);
    const script = `#!/bin/sh
case "$1" in up|remove) ;; *) exec '${inner}' "$@" ;; esac
echo "begin $*" >>'${log.path}'
'${inner}' "$@"
code=$?
echo "end $*" >>'${log.path}'
exit $code
`;
    writeFileSync(rke, script, { mode: 0o755 });
    return log;
  }

  /** All that ran has been killed. */
  killed(): void {
    appendFileSync(this.path, 'killed\n');
  }

  /** What has happened since a line, that one included. */
  since(line: number): readonly string[] {
    return this.lines().slice(line);
  }

  get length(): number {
    return this.lines().length;
  }

  private lines(): readonly string[] {
    return existsSync(this.path) ? readFileSync(this.path, 'utf8').trim().split('\n') : [];
  }
}

/** The runs that came to their end, without repetitions: `up --init`, `up`, `remove`. */
function completedRuns(lines: readonly string[]): readonly string[] {
  const ends = lines.filter((line) => line.startsWith('end ')).map((line) => line.replace(/^end | --config.*$/g, ''));
  return [...new Set(ends)];
}

/** Runs that began while another one was under way. */
function overlappingRuns(lines: readonly string[]): readonly string[] {
  let under: string | undefined;
  return lines.flatMap((line) => {
    const before = under;
    under = line.startsWith('begin ') ? line : undefined;
    return before !== undefined && under !== undefined ? [`${line}, while: ${before}`] : [];
  });
}
