import type { KubeObject, ObjectMeta } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { Foo, HelloApp } from '../../../constructs/kinds';
import { claimOf, refusalMessage, sharedClaim, type Claim } from '../../../operator/apply/ownership';

const { Deployment, Service } = owned;
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

const CONSENT = { 'kindred.dev/adopt': 'true' };

function agreed(metadata: Partial<ObjectMeta>): KubeObject {
  return live({ ...metadata, annotations: { ...metadata.annotations, ...CONSENT } });
}

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
  ])('%s', (_, metadata, plain, consented) => {
    expect(claimOf(live(metadata), owner())).toBe(plain);
    expect(claimOf(agreed(metadata), owner())).toBe(consented);
    expect(claimOf(live(metadata), owner(CONSENT))).toBe(plain);
  });

  it('takes over for "true" alone', () => {
    expect(claimOf(live({ annotations: { 'kindred.dev/adopt': 'yes' } }), owner())).toBe('foreign');
  });

  it('never takes an object without a uid for ours', () => {
    const nobody = { ...owner(), metadata: { name: 'web' } };
    expect(claimOf(live({ annotations: BY_UID }), nobody)).toBe('foreign');
  });
});

describe('sharedClaim', () => {
  const HOLDER = { apiVersion: 'apps.anupam.com/v1', kind: 'HelloApp', name: 'a', uid: 'a' };

  it.each<[string, Partial<ObjectMeta>, Claim, Claim]>([
    ['an object of the kind holds it', { ownerReferences: [HOLDER] }, 'ours', 'ours'],
    ['nobody holds it', {}, 'foreign', 'ours'],
    ['another kind holds it', { ownerReferences: [{ ...HOLDER, kind: 'Foo' }] }, 'foreign', 'ours'],
    ['an object controls it', { ownerReferences: [{ ...HOLDER, controller: true }] }, 'foreign', 'foreign'],
  ])('%s', (_, metadata, plain, consented) => {
    expect(sharedClaim(HelloApp, live(metadata))).toBe(plain);
    expect(sharedClaim(HelloApp, agreed(metadata))).toBe(consented);
  });
});

describe('a refusal', () => {
  const namespaced = live({ namespace: 'shop' });
  const vain =
    'Resource "web" already exists and is not managed by HelloApp. The annotation kindred.dev/adopt on HelloApp "web" does nothing';

  it('names the resource and the kind', () => {
    const words = 'Resource "web" already exists and is not managed by Foo';
    expect(refusalMessage(Deployment, namespaced, Foo, [owner()])).toBe(words);
  });

  it('says to whose owner asked for the object where consent must stand, with the command', () => {
    const said = refusalMessage(Deployment, namespaced, HelloApp, [owner(), owner(CONSENT)]);
    expect(said).toBe(
      `${vain}: it must stand on the Deployment. Whoever may edit that can agree with: ` +
        'kubectl annotate deployments.apps web --namespace=shop kindred.dev/adopt=true',
    );
    const core = refusalMessage(Service, live({}), HelloApp, [owner(CONSENT)]);
    expect(core).toContain('with: kubectl annotate services web kindred.dev/adopt=true');
  });

  it('says that what is controlled stays with its controller', () => {
    const controlled = live({ ownerReferences: [{ ...OURS, uid: 'x', name: 'b' }] });
    expect(refusalMessage(Deployment, controlled, HelloApp, [owner(CONSENT)])).toBe(
      `${vain}, and Deployment "web" is controlled by HelloApp "b", which nobody takes it from`,
    );
  });
});
