import {
  lastFieldManager,
  ownsField,
  mergeUpdateIntoApply,
  moveStringDataToData,
} from '../../../operator/apply/managed-fields';
import type { ManagedFieldsEntry } from '../../../operator/informer/field-ownership';

const REPLICAS = ['spec', 'replicas'];

/** As a server writes them for a Deployment that was created by POST, applied by kubectl, scaled, and reported upon. */
const created: ManagedFieldsEntry = {
  manager: 'kindred',
  operation: 'Update',
  apiVersion: 'apps/v1',
  time: '2026-01-01T00:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1: {
    'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } },
    'f:spec': {
      'f:replicas': {},
      'f:template': { 'f:spec': { 'f:containers': { 'k:{"name":"c"}': { '.': {}, 'f:image': {}, 'f:name': {} } } } },
    },
  },
};
const applied: ManagedFieldsEntry = {
  manager: 'kindred',
  operation: 'Apply',
  apiVersion: 'apps/v1',
  time: '2026-01-02T00:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1: {
    'f:metadata': { 'f:labels': { 'f:extra': {} } },
    'f:spec': {
      'f:template': {
        'f:spec': { 'f:containers': { 'k:{"name":"c"}': { 'f:image': {} }, 'k:{"name":"d"}': { '.': {} } } },
      },
    },
  },
};
const scaled: ManagedFieldsEntry = {
  manager: 'kindred',
  operation: 'Update',
  subresource: 'scale',
  fieldsV1: { 'f:spec': { 'f:replicas': {} } },
};
const status: ManagedFieldsEntry = {
  manager: 'kindred',
  operation: 'Apply',
  subresource: 'status',
  fieldsV1: { 'f:status': { 'f:x': {} } },
};
const others: ManagedFieldsEntry = {
  manager: 'kubectl',
  operation: 'Update',
  fieldsV1: { 'f:spec': { 'f:paused': {} } },
};

describe('updateMovedToApply', () => {
  it('turns the Update entry into an Apply entry and leaves the others, subresources too', () => {
    const moved = { ...created, operation: 'Apply' };
    expect(mergeUpdateIntoApply([others, created, scaled, status], 'kindred')).toEqual([moved, others, scaled, status]);
  });

  it('unites it with an Apply entry that stands already', () => {
    const moved = mergeUpdateIntoApply([applied, created], 'kindred') ?? [];
    expect(moved).toHaveLength(1);
    expect(moved[0]?.fieldsV1).toEqual({
      'f:metadata': { 'f:labels': { '.': {}, 'f:app': {}, 'f:extra': {} } },
      'f:spec': {
        'f:replicas': {},
        'f:template': {
          'f:spec': {
            'f:containers': {
              'k:{"name":"c"}': { '.': {}, 'f:image': {}, 'f:name': {} },
              'k:{"name":"d"}': { '.': {} },
            },
          },
        },
      },
    });
  });

  it('has nothing to do without an Update entry of the manager itself', () => {
    expect(mergeUpdateIntoApply([], 'kindred')).toBeUndefined();
    expect(mergeUpdateIntoApply([applied, scaled, status, others], 'kindred')).toBeUndefined();
    expect(mergeUpdateIntoApply([created], 'kindred-seed')).toBeUndefined();
  });

  it('changes nothing that it was given', () => {
    const before = JSON.stringify([applied, created]);
    mergeUpdateIntoApply([applied, created], 'kindred');
    expect(JSON.stringify([applied, created])).toBe(before);
  });
});

describe('stringData that an earlier version applied', () => {
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } };
  const sent: ManagedFieldsEntry = {
    manager: 'kindred',
    operation: 'Apply',
    fieldsV1: { 'f:type': {}, 'f:stringData': { 'f:a': {} } },
  };
  const edited: ManagedFieldsEntry = {
    manager: 'kubectl',
    operation: 'Update',
    fieldsV1: { 'f:data': { '.': {}, 'f:c': {} } },
  };

  it('becomes data: every key that nobody else owns', () => {
    const moved = { ...sent, fieldsV1: { 'f:type': {}, 'f:data': { 'f:a': {}, 'f:b': {} } } };
    const live = { ...secret, data: { a: 'YQ==', b: 'Yg==', c: 'Yw==' } };
    expect(moveStringDataToData([edited, sent], 'kindred', live)).toEqual([edited, moved]);
  });

  it('does not become data as a whole, where no key is left or where others own all of them', () => {
    const moved = { ...sent, fieldsV1: { 'f:type': {} } };
    expect(moveStringDataToData([sent], 'kindred', secret)).toEqual([moved]);
    expect(moveStringDataToData([edited, sent], 'kindred', { ...secret, data: { c: 'Yw==' } })).toEqual([
      edited,
      moved,
    ]);
  });

  it("is left alone as somebody else's", () => {
    const entries = [applied, edited, { ...sent, manager: 'kubectl' }];
    expect(moveStringDataToData(entries, 'kindred', { ...secret, data: { a: 'YQ==' } })).toBe(entries);
  });
});

