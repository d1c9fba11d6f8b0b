import type { KubeObject, ObjectMeta } from '../../../constructs/kube/kube-object';
import { HelloApp, Kubeconfig, MicroServiceDeploy } from '../../../constructs/kinds';
import { ObjectCache } from '../../../operator/informer/object-cache';
import { keysOfChild, sharedIdOf } from '../../../operator/controller/queue-keys';
import { UID_INDEX } from '../../../operator/informer/indexer';

const reference = { apiVersion: 'apps.anupam.com/v1', kind: 'HelloApp', name: 'web', uid: 'u', controller: true };

function child(metadata: Partial<ObjectMeta>): KubeObject {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name: 'c', namespace: 'n', ...metadata } };
}

function cacheWith(name: string, uid: string): ObjectCache {
  const cache = new ObjectCache(HelloApp.type, {
    indexes: { [UID_INDEX]: ({ object }) => [object.metadata.uid ?? ''] },
  });
  cache.applyChange({
    apiVersion: 'x',
    kind: 'HelloApp',
    metadata: { name, namespace: 'n', uid, resourceVersion: '5' },
  });
  return cache;
}

describe('keysOfChild', () => {
  it.each<[string, Partial<ObjectMeta>, readonly string[]]>([
    ['its controller', { ownerReferences: [reference] }, ['object:n/web']],
    [
      'an owner under another version',
      { ownerReferences: [{ ...reference, apiVersion: 'apps.anupam.com/v9' }] },
      ['object:n/web'],
    ],
    ['no owner of another group', { ownerReferences: [{ ...reference, apiVersion: 'apps/v1' }] }, []],
    [
      'no owner of a group that begins alike',
      { ownerReferences: [{ ...reference, apiVersion: 'apps.anupam.com.evil/v1' }] },
      [],
    ],
    ['no owner of another kind', { ownerReferences: [{ ...reference, kind: 'Foo' }] }, []],
    [
      'all owners',
      { ownerReferences: [reference, { ...reference, name: 'b', controller: false }] },
      ['object:n/web', 'object:n/b'],
    ],
    ['the object whose uid it bears', { annotations: { 'kindred.dev/owner-uid': 'living' } }, ['object:n/alive']],
    ['nobody for the uid of one who is gone', { annotations: { 'kindred.dev/owner-uid': 'gone' } }, []],
    [
      'the reference before the uid',
      { ownerReferences: [reference], annotations: { 'kindred.dev/owner-uid': 'living' } },
      ['object:n/web'],
    ],
    ['nobody', {}, []],
  ])('wakes %s', (_, metadata, keys) => {
    expect(keysOfChild(HelloApp, cacheWith('alive', 'living'), child(metadata))).toEqual(keys);
  });

  it('wakes an owner that is in no namespace by its name alone', () => {
    const objects = new ObjectCache(Kubeconfig.type, { indexes: { [UID_INDEX]: () => [] } });
    const owner = { ...reference, apiVersion: Kubeconfig.apiVersion, kind: 'Kubeconfig' };
    expect(keysOfChild(Kubeconfig, objects, child({ ownerReferences: [owner] }))).toEqual(['object:/web']);
  });

  it('wakes the shared key before those who hold it', () => {
    const objects = new ObjectCache(MicroServiceDeploy.type, { indexes: { [UID_INDEX]: () => [] } });
    const held = child({
      ownerReferences: [{ apiVersion: 'custom.ops/v1', kind: 'MicroServiceDeploy', name: 'm', uid: 'u' }],
      annotations: { 'kindred.dev/shared-key': 'microservicedeploys.custom.ops/service/shop' },
    });
    expect(keysOfChild(MicroServiceDeploy, objects, held)).toEqual(['shared:service/n/shop', 'object:n/m']);
  });
});

describe('sharedKeyOf', () => {
  it.each<[string, string | undefined, string | undefined]>([
    ['ours', 'microservicedeploys.custom.ops/service/shop', 'service/n/shop'],
    ['a key with slashes', 'microservicedeploys.custom.ops/service/a/b', 'service/n/a/b'],
    ["another kind's", 'helloapps.apps.anupam.com/service/shop', undefined],
    ['one without a key', 'microservicedeploys.custom.ops/service', undefined],
    ['none', undefined, undefined],
  ])('%s', (_, annotation, id) => {
    const annotations: Record<string, string> =
      annotation === undefined ? {} : { 'kindred.dev/shared-key': annotation };
    expect(sharedIdOf(MicroServiceDeploy, child({ annotations }))).toBe(id);
  });
});
