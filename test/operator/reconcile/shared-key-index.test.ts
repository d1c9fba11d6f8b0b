import { HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ObjectRef } from '../../../operator/client/api-client';
import { FunctionLimits } from '../../../operator/reconcile/function-limits';
import { SharedKeyIndex } from '../../../operator/reconcile/shared-keys';

function object(name: string, msName: unknown, namespace = 'n'): KubeObject {
  const spec = { msName, fullName: 'f', version: '1', path: 'v1', image: 'i' };
  return { apiVersion: 'custom.ops/v1', kind: 'MicroServiceDeploy', metadata: { name, namespace }, spec };
}

function ref(name: string): ObjectRef {
  return { namespace: 'n', name };
}

describe('SharedIndex', () => {
  it('follows objects from key to key, and names both when one moves', () => {
    const index = new SharedKeyIndex(MicroServiceDeploy, new FunctionLimits(MicroServiceDeploy));
    expect(index.update(object('b', 'shop'))).toEqual(['service/n/shop']);
    expect(index.update(object('a', 'shop'))).toEqual(['service/n/shop']);
    expect(index.objects('service/n/shop')).toEqual([
      { namespace: 'n', name: 'a' },
      { namespace: 'n', name: 'b' },
    ]);
    expect([...index.update(object('b', 'cart'))].sort()).toEqual(['service/n/cart', 'service/n/shop']);
    expect(index.objects('service/n/shop')).toEqual([{ namespace: 'n', name: 'a' }]);
    expect(index.remove(object('a', 'shop'))).toEqual(['service/n/shop']);
    expect(index.objects('service/n/shop')).toEqual([]);
    expect(index.remove(object('a', 'shop'))).toEqual([]);
  });

  it('tells namespaces apart', () => {
    const index = new SharedKeyIndex(MicroServiceDeploy, new FunctionLimits(MicroServiceDeploy));
    index.update(object('a', 'shop', 'n1'));
    index.update(object('a', 'shop', 'n2'));
    expect(index.objects('service/n1/shop')).toEqual([{ namespace: 'n1', name: 'a' }]);
  });

  it('keeps what an object held while its spec does not fit', () => {
    const index = new SharedKeyIndex(MicroServiceDeploy, new FunctionLimits(MicroServiceDeploy));
    index.update(object('a', 'shop'));
    expect(index.update(object('a', 7))).toEqual(['service/n/shop']);
    expect(index.objects('service/n/shop')).toHaveLength(1);
    expect(index.update(object('b', 7))).toEqual([]);
    expect([index.ids(ref('a')), index.ids(ref('b'))]).toEqual([['service/n/shop'], []]);
  });

  it("bears a kind's code that throws, as any reconcile of the object does", () => {
    const [group] = MicroServiceDeploy.shared;
    const key = (): string => {
      throw new TypeError('a bug of the kind');
    };
    const broken: AnyKind = { ...MicroServiceDeploy, shared: [{ ...group, key }] } as AnyKind;
    const index = new SharedKeyIndex(broken, new FunctionLimits(broken));
    expect(index.update(object('a', 'shop'))).toEqual([]);
  });

  it('is empty for a kind that shares nothing', () => {
    const index = new SharedKeyIndex(HelloApp, new FunctionLimits(HelloApp));
    expect(index.update(object('a', 'shop'))).toEqual([]);
  });
});