describe('owns', () => {
  it.each<[string, readonly ManagedFieldsEntry[], string, readonly string[], boolean]>([
    ['by update', [created], 'kindred', REPLICAS, true],
    ['by apply', [{ ...created, operation: 'Apply' }], 'kindred', REPLICAS, true],
    ['what is above it', [created], 'kindred', ['spec'], true],
    ['nothing below it', [created], 'kindred', ['spec', 'replicas', 'x'], false],
    ['not by a subresource', [scaled], 'kindred', REPLICAS, false],
    ['not what another owns', [created], 'kindred-seed', REPLICAS, false],
    ['not what it does not name', [applied, others], 'kindred', REPLICAS, false],
    ['not without any fields', [{ manager: 'kindred', operation: 'Apply' }], 'kindred', REPLICAS, false],
  ])('%s', (_, entries, manager, path, expected) => {
    expect(ownsField(entries, manager, path)).toBe(expected);
  });
});

describe('lastFieldManager', () => {
  const entry = (
    manager: string,
    time: string,
    fieldsV1: object,
    more: Partial<ManagedFieldsEntry> = {},
  ): ManagedFieldsEntry =>
    ({ manager, operation: 'Update', time: `2026-01-01T00:00:${time}Z`, fieldsV1, ...more }) as ManagedFieldsEntry;
  const containers = (fields: object): object => ({
    'f:spec': { 'f:template': { 'f:spec': { 'f:containers': { 'k:{"name":"web"}': fields } } } },
  });
  const entries = [
    entry('kindred', '09', { 'f:spec': { 'f:selector': {} } }),
    entry('kube-controller-manager', '05', { 'f:spec': { 'f:replicas': {} } }, { subresource: 'scale' }),
    entry('kubectl-edit', '03', containers({ '.': {}, 'f:image': {} })),
    entry('first', '01', containers({ 'f:image': {} })),
    entry('annotator', '07', { 'f:metadata': { 'f:annotations': { 'f:example.com/a.b': {} } } }),
    entry('kube-controller-manager', '08', { 'f:status': { 'f:replicas': {} } }, { subresource: 'status' }),
  ];
  const live = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { name: 'web', annotations: { 'example.com/a': '', 'example.com/a.b': '' }, managedFields: entries },
    spec: {
      replicas: 3,
      selector: {},
      template: { spec: { containers: [{ name: 'x' }, { name: 'web', image: 'i' }] } },
    },
  };

  test.each([
    ['spec.replicas', 'kube-controller-manager', 'the scale subresource counts'],
    ['spec.template.spec.containers[web].image', 'kubectl-edit', 'the last of two, not who wrote something else later'],
    ['metadata.annotations.example.com/a.b', 'annotator', 'names may have dots'],
    ['spec.minReadySeconds', 'annotator', 'nobody owns it: who wrote last, but not the status'],
  ])('of %s is %s: %s', (path, manager) => {
    expect(lastFieldManager(live, path, ['kindred'])).toBe(manager);
  });

  test('of a field is not who owns only the map around it, nor who owns a field whose name its own begins with', () => {
    const labels = { 'app.kubernetes.io/name': '', app: '' };
    const managedFields = [
      entry('map', '07', { 'f:metadata': { 'f:labels': {} } }),
      entry('app', '08', { 'f:metadata': { 'f:labels': { 'f:app': {} } } }),
      entry('kindred-two', '02', { 'f:metadata': { 'f:labels': { 'f:app.kubernetes.io/name': {} } } }),
    ];
    const labelled = { ...live, metadata: { name: 'web', labels, managedFields } };
    expect(lastFieldManager(labelled, 'metadata.labels.app.kubernetes.io/name', ['kindred'])).toBe('kindred-two');
    expect(lastFieldManager(labelled, 'metadata.labels.app', ['kindred'])).toBe('app');
  });

  test('is none when nobody else has written', () => {
    const metadata = { name: 'web', managedFields: entries.slice(0, 1) };
    expect(lastFieldManager({ ...live, metadata }, 'spec.replicas', ['kindred'])).toBeUndefined();
  });
});
