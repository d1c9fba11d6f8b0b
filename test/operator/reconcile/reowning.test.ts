import type { ObjectMeta } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import { reconcileObject } from '../../../operator/reconcile/reconcile-object';
import { Harness, ref } from './harness';

const { Deployment } = owned;

describe('a child whose owner reference was stripped', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = new Harness(HelloApp);
    await harness.add('other', { image: 'i' });
    await harness.add('web', { image: 'i' });
    await harness.reconcile('web');
  });

  function strip(further: Partial<ObjectMeta> = {}): void {
    harness.server.edit(Deployment, ref('web'), (live) => ({
      ...live,
      metadata: { ...live.metadata, ownerReferences: [], ...further },
    }));
  }

  /** What happens to the object without the operator hearing of it. */
  function unheard(happen: () => void): void {
    harness.server.eventDelivery = 'held';
    happen();
  }

  function requests(): readonly string[] {
    return harness.server.requests.map(({ verb, type }) => `${verb} ${type.kind}`);
  }

  async function expectStale(message: string): Promise<void> {
    harness.server.takeRequests();
    const reconciled = reconcileObject(harness.context, ref('web'));
    await expect(reconciled).rejects.toMatchObject({ code: 409, message: expect.stringContaining(message) as string });
    expect(harness.server.writes).toEqual([]);
    expect(harness.live(Deployment, 'web').metadata.ownerReferences).toEqual([]);
  }

  it('is owned again after one look at its owner', async () => {
    strip();
    await harness.reconcile('web');
    expect(requests().slice(0, 2)).toEqual(['LIST HelloApp', 'PATCH Deployment']);
    expect(harness.live(Deployment, 'web').metadata.ownerReferences).toHaveLength(1);
    await harness.reconcile('web');
    expect(requests()).toEqual([]);
  });

  it('costs no look when it is written for another reason', async () => {
    harness.respec('web', { size: 3 });
    await harness.reconcile('web');
    expect(harness.server.writes).toContain('APPLY Deployment web (kindred)');
    expect(requests()).not.toContain('LIST HelloApp');
  });

  it('stays as it is when its owner goes with --cascade=orphan and no event has told of it', async () => {
    strip();
    unheard(() => harness.server.remove(HelloApp.type, ref('web'), 'Orphan'));
    await expectStale('helloapps "web" is being deleted, and no event has told of it yet');
  });

  it('stays as it is when its owner has gone unheard', async () => {
    strip();
    unheard(() => harness.server.remove(HelloApp.type, ref('web')));
    await expectStale('helloapps "web" was deleted, or replaced');
  });

  it('stays as it is when another object stands in the place of its owner', async () => {
    strip();
    const { apiVersion, kind } = HelloApp;
    const successor = { apiVersion, kind, metadata: ref('web'), spec: { image: 'i' } };
    unheard(() => harness.server.remove(HelloApp.type, ref('web')));
    await harness.server.create(HelloApp.type, successor, { fieldManager: 'kubectl' });
    await expectStale('helloapps "web" was deleted, or replaced');
  });

  it('is not adopted either by an owner that goes', async () => {
    strip({ annotations: { 'kindred.dev/adopt': 'true' } });
    unheard(() => harness.server.remove(HelloApp.type, ref('web'), 'Orphan'));
    await expectStale('is being deleted');
  });
});
