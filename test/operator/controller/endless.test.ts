import { HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { RunningController } from './running-controller';

/** A second: a busy machine must not stop what returns. */
const limitMs = 1_000;
let calls = 0;

/** Never returns for an image of that name. */
function hangOn(image: string, self: KubeObject): void {
  if ((self.spec as { image: string }).image !== image) return;
  calls += 1;
  // As one that must not be met does with a text that it does not match.
  /^(a+)+$/.test(`${'a'.repeat(50)}b`);
}

const Hanging = {
  ...HelloApp,
  children: (scope, self) => {
    hangOn('render', self);
    HelloApp.children(scope, self as never);
  },
  observe: (observation) => {
    hangOn('observe', observation.self);
    return HelloApp.observe?.(observation as never) ?? {};
  },
} as AnyKind;

let running: RunningController;
beforeEach(() => {
  calls = 0;
  running = new RunningController(Hanging, { limitMs });
  running.start();
});
afterEach(() => running.stop());

/** Waits until an object has conditions, which may be after a pause of a second. */
async function conditionsOf(name: string): Promise<readonly string[]> {
  for (let i = 0; i < 100; i += 1) {
    await running.settle();
    if ((running.object(name).status as unknown) !== undefined && running.queue.running.length === 0) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return running.conditions(name);
}

describe.each([
  ['children', 'render'],
  ['observe', 'observe'],
])('%s that never returns', (name, image) => {
  it('fails its object, which is logged, and no other', async () => {
    await running.add('bad', { image });
    await running.add('good', { image: 'i' });
    expect(await conditionsOf('bad')).toEqual(['Ready=False ErrRender', 'Stalled=True ErrRender']);
    expect(running.message('bad')).toBe(
      `HelloApp.${name}: TimeLimitError: it has not returned after 1 s and was stopped. It is called again when the spec, a label or an ` +
        'annotation of the object changes, or another version of the operator starts.',
    );
    expect(running.log).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        key: 'object:default/bad',
        reason: 'ErrRender',
        message: running.message('bad'),
      }),
    );
    await conditionsOf('good');
    expect(running.live(owned.Deployment, 'good')).toBeDefined();
    expect(running.message('good')).not.toContain('HelloApp.');
  });

  it('is not called again before something changes, and then is', async () => {
    await running.add('bad', { image });
    await conditionsOf('bad');
    running.queue.add('object:default/bad');
    await conditionsOf('bad');
    expect(calls).toBe(1);
    running.annotate('bad', { 'kindred.dev/reconcile-at': '1' });
    await conditionsOf('bad');
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    await conditionsOf('bad');
    expect(calls).toBe(2);
    running.respec('bad', { image: 'mended' });
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect((await conditionsOf('bad'))[0]).not.toContain('ErrRender');
    expect(running.live(owned.Deployment, 'bad')).toBeDefined();
  });
});

it('all others are reconciled, whatever the place of the one that never returns among those that wait', async () => {
  await running.stop();
  for (const place of [0, 3, 7]) {
    running = new RunningController(Hanging, { limitMs });
    calls = 0;
    const names = Array.from({ length: 8 }, (_, i) => (i === place ? 'bad' : `good-${i}`));
    for (const name of names) await running.add(name, { image: name === 'bad' ? 'render' : 'i' });
    running.start();
    expect(await conditionsOf('bad')).toEqual(['Ready=False ErrRender', 'Stalled=True ErrRender']);
    const good = names.filter((name) => name !== 'bad');
    for (const name of good) await conditionsOf(name);
    expect(good.map((name) => running.live(owned.Deployment, name).metadata.name)).toEqual(good);
    expect(calls).toBe(1);
    await running.stop();
  }
}, 20_000);

it('a shared key that never returns fails its object, also where objects are indexed by it', async () => {
  const [group] = MicroServiceDeploy.shared;
  const key = (self: KubeObject): string => {
    hangOn('key', self);
    return 'shop';
  };
  const kind = { ...MicroServiceDeploy, shared: [{ ...group, key }] } as AnyKind;
  await running.stop();
  running = new RunningController(kind, { limitMs });
  running.start();
  const spec = { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1' };
  await running.add('bad', { ...spec, image: 'key' });
  expect((await conditionsOf('bad'))[0]).toBe('Ready=False ErrRender');
  expect(running.message('bad')).toContain('MicroServiceDeploy.shared.service.key: TimeLimitError');
  expect(calls).toBe(1);
  expect(running.live.bind(running, owned.Deployment, 'shop-1')).toThrow();
});
