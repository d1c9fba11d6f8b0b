import type { KubeObject, ObjectMeta } from '../../../constructs/core/kube-object';
import { claimOf, refusal } from '../../../operator/src/reconcile/claim';
import type { Claim } from '../../../operator/src/reconcile/claim';

const OURS = { apiVersion: 'apps.anupam.com/v1', kind: 'HelloApp', name: 'web', uid: 'me', controller: true };
const BY_UID = { 'kindred.dev/owner-uid': 'me' };

function live(metadata: Partial<ObjectMeta>): KubeObject {
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', ...metadata } };
}

function owner(annotations?: Record<string, string>): KubeObject {
  return {
    apiVersion: 'apps.anupam.com/v1',
    kind: 'HelloApp',
    metadata: { name: 'web', uid: 'me', annotations },
  };
}

const adopting = owner({ 'kindred.dev/adopt': 'true' });

describe('claimOf', () => {
  it.each<[string, Partial<ObjectMeta>, Claim, Claim]>([
    ['our controller reference', { ownerReferences: [OURS] }, 'ours', 'ours'],
    ['ours beside a mere owner', { ownerReferences: [{ ...OURS, uid: 'x', controller: false }, OURS] }, 'ours', 'ours'],
    [
      'ours under another version',
      { ownerReferences: [{ ...OURS, apiVersion: 'apps.anupam.com/v2' }] },
      'ours',
      'ours',
    ],
    ['a former object of our name', { ownerReferences: [{ ...OURS, uid: 'old' }] }, 'predecessor', 'predecessor'],
    [
      'a former object of our name under another version',
      { ownerReferences: [{ ...OURS, uid: 'old', apiVersion: 'apps.anupam.com/v1beta1' }] },
      'predecessor',
      'predecessor',
    ],
    [
      'a namesake of another group',
      { ownerReferences: [{ ...OURS, uid: 'x', apiVersion: 'other.com/v1' }] },
      'foreign',
      'foreign',
    ],
    ['another object of our kind', { ownerReferences: [{ ...OURS, uid: 'x', name: 'b' }] }, 'foreign', 'foreign'],
    ['another kind of our name', { ownerReferences: [{ ...OURS, uid: 'x', kind: 'Foo' }] }, 'foreign', 'foreign'],
    [
      'another controller in spite of our annotation',
      { ownerReferences: [{ ...OURS, uid: 'x', name: 'b' }], annotations: BY_UID },
      'foreign',
      'foreign',
    ],
    ['a stripped reference, our uid in the annotation', { annotations: BY_UID }, 'ours', 'ours'],
    [
      'a stripped controller flag',
      { ownerReferences: [{ ...OURS, controller: false }], annotations: BY_UID },
      'ours',
      'ours',
    ],
    [
      'a reference to us that does not control',
      { ownerReferences: [{ ...OURS, controller: false }] },
      'foreign',
      'ours',
    ],
    ['the uid of one who is gone', { annotations: { 'kindred.dev/owner-uid': 'old' } }, 'foreign', 'ours'],
    ['our label alone', { labels: { 'app.kubernetes.io/managed-by': 'kindred' } }, 'foreign', 'ours'],
    ['nothing of ours', {}, 'foreign', 'ours'],
  ])('%s', (_, metadata, plain, adopted) => {
    expect(claimOf(live(metadata), owner())).toBe(plain);
    expect(claimOf(live(metadata), adopting)).toBe(adopted);
  });

  it('adopts for "true" alone', () => {
    expect(claimOf(live({}), owner({ 'kindred.dev/adopt': 'yes' }))).toBe('foreign');
    expect(claimOf(live({ annotations: { 'kindred.dev/adopt': 'true' } }), owner())).toBe('foreign');
  });

  it('never takes an object without a uid for ours', () => {
    const nobody = { ...owner(), metadata: { name: 'web' } };
    expect(claimOf(live({ annotations: BY_UID }), nobody)).toBe('foreign');
  });
});

test('a refusal names the resource and the kind', () => {
  expect(refusal(live({}), 'Foo')).toBe('Resource "web" already exists and is not managed by Foo');
});
