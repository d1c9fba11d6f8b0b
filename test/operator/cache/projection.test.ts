import { metadataOnly, projectMetadata } from '../../../operator/src/cache/projection';

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
  expect(projectMetadata(OBJECT)).toEqual({
    object: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a', namespace: 'b', annotations: { kept: 'yes' } },
      data: { a: '1' },
    },
    facts: { createdByUpdate: true },
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
  expect(projectMetadata(object).facts.createdByUpdate).toBe(expected);
});
