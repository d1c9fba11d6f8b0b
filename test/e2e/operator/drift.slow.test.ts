import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { refOf, type ApiClient } from '../../../operator/client/api-client';
import { ApiError } from '../../../operator/client/errors';
import { kubeconfigClient } from '../../../testing';
import { useControlPlane } from '../../support/use-control-plane';
import { waitFor } from '../../../testing/wait-for';
import { ChildWriter, contentOf } from '../../support/drift/child-writer';
import { installCustomTypes, richChildren } from '../../support/drift/children';
import { changeAtRandom, randomBelow } from '../../support/drift/foreign-change';
import { namedChanges, withChange, type RecordedAnswer, type Recording } from '../../support/drift/named-changes';

/** Set to write the recorded answers anew. */
const RECORD = process.env['DRIFT_RECORD'] === '1';
const RECORDED = join(__dirname, '../../support/drift/recorded-answers.json');
/** How many changes a type gets; those that the server refuses are not counted. */
const CHANGES = Number(process.env['DRIFT_CHANGES'] ?? 40);
const SEED = Number(process.env['DRIFT_SEED'] ?? 20_260);
const NAMESPACE = 'default';

const cp = useControlPlane({ components: 'api' });
jest.setTimeout(600_000);
let client: ApiClient;

beforeAll(async () => {
  client = await kubeconfigClient(cp.adminKubeconfig);
  await installCustomTypes(client);
});
afterAll(() => client.close());

/** Deletes a child, whatever finalizers it has, and writes it anew. */
async function createAnew(writer: ChildWriter): Promise<void> {
  const { type, manifest } = writer.child;
  const live = await writer.get();
  if (live !== undefined) {
    if (live.metadata.finalizers !== undefined) {
      const bare = { metadata: { finalizers: null } };
      await client.patch(type, refOf(manifest), bare, { type: 'merge', fieldManager: 'e2e' });
    }
    await client.delete(type, refOf(manifest));
    await waitFor(async () => (await writer.get()) === undefined);
  }
  writer.restartEmpty();
  const outcome = await writer.write();
  expect(outcome.result).toBe('created');
}

/** What a forced dry run would do to the live object; undefined when the server refuses it. */
async function verdictOf(writer: ChildWriter): Promise<KubeObject | undefined> {
  try {
    return await writer.dryRun();
  } catch (error) {
    // 500: somebody gave a keyed list an item without a key, after which no apply is possible.
    if (error instanceof ApiError && (error.reason === 'Invalid' || error.code === 500)) return undefined;
    throw error;
  }
}

