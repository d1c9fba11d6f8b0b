import { isDeepStrictEqual } from 'node:util';
import type { RenderedChild } from '../../../constructs/kind/render';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { refOf, type ApiClient } from '../../../operator/client/api-client';
import { ApiError } from '../../../operator/client/errors';
import { managedFieldsOf, type ManagedFieldsEntry } from '../../../operator/informer/field-ownership';
import { kubeconfigClient } from '../../../testing';
import { waitFor } from '../../../testing/wait-for';
import { ChildWriter, contentOf } from '../../support/drift/child-writer';
import { installCustomTypes, richChildren } from '../../support/drift/children';
import { useSharedControlPlane } from '../../support/shared-control-plane';

/**
 * The rule: what the operator rendered before and renders no longer is removed from a child, no matter who else
 * owns it. The child is compared with one that nobody else has written.
 */

const plane = useSharedControlPlane();
jest.setTimeout(900_000);
let client: ApiClient;

beforeAll(async () => {
  client = await kubeconfigClient(plane.adminKubeconfig);
  await installCustomTypes(client);
});
afterAll(() => client.close());

/** How another manager comes to own what the operator renders. */
const CO_OWNERS: readonly Pick<ManagedFieldsEntry, 'operation' | 'subresource'>[] = [
  { operation: 'Apply' },
  { operation: 'Update' },
  { operation: 'Update', subresource: 'scale' },
];

/** The operator's fields before the drop are owned by its POST, or by an apply. */
const BEFORE = ['created', 'applied'] as const;
type Before = (typeof BEFORE)[number];

/** Set to drop every field of every type, not one of each class. */
const ALL = process.env['DROP_ALL'] === '1';

type Fields = Record<string, unknown>;
type Steps = readonly (string | number)[];

/** A kind of value that a rendering may drop: one of each is tried for each type. */
const CLASSES: Readonly<Record<string, (value: unknown, holder: unknown) => boolean>> = {
  scalar: (value, holder) => !Array.isArray(holder) && typeof value !== 'object',
  map: (value, holder) => !Array.isArray(holder) && typeof value === 'object' && !Array.isArray(value),
  'list item': (_, holder) => Array.isArray(holder),
};

const LABEL: Steps = ['metadata', 'labels', 'tier'];

/**
 * Every place of a rendering that may be left out of it. Without its only field, a map would be rendered as an
 * empty one, which is another value.
 */
function placesOf(value: unknown, at: Steps = []): readonly Steps[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value as Fields)
    .filter(([step]) => at.length > 0 || !['apiVersion', 'kind', 'metadata'].includes(step))
    .flatMap(([step, inner]) => {
      const path = [...at, Array.isArray(value) ? Number(step) : step];
      const isOnly = !Array.isArray(value) && Object.keys(value).length === 1;
      return [...(isOnly ? [] : [path]), ...placesOf(inner, path)];
    });
}

function without(manifest: KubeObject, path: Steps): KubeObject {
  const copy = structuredClone(manifest);
  const holder = holderOf(copy, path);
  const step = path.at(-1) ?? '';
  if (Array.isArray(holder)) holder.splice(Number(step), 1);
  else Reflect.deleteProperty(holder, step);
  return copy;
}

function holderOf(manifest: KubeObject, path: Steps): Fields | unknown[] {
  return path.slice(0, -1).reduce<unknown>((value, step) => (value as Fields)[step], manifest) as Fields | unknown[];
}

async function remove({ type, manifest }: RenderedChild): Promise<void> {
  const live = await client.get(type, refOf(manifest));
  if (live === undefined) return;
  if (live.metadata.finalizers !== undefined) {
    const bare = { metadata: { finalizers: null } };
    await client.patch(type, refOf(manifest), bare, { type: 'merge', fieldManager: 'e2e' });
  }
  await client.delete(type, refOf(manifest));
  await waitFor(async () => (await client.get(type, refOf(manifest))) === undefined);
}

async function liveOf(writer: ChildWriter): Promise<KubeObject> {
  const live = await writer.get();
  if (live === undefined) throw new Error('the child does not exist');
  return live;
}

/** What an object has in itself: not its identity, nor what the server allocates by chance. */
function comparable(object: KubeObject): unknown {
  const { metadata, ...body } = contentOf(object) as { metadata: Fields } & Fields;
  const { uid: _, creationTimestamp: __, ...kept } = metadata;
  const text = JSON.stringify({ ...body, metadata: kept });
  const chance = /"(?:[a-z.]+\/)?(?:controller-uid|clusterIP|nodePort)":(?:"[^"]*"|\d+)|"clusterIPs":\["[^"]*"\]/g;
  return JSON.parse(text.replaceAll(chance, '"chance":0')) as unknown;
}

/** A new child as the operator has written it. */
async function written(child: RenderedChild, before: Before): Promise<ChildWriter> {
  await remove(child);
  const writer = new ChildWriter(client, child);
  expect((await writer.write()).result).toBe('created');
  if (before === 'created') return writer;
  const note = { ...child.manifest.metadata.annotations, 'example.com/note': 'changed' };
  writer.child = { ...child, manifest: withMetadata(child.manifest, { annotations: note }) };
  expect((await writer.write()).result).toBe('applied');
  writer.child = child;
  expect((await writer.write()).result).toBe('applied');
  return writer;
}

function withMetadata(object: KubeObject, metadata: object): KubeObject {
  return { ...object, metadata: { ...object.metadata, ...metadata } };
}

