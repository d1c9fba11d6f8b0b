import { setMaxListeners } from 'node:events';
import { parseConfig } from '../../../stacks/config/parse';
import { program } from '../../../stacks/program';
import { Engine, InterruptedError, MemoryCluster, memoryClusters } from '../../support/pulumi-engine';

/** A configuration, by its keys. */
export type Values = Readonly<Record<string, unknown>>;

/** A stack of one kind, unless the values say otherwise. */
export const stack = (cluster: MemoryCluster, values: Values) => (): object => {
  const all = { kinds: ['HelloApp'], kubeconfig: `${MemoryCluster.kubeconfig({ it: cluster })}\n`, ...values };
  const texts = Object.entries(all).map(([key, value]) => [
    key,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  const config = { values: Object.fromEntries(texts) as Record<string, string>, secretKeys: new Set(['kubeconfig']) };
  return { ...program(parseConfig(config)) };
};

/** Ends the clusters of a file. */
const ended = new AbortController();
setMaxListeners(0, ended.signal);
afterAll(() => ended.abort());

/** Namespaces of others, with something in each, and the CRDs of the Prometheus operator. */
export async function newCluster(): Promise<MemoryCluster> {
  const cluster = await MemoryCluster.serve(ended.signal);
  for (const name of ['podmonitors', 'prometheusrules']) {
    const metadata = { name: `${name}.monitoring.coreos.com` };
    cluster.put({ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata });
  }
  for (const name of ['shop', 'machines']) cluster.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  for (const namespace of ['shop', 'machines', 'kindred-system', 'ops']) {
    cluster.put({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'of-others', namespace } });
  }
  cluster.put({
    apiVersion: 'apps.anupam.com/v1',
    kind: 'HelloApp',
    metadata: { name: 'of-others', namespace: 'shop' },
  });
  return cluster;
}

export const newEngine = (cluster: MemoryCluster): Engine => new Engine({ providers: [memoryClusters(cluster)] });

/** What stands, without who it is. The owner of a stack's objects has a random name. */
function standing(cluster: MemoryCluster): ReadonlyMap<string, unknown> {
  const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
  return new Map(
    [...cluster.objects].map(([key, object]) => {
      const owners = object.metadata.ownerReferences ?? [];
      const lost = owners.filter(
        (owner) => ![...cluster.objects.values()].some(({ metadata: { uid } }) => uid === owner.uid),
      );
      expect([key, lost]).toEqual([key, []]);
      return [key.replace(uuid, 'id'), JSON.parse(JSON.stringify(object).replaceAll(uuid, 'id'))];
    }),
  );
}

/** What a new cluster has with that configuration. */
function installed(values: Values): Promise<ReadonlyMap<string, unknown>> {
  const key = JSON.stringify(values);
  const known = installations.get(key) ?? install(values);
  installations.set(key, known);
  return known;
}

const installations = new Map<string, Promise<ReadonlyMap<string, unknown>>>();

async function install(values: Values): Promise<ReadonlyMap<string, unknown>> {
  const cluster = await newCluster();
  await newEngine(cluster).up(stack(cluster, values));
  return standing(cluster);
}

/** What a platform leaves behind on purpose. */
export const stays = / (CustomResourceDefinition|Namespace) /;

/** What stands is what the configuration says, but for what was kept of earlier ones; nothing is left to do, and others have what they had. */
export async function expectSettled(
  engine: Engine,
  cluster: MemoryCluster,
  values: Values,
  others: ReadonlyMap<string, string>,
): Promise<void> {
  const [expected, found] = [await installed(values), standing(cluster)];
  const left = [...found].filter(([key]) => expected.has(key) || !stays.test(key));
  expect(Object.fromEntries(left)).toEqual(Object.fromEntries(expected));
  expect((await engine.up(stack(cluster, values))).summary).toEqual([]);
  for (const [key, uid] of others) expect([key, cluster.objects.get(key)?.metadata.uid]).toEqual([key, uid]);
}

/** Whose UID must stay: objects of others, and everything that is kept. */
export function kept(
  cluster: MemoryCluster,
  before: ReadonlyMap<string, string> = new Map(),
): ReadonlyMap<string, string> {
  const objects = [...cluster.objects].filter(([key]) => stays.test(key) || key.includes('of-others'));
  return new Map([...objects.map(([key, { metadata }]) => [key, metadata.uid] as const), ...before]);
}

/** A walk that goes from each value to each other, both ways. */
function walk<T>(values: readonly T[]): readonly T[] {
  const pairs = values.flatMap((a, i) => values.slice(i + 1).flatMap((b) => [a, b, a]));
  return pairs.filter((value, i) => value !== pairs[i - 1]);
}

/** What of a platform's configuration a key is given, one after the other, and what is set besides. */
export type Walk = readonly [key: string, choices: readonly unknown[], besides: Values];

/** The title of a test of a {@link Walk}. */
export const WALK = 'kindred:%s from each of %j to each other, with %j';

/** Expects that a platform goes from each value of a key to each other. */
export async function expectWalk(key: string, choices: readonly unknown[], besides: Values): Promise<void> {
  const cluster = await newCluster();
  const engine = newEngine(cluster);
  let others = kept(cluster);
  for (const value of walk(choices)) {
    const values = { ...besides, [key]: value };
    await engine.up(stack(cluster, values));
    others = kept(cluster, others);
    await expectSettled(engine, cluster, values, others);
  }
}

/** The title of a test of a change that is interrupted. */
export const INTERRUPTED = 'from %j to %j, interrupted halfway: on, and back';

/** Expects that a change that was interrupted halfway can be finished, and can be taken back. */
export async function expectOnAndBack(before: Values, after: Values): Promise<void> {
  const cluster = await newCluster();
  const engine = newEngine(cluster);
  await engine.up(stack(cluster, before));
  const planned = (await engine.preview(stack(cluster, after))).operations;
  const changes = planned.flatMap(({ op }, i) => (op === 'same' || op === 'read' ? [] : [i]));
  const at = (changes[Math.floor(changes.length / 2)] ?? planned.length - 1) + 1;
  for (const goal of [after, before]) {
    const others = kept(cluster);
    const interrupted = engine.up(stack(cluster, after), { parallel: 1, interrupt: { at, when: 'before' } });
    await expect(interrupted).rejects.toThrow(InterruptedError);
    await engine.up(stack(cluster, goal));
    await expectSettled(engine, cluster, goal, others);
    await engine.up(stack(cluster, before));
  }
}
