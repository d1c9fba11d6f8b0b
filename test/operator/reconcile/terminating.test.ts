import { owned } from '../../../constructs/kube/resource-type';
import type { AnyKind } from '../../../constructs/kind/kind';
import { DemoMicroService, HelloApp } from '../../../constructs/kinds';
import { Harness, ref, rolledOut } from './harness';

const { Deployment } = owned;
const NOT_READY = ['Ready=False Terminating', 'Reconciling=True Terminating'];

/** An object that is Ready, whose Deployment somebody holds by a finalizer. */
async function held(kind: AnyKind, ...own: readonly string[]): Promise<Harness> {
  const harness = new Harness(kind);
  await harness.add('web', { image: 'i' }, { finalizers: own });
  await harness.reconcile('web');
  harness.server.setStatus(Deployment, ref('web'), rolledOut(1));
  await harness.reconcile('web');
  expect(harness.conditions('web')).toEqual(['Ready=True Ready']);
  setFinalizers(harness, ['example.com/hold']);
  return harness;
}

function setFinalizers(harness: Harness, finalizers: readonly string[]): void {
  harness.server.edit(Deployment, ref('web'), (live) => ({ ...live, metadata: { ...live.metadata, finalizers } }));
}

describe('an object that is being deleted', () => {
  it('is not Ready while a child waits for a finalizer, which it names, and goes when that is dropped', async () => {
    const harness = await held(DemoMicroService);
    harness.server.remove(DemoMicroService.type, ref('web'));
    expect((await harness.reconcile('web')).writes).toEqual(['DELETE Deployment web (Foreground)']);
    await harness.reconcile('web');
    expect(harness.conditions('web')).toEqual(NOT_READY);
    expect(harness.message('web')).toBe(
      'It is being deleted and waits for Deployment "web", which its finalizers hold: example.com/hold, ' +
        "foregroundDeletion (the garbage collector's: what it owns goes first).",
    );
    expect((await harness.reconcile('web')).writes).toEqual([]);
    setFinalizers(harness, []);
    await harness.reconcile('web');
    expect(harness.server.peek(DemoMicroService.type, ref('web'))).toBeUndefined();
  });

  it('is not Ready either while the garbage collector deletes its children first', async () => {
    const harness = await held(HelloApp);
    harness.server.remove(HelloApp.type, ref('web'), 'Foreground');
    harness.server.collectGarbage();
    await harness.reconcile('web');
    expect(harness.conditions('web')).toEqual(NOT_READY);
    expect(harness.message('web')).toContain('Deployment "web", which its finalizers hold: example.com/hold');
    setFinalizers(harness, []);
    harness.server.collectGarbage();
    expect(harness.server.peek(HelloApp.type, ref('web'))).toBeUndefined();
  });

  it('names the finalizers of others that it bears itself, and no child that it does not wait for', async () => {
    const harness = await held(HelloApp, 'example.com/audit');
    harness.server.remove(HelloApp.type, ref('web'));
    await harness.reconcile('web');
    expect(harness.conditions('web')).toEqual(NOT_READY);
    expect(harness.message('web')).toBe('It is being deleted and waits for its own finalizers: example.com/audit.');
  });

  it('names both', async () => {
    const harness = await held(HelloApp, 'example.com/audit');
    harness.server.remove(HelloApp.type, ref('web'), 'Foreground');
    harness.server.collectGarbage();
    await harness.reconcile('web');
    expect(harness.message('web')).toMatch(
      /^It .* waits for Deployment "web", .*; its own finalizers: example.com.audit.$/,
    );
    setFinalizers(harness, []);
    harness.server.collectGarbage();
    await harness.reconcile('web');
    expect(harness.message('web')).toBe('It is being deleted and waits for its own finalizers: example.com/audit.');
  });

  it('says nothing while its children are orphaned', async () => {
    const harness = await held(HelloApp);
    harness.server.remove(HelloApp.type, ref('web'), 'Orphan');
    expect(await harness.reconcile('web')).toEqual({ next: { action: 'wait' }, writes: [] });
  });

  it('says what it waits for although it is paused', async () => {
    const harness = await held(DemoMicroService);
    harness.annotate('web', { 'kindred.dev/paused': 'true' });
    harness.server.remove(DemoMicroService.type, ref('web'));
    await harness.reconcile('web');
    await harness.reconcile('web');
    expect(harness.conditions('web')).toEqual(NOT_READY);
  });
});