/** One change by somebody else, and what the operator does then; undefined if the server refuses the change. */
async function tryChange(writer: ChildWriter, below: (bound: number) => number): Promise<string[] | undefined> {
  const { type } = writer.child;
  const before = await writer.get();
  if (before === undefined) throw new Error('the child is not there');
  const { what, object } = changeAtRandom(before, below);
  let live: KubeObject;
  try {
    live = await client.update(type, object, { fieldManager: 'somebody' });
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
  const isRestarted = below(2) === 0;
  if (isRestarted) writer.restart(live);
  else writer.observe(live);
  const verdict = await verdictOf(writer);
  const expected = verdict === undefined || !isDeepStrictEqual(contentOf(verdict), contentOf(live));
  const problems: string[] = [];
  const title = `${type.kind}, ${what}${isRestarted ? ', after a restart' : ''}`;
  try {
    const outcome = await writer.write();
    if (writer.wrote !== expected) problems.push(`${title}: wrote ${String(writer.wrote)}, should ${String(expected)}`);
    if (expected && outcome.result !== 'applied') problems.push(`${title}: ${outcome.result}`);
  } catch (error) {
    if (!(error instanceof ApiError) || verdict !== undefined) throw error;
    // Nothing but a new child mends what no apply can.
    await createAnew(writer);
    return problems;
  }
  const after = await writer.get();
  if (verdict !== undefined && after !== undefined && !isDeepStrictEqual(contentOf(after), contentOf(verdict)))
    problems.push(`${title}: the child is not what the dry run said`);
  await writer.write();
  if (writer.wrote) problems.push(`${title}: writes twice`);
  // A dry run may be needed to know how the server stores the child now, once.
  await writer.write();
  if (writer.asked.length > 0) problems.push(`${title}: is not at rest: ${writer.asked.join()}`);
  if (after !== undefined) writer.restart(after);
  await writer.write();
  if (writer.wrote) problems.push(`${title}: a restart writes`);
  return problems;
}

test.each(richChildren(NAMESPACE).map((child) => [child.type.kind, child] as const))(
  '%s: the operator writes if and only if a dry run of the apply would change the child',
  async (_, child) => {
    const writer = new ChildWriter(client, child);
    const below = randomBelow(SEED + child.type.kind.length);
    await createAnew(writer);
    await writer.write();
    expect(writer.asked).toEqual([]);
    const problems: string[] = [];
    let accepted = 0;
    for (let tries = 0; accepted < CHANGES && tries < 20 * CHANGES; tries++) {
      // The fields of a child that was never applied belong to an update, which the server lists otherwise.
      if (tries % 2 === 0) await createAnew(writer);
      const found = await tryChange(writer, below);
      if (found === undefined) continue;
      accepted++;
      problems.push(...found);
    }
    expect(problems).toEqual([]);
    expect(accepted).toBeGreaterThan(CHANGES / 2);
  },
);

test('the recorded answers are those of this server', async () => {
  const answers: RecordedAnswer[] = [];
  const all: Record<string, KubeObject> = {};
  for (const change of namedChanges) {
    const { kind, what } = change;
    const child = richChildren(NAMESPACE).find(({ type }) => type.kind === kind);
    if (child === undefined) throw new Error(`there is no rich ${kind}`);
    const writer = new ChildWriter(client, child);
    await createAnew(writer);
    const created = await writer.get();
    if (created === undefined) throw new Error(`${kind} is not there`);
    all[kind] ??= created;
    const live = await client.update(child.type, withChange(created, change), { fieldManager: 'somebody' });
    answers.push({ kind, what, live, dryRun: (await verdictOf(writer)) ?? null });
  }
  if (RECORD) await writeFile(RECORDED, textOf({ created: all, answers }));
  const recorded = JSON.parse(await readFile(RECORDED, 'utf8')) as Recording;
  const [now, before] = [withoutChance({ created: all, answers }), withoutChance(recorded)];
  expect([...now.keys()]).toEqual([...before.keys()]);
  expect([...now].filter(([name, text]) => before.get(name) !== text).map(([name]) => name)).toEqual([]);
});

/** A recording with each object on a line of its own. */
function textOf({ created, answers }: Recording): string {
  const lines = (texts: readonly string[]): string => texts.map((text) => `\n${text}`).join(',');
  const objects = Object.entries(created).map(([kind, object]) => `${JSON.stringify(kind)}:${JSON.stringify(object)}`);
  const rest = answers.map((answer) => JSON.stringify(answer));
  return `{"created":{${lines(objects)}\n},"answers":[${lines(rest)}\n]}\n`;
}

/** The parts of a recording by name, without what differs from run to run: versions, UIDs, times, addresses. */
function withoutChance({ created, answers }: Recording): ReadonlyMap<string, string> {
  const chance =
    /"(?:uid|(?:[a-z.]+\/)?controller-uid|resourceVersion|creationTimestamp|time|clusterIP|nodePort)":(?:"[^"]*"|\d+)|"clusterIPs":\["[^"]*"\]/g;
  const stable = (value: unknown): string => JSON.stringify(value).replaceAll(chance, '');
  return new Map([
    ...Object.entries(created).map(([kind, object]) => [`${kind} as created`, stable(object)] as const),
    ...answers.map((answer) => [`${answer.kind}: ${answer.what}`, stable(answer)] as const),
  ]);
}
