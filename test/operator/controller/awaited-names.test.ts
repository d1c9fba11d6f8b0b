import { owned } from '../../../constructs/kube/resource-type';
import { AwaitedNames } from '../../../operator/controller/queue-keys';

const { ConfigMap, Deployment } = owned;
const taken = { namespace: 'n', name: 'x' };

describe('AwaitedNames', () => {
  it('tells who waits for a name, by type, namespace and name', () => {
    const awaited = new AwaitedNames();
    expect([...awaited.happened(Deployment, taken)]).toEqual([]);
    awaited.set('object:n/a', [{ type: Deployment, ref: taken }], 0);
    awaited.set(
      'object:n/b',
      [
        { type: Deployment, ref: taken },
        { type: ConfigMap, ref: taken },
      ],
      0,
    );
    expect([...awaited.happened(Deployment, taken)]).toEqual(['object:n/a', 'object:n/b']);
    expect([...awaited.happened(ConfigMap, taken)]).toEqual(['object:n/b']);
    expect([...awaited.happened(Deployment, { name: 'x' })]).toEqual([]);
    expect([...awaited.happened(Deployment, { ...taken, name: 'y' })]).toEqual([]);
  });

  it('forgets what a key no longer waits for', () => {
    const awaited = new AwaitedNames();
    awaited.set('object:n/a', [{ type: Deployment, ref: taken }], 0);
    awaited.set('object:n/a', [{ type: ConfigMap, ref: taken }], 0);
    expect([...awaited.happened(Deployment, taken)]).toEqual([]);
    awaited.set('object:n/a', [], 0);
    expect([...awaited.happened(ConfigMap, taken)]).toEqual([]);
  });

  it('says whether something happened to a name while the reconcile was under way that found it taken', () => {
    const awaited = new AwaitedNames();
    const waits = [{ type: Deployment, ref: taken }];
    const early = awaited.begin();
    awaited.happened(Deployment, taken);
    const late = awaited.begin();
    awaited.happened(ConfigMap, taken);
    expect(awaited.set('object:n/a', waits, early)).toBe(true);
    expect(awaited.set('object:n/b', waits, late)).toBe(false);
    expect(awaited.set('object:n/a', [], early)).toBe(false);
    awaited.end(late);
    expect(awaited.set('object:n/a', waits, early)).toBe(true);
    awaited.end(early);
    expect(awaited.set('object:n/a', waits, early)).toBe(false);
  });

  it('does not grow while there is always a reconcile under way', () => {
    const awaited = new AwaitedNames();
    let running = awaited.begin();
    for (let i = 0; i < 1000; i++) {
      awaited.happened(Deployment, { namespace: 'n', name: `web-${String(i)}` });
      const next = awaited.begin();
      awaited.end(running);
      running = next;
    }
    expect(awaited.remembered).toBeLessThanOrEqual(1);
  });

  it('remembers what happened last to a name that something happened to before', () => {
    const awaited = new AwaitedNames();
    const waits = [{ type: Deployment, ref: taken }];
    const first = awaited.begin();
    awaited.happened(Deployment, taken);
    const second = awaited.begin();
    awaited.happened(ConfigMap, taken);
    awaited.happened(Deployment, taken);
    awaited.end(first);
    expect(awaited.set('object:n/a', waits, second)).toBe(true);
    awaited.end(second);
    expect(awaited.remembered).toBe(0);
  });
});
