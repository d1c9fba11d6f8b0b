import { HASH_ANNOTATION, OWNER_UID_ANNOTATION, SHARED_KEY_ANNOTATION } from '../../../constructs/kube/envelope';
import type { KubeObject, ObjectMeta } from '../../../constructs/kube/kube-object';
import { Foo, HelloApp } from '../../../constructs/kinds';
import { FieldProjection, childProjection } from '../../../operator/informer/field-projection';

const SPEC = { replicas: 1, minReadySeconds: 0 };

function deployment(metadata: Partial<ObjectMeta>): KubeObject {
  const named = { name: 'web', namespace: 'n', uid: 'u', resourceVersion: '1', ...metadata };
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: named, spec: SPEC, status: { replicas: 1 } };
}

function reference(apiVersion: string, kind: string): Partial<ObjectMeta> {
  return { ownerReferences: [{ apiVersion, kind, name: 'web', uid: 'o' }] };
}

describe('what is stored of an object of a child type', () => {
  const projection = new FieldProjection();
  const project = childProjection([HelloApp, Foo], projection);

  test.each([
    ['an object of a kind refers to it', reference('apps.anupam.com/v1', 'HelloApp')],
    ['one of another version of the kind does', reference('apps.anupam.com/v0', 'HelloApp')],
    ['one of the second kind does', reference('samplecontroller.k8s.io/v1alpha1', 'Foo')],
    ['its reference was stripped, the annotation was not', { annotations: { [OWNER_UID_ANNOTATION]: 'o' } }],
    ['it stands under a shared key', { annotations: { [SHARED_KEY_ANNOTATION]: 'helloapps.apps.anupam.com/g/k' } }],
  ])('is its spec and status when %s', (_why, metadata) => {
    expect(project(deployment(metadata)).object).toMatchObject({ spec: SPEC, status: { replicas: 1 } });
  });

  test.each([
    ['nobody refers to it', {}],
    ['only an object of another kind does', reference('apps.anupam.com/v1', 'Other')],
    ['only one of the same kind in another group does', reference('example.com/v1', 'HelloApp')],
    ['its annotations say something else', { annotations: { 'example.com/x': 'y' } }],
  ])('is its metadata only when %s: it can only be in the way', (_why, metadata) => {
    const { object } = project(deployment(metadata));
    expect(object).toEqual({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: deployment(metadata).metadata });
  });

  test('is what is rendered, once that is known', () => {
    const known = new FieldProjection();
    known.register('h', { ...deployment({}), spec: { replicas: 2 } });
    const child = deployment({ annotations: { [OWNER_UID_ANNOTATION]: 'o', [HASH_ANNOTATION]: 'h' } });
    const managedFields = [{ manager: 'kindred', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:replicas': {} } } }];
    const applied = { ...child, metadata: { ...child.metadata, managedFields } } as KubeObject;
    expect(childProjection([HelloApp], known)(applied).object).toMatchObject({ spec: { replicas: 1 } });
    expect(childProjection([HelloApp], known)(applied).object.spec).not.toHaveProperty('minReadySeconds');
    expect(childProjection([HelloApp], known)(child).object.spec).toEqual(SPEC);
    expect(project(applied).object.spec).toEqual(SPEC);
  });

  test('tells what a POST of ours created, which managedFields say and the store does not keep', () => {
    const managedFields = [{ manager: 'kindred', operation: 'Update' }];
    const metadata = { ...reference('apps.anupam.com/v1', 'HelloApp'), managedFields };
    const { object, facts } = project(deployment(metadata));
    expect(facts.createdByUpdate).toBe(true);
    expect(object.metadata).not.toHaveProperty('managedFields');
    expect(project(deployment(reference('apps.anupam.com/v1', 'HelloApp'))).facts.createdByUpdate).toBe(false);
  });
});