/** Makes another manager own all that the operator owns, and an annotation of its own. */
async function share(writer: ChildWriter, by: (typeof CO_OWNERS)[number]): Promise<KubeObject> {
  const live = await liveOf(writer);
  const [ours] = managedFieldsOf(live).filter(({ manager }) => manager === 'kindred');
  if (ours === undefined) throw new Error('the operator owns nothing');
  const theirs: ManagedFieldsEntry = {
    ...ours,
    manager: 'another',
    ...by,
    fieldsV1: {
      ...ours.fieldsV1,
      'f:metadata': {
        ...ours.fieldsV1?.['f:metadata'],
        'f:annotations': { ...ours.fieldsV1?.['f:metadata']?.['f:annotations'], 'f:example.com/theirs': {} },
      },
    },
  };
  const annotations = { ...live.metadata.annotations, 'example.com/theirs': 'x' };
  const managedFields = [...managedFieldsOf(live), theirs];
  const shared = await client.update(writer.child.type, withMetadata(live, { annotations, managedFields }), {
    fieldManager: 'e2e',
  });
  writer.observe(shared);
  return shared;
}

/** Drops a field from the rendering; undefined if the server refuses that. */
async function drop(writer: ChildWriter, path: Steps): Promise<KubeObject | undefined> {
  const { child } = writer;
  writer.child = { ...child, manifest: without(child.manifest, path) };
  try {
    await writer.write();
  } catch (error) {
    // 500: an item of a list without one of its keys, or with those of another item.
    if (error instanceof ApiError && (error.reason === 'Invalid' || error.code === 400 || error.code === 500))
      return undefined;
    throw error;
  }
  return liveOf(writer);
}

/** Drops a field that another manager owns too, and compares with a child for which it does not. */
async function problemOf(child: RenderedChild, path: Steps, i: number): Promise<string | undefined> {
  const by = CO_OWNERS[i % CO_OWNERS.length] ?? { operation: 'Apply' };
  const before = BEFORE[Math.floor(i / CO_OWNERS.length) % BEFORE.length] ?? 'created';
  const title = `${path.join('.')} (${before}, ${by.operation} ${by.subresource ?? ''})`;
  const alone = await written(child, before);
  const live = await liveOf(alone);
  await client.update(
    child.type,
    withMetadata(live, { annotations: { ...live.metadata.annotations, 'example.com/theirs': 'x' } }),
    { fieldManager: 'another' },
  );
  alone.observe(await liveOf(alone));
  const expected = await drop(alone, path);
  if (expected === undefined) return 'refused';
  const writer = await written(child, before);
  const shared = await share(writer, by);
  if (i % 2 === 1) writer.restart(shared);
  if (await isWritten(writer)) return `${title}: writes though nothing has changed`;
  const after = await drop(writer, path);
  if (after === undefined) return `${title}: refused`;
  if (!isDeepStrictEqual(comparable(after), comparable(expected)))
    return `${title}: ${JSON.stringify(comparable(after))} instead of ${JSON.stringify(comparable(expected))}`;
  await writer.write();
  await writer.write();
  if (writer.asked.length > 0) return `${title}: is not at rest: ${writer.asked.join()}`;
  writer.restart(after);
  return (await isWritten(writer)) ? `${title}: a restart writes` : undefined;
}

/** Whether one more reconcile of the child writes. */
async function isWritten(writer: ChildWriter): Promise<boolean> {
  await writer.write();
  return writer.wrote;
}

test.each(richChildren('dropped-fields').map((child, i) => [child.type.kind, child, i] as const))(
  '%s: what is no longer rendered is removed, even if another client owns it too',
  async (_, child, index) => {
    const places = placesOf(child.manifest);
    const problems: string[] = [];
    const tried: string[] = [];
    for (const [i, [name, is]] of Object.entries(CLASSES).entries()) {
      const candidates = places.filter((path) => {
        const holder = holderOf(child.manifest, path);
        return is((holder as Fields)[path.at(-1) ?? ''], holder);
      });
      for (const path of candidates) {
        const problem = await problemOf(child, path, index + i + tried.length);
        if (problem === 'refused') continue;
        tried.push(name);
        if (problem !== undefined) problems.push(problem);
        if (!ALL) break;
      }
    }
    const label = await problemOf(child, LABEL, index + 3);
    if (label !== undefined) problems.push(label);
    expect(problems).toEqual([]);
    // Every field of a PersistentVolumeClaim is immutable; its labels are not.
    expect(child.type.kind === 'PersistentVolumeClaim' || tried.length > 0).toBe(true);
  },
);

test('a field that was only a default may be set by another client after that', async () => {
  const child = richChildren('dropped-fields').find(({ type }) => type.kind === 'CronJob');
  if (child === undefined) throw new Error('there is no rich CronJob');
  const writer = await written(child, 'created');
  await share(writer, { operation: 'Apply' });
  expect(await drop(writer, ['spec', 'timeZone'])).not.toHaveProperty('spec.timeZone');
  const live = await liveOf(writer);
  const spec = { ...(live['spec'] as Fields), concurrencyPolicy: 'Forbid' };
  writer.observe(await client.update(child.type, { ...live, spec }, { fieldManager: 'another' }));
  expect(await isWritten(writer)).toBe(false);
  const again = { ...(live['spec'] as Fields), timeZone: 'Etc/UTC' };
  writer.observe(
    await client.update(child.type, { ...(await liveOf(writer)), spec: again }, { fieldManager: 'another' }),
  );
  expect(await isWritten(writer)).toBe(true);
  expect(await liveOf(writer)).not.toHaveProperty('spec.timeZone');
});
