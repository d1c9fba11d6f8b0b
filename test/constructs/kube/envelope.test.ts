import {
  controllerReference,
  withEnvelope,
  ownerReference,
  ANNOTATION_PREFIX,
} from '../../../constructs/kube/envelope';
import * as envelope from '../../../constructs/kube/envelope';

const owner = {
  apiVersion: 'apps.anupam.com/v1',
  kind: 'HelloApp',
  metadata: { name: 'web', namespace: 'team', uid: 'u-1', labels: { app: 'ignored' } },
};
const child = Object.freeze({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: Object.freeze({
    name: 'c',
    namespace: 'team',
    labels: Object.freeze({ app: 'web', 'app.kubernetes.io/managed-by': 'someone' }),
    annotations: Object.freeze({ note: 'kept' }),
  }),
  data: { a: 'b' },
});

describe('the envelope', () => {
  it('of an owned child: owner reference, owner uid, hash, managed-by, and nothing else', () => {
    const enclosed = withEnvelope(child, { ownerReferences: [controllerReference(owner)], ownerUid: 'u-1', hash: 'h' });
    expect(enclosed).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: 'c',
        namespace: 'team',
        labels: { app: 'web', 'app.kubernetes.io/managed-by': 'kindred' },
        annotations: { note: 'kept', 'kindred.dev/hash': 'h', 'kindred.dev/owner-uid': 'u-1' },
        ownerReferences: [
          {
            apiVersion: 'apps.anupam.com/v1',
            kind: 'HelloApp',
            name: 'web',
            uid: 'u-1',
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      data: { a: 'b' },
    });
  });

  it('of a shared child: every owner, none of them controlling, and the shared key', () => {
    const { metadata } = withEnvelope(child, {
      ownerReferences: [ownerReference(owner)],
      sharedKey: 'k/g/x',
      hash: 'h',
    });
    expect(metadata.ownerReferences).toEqual([
      { apiVersion: 'apps.anupam.com/v1', kind: 'HelloApp', name: 'web', uid: 'u-1' },
    ]);
    expect(metadata.annotations).toEqual({ note: 'kept', 'kindred.dev/hash': 'h', 'kindred.dev/shared-key': 'k/g/x' });
  });

  it('is not put around an owner that stands on no server', () => {
    const { name } = owner.metadata;
    expect(() => ownerReference({ ...owner, metadata: { name } })).toThrow(
      'HelloApp web has no uid: it does not stand on a server yet',
    );
  });

  it('keeps all its annotations under one prefix', () => {
    const annotations = Object.entries(envelope)
      .sort()
      .filter(([name]) => name.endsWith('_ANNOTATION'));
    expect(annotations.map(([, value]) => value)).toEqual(
      [
        'adopt',
        'completed',
        'force-remove',
        'hash',
        'lost-machines',
        'owner-uid',
        'paused',
        'reconcile-at',
        'shared-key',
      ].map((name) => `${ANNOTATION_PREFIX}${name}`),
    );
    expect(ANNOTATION_PREFIX).toBe('kindred.dev/');
  });
});
