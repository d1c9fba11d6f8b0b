import { childEntry, metadataOnly, stripManagedFields } from '../../../operator/informer/projection';

const OBJECT = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: 'a',
    namespace: 'b',
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', kept: 'yes' },
    managedFields: [{ manager: 'kindred', operation: 'Update', time: 't' }],
  },
  data: { a: '1' },
};

test('drops what only field managers and kubectl need, and leaves the object given alone', () => {
  const before = structuredClone(OBJECT);
  expect(stripManagedFields(OBJECT)).toEqual({
    object: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a', namespace: 'b', annotations: { kept: 'yes' } },
      data: { a: '1' },
    },
    facts: { createdByUpdate: true, updateEntryIndex: 0 },
  });
  expect(OBJECT).toEqual(before);
});

test('keeps metadata only', () => {
  expect(metadataOnly(OBJECT).object).toEqual({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a', namespace: 'b', annotations: { kept: 'yes' } },
  });
});

test.each([
  ['our create', { manager: 'kindred', operation: 'Update' }, true],
  ['our create, with an empty subresource', { manager: 'kindred', operation: 'Update', subresource: '' }, true],
  ['our apply', { manager: 'kindred', operation: 'Apply' }, false],
  ['our status', { manager: 'kindred', operation: 'Update', subresource: 'status' }, false],
  ["somebody else's update", { manager: 'kubectl-edit', operation: 'Update' }, false],
])('createdByUpdate after %s', (_name, entry, expected) => {
  const object = { ...OBJECT, metadata: { ...OBJECT.metadata, managedFields: [entry] } };
  expect(stripManagedFields(object).facts.createdByUpdate).toBe(expected);
});

test.each([
  ['among those of others', [{ manager: 'kubectl', operation: 'Apply' }, ours('Update')], 1],
  ['beside our status', [ours('Update'), { ...ours('Update'), subresource: 'status' }], 0],
  ['beside what we have applied already', [ours('Apply'), ours('Update')], undefined],
  ['of two versions', [ours('Update'), { ...ours('Update'), apiVersion: 'v2' }], undefined],
])('the place of the entry %s', (_where, managedFields, updateEntryIndex) => {
  const object = { ...OBJECT, metadata: { ...OBJECT.metadata, managedFields } };
  expect(stripManagedFields(object).facts).toEqual({
    createdByUpdate: true,
    ...(updateEntryIndex === undefined ? {} : { updateEntryIndex }),
  });
});

function ours(operation: string): object {
  return { manager: 'kindred', operation };
}

describe('childEntry', () => {
  const fields = { 'f:data': { 'f:a': {} } };
  const entry = (fieldsV1: object): ReturnType<typeof childEntry> => {
    const managedFields = [{ manager: 'kindred', operation: 'Apply', fieldsV1 }];
    return childEntry({ ...OBJECT, metadata: { ...OBJECT.metadata, annotations: undefined, managedFields } as never });
  };

  test('says which fields the operator does not own', () => {
    expect(entry({}).facts).toEqual({ createdByUpdate: false, unowned: { data: true } });
    expect(entry(fields).facts).toEqual({ createdByUpdate: false });
    expect(entry(fields).object.metadata).not.toHaveProperty('managedFields');
  });

  test('stores equal facts once', () => {
    expect(entry({}).facts).toBe(entry({}).facts);
    expect(entry({}).facts).not.toBe(entry(fields).facts);
  });
});

test.each([
  ['by an apply', [stringData('Apply')], { createdByUpdate: false, ownsStringData: true }],
  ['beside our create', [ours('Update'), stringData('Apply')], { createdByUpdate: true, ownsStringData: true }],
  [
    "as somebody else's",
    [{ ...stringData('Apply'), manager: 'kubectl' }],
    { createdByUpdate: false, isUnwritten: true },
  ],
])('stringData that is owned %s', (_how, managedFields, facts) => {
  const object = { ...OBJECT, metadata: { ...OBJECT.metadata, managedFields } };
  expect(stripManagedFields(object).facts).toEqual(facts);
});

function stringData(operation: string): object {
  return { ...ours(operation), fieldsV1: { 'f:stringData': { 'f:a': {} } } };
}
