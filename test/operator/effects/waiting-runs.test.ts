import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { ref } from '../reconcile/harness';
import { Thing, World } from './world';

let world: World;

describe('a run that waits for its turn', () => {
  const names = (): readonly string[] => world.open.map(({ run }) => `${run.run.name} ${run.object.metadata.name}`);
  const state = (): KubeObject | undefined => world.harness.server.peek(owned.Secret, ref('b-state'));
  const stands = (): KubeObject | undefined => world.harness.server.peek(Thing.type, ref('b'));

  /** Thing a has the one slot, b waits for it. */
  beforeEach(async () => {
    world = new World(1);
    await world.harness.add('a', { size: 1 });
    await world.harness.add('b', { size: 1 });
    await world.reconcile('a');
    await world.reconcile('b');
    expect(names()).toEqual(['make a']);
    expect(world.harness.message('b')).toBe('Waiting to run make: other objects go first.');
  });

  test('never begins once its object has gone', async () => {
    world.harness.server.remove(Thing.type, ref('b'));
    await world.reconcile('b');
    expect(stands()).toBeUndefined();
    await world.end({ message: 'Built.' });
    expect(names()).toEqual([]);
    expect(state()).toBeUndefined();
  });

  test('never begins once its object is being deleted, which is told so', async () => {
    world.harness.server.remove(Thing.type, ref('b'));
    await world.end({ message: 'Built.' });
    expect(names()).toEqual([]);
    expect(state()).toBeUndefined();
    expect(world.woken).toEqual(['a', 'b']);
    await world.reconcile('b');
    expect(stands()).toBeUndefined();
  });

  test('never begins for the next object of the name, which gets a run of its own', async () => {
    world.harness.server.remove(Thing.type, ref('b'));
    await world.reconcile('b');
    const next = await world.harness.add('b', { size: 5 });
    await world.end({ message: 'Built.' });
    expect(names()).toEqual([]);
    expect(world.woken).toContain('b');
    await world.reconcile('b');
    expect(world.open.map(({ run }) => run.run.input)).toEqual([{ size: 5 }]);
    expect(state()?.metadata.ownerReferences?.map(({ uid }) => uid)).toEqual([next.metadata.uid]);
  });

  test('begins with the spec that stands then', async () => {
    world.harness.respec('b', { size: 2 });
    await world.end({ message: 'Built.' });
    expect(names()).toEqual([]);
    expect(world.woken).toEqual(['a', 'b']);
    await world.reconcile('b');
    expect(world.open.map(({ run }) => run.run.input)).toEqual([{ size: 2 }]);
  });

  test('is asked for anew when the spec changes, and begins when its turn comes', async () => {
    world.harness.respec('b', { size: 2 });
    await world.reconcile('b');
    await world.end({ message: 'Built.' });
    expect(world.open.map(({ run }) => run.run.input)).toEqual([{ size: 2 }]);
  });

  test('does not begin while its object is paused', async () => {
    world.harness.annotate('b', { 'kindred.dev/paused': 'true' });
    await world.end({ message: 'Built.' });
    expect(names()).toEqual([]);
    world.harness.annotate('b', {});
    await world.reconcile('b');
    expect(names()).toEqual(['make b']);
  });

  test('holds no removal up', async () => {
    await world.end({ message: 'Built.' });
    await world.end({ message: 'Built.' });
    await world.reconcile('b');
    world.harness.respec('a', { size: 2 });
    await world.reconcile('a');
    world.harness.respec('b', { size: 2 });
    await world.reconcile('b');
    world.harness.server.remove(Thing.type, ref('b'));
    await world.reconcile('b');
    expect(world.harness.message('b')).toBe('Waiting to run unmake: other objects go first.');
    await world.end({ message: 'Built.' });
    expect(names()).toEqual(['unmake b']);
  });

  test('is dropped when its object is forgotten', () => {
    const object = world.harness.object('b');
    const { uid = '' } = object.metadata;
    expect(world.runs.of(uid)?.state).toBe('waiting');
    world.desk.forget(object);
    expect(world.runs.of(uid)).toBeUndefined();
  });
});
