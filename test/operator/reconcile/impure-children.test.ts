import { k8s } from 'cdk8s-plus-27';
import { HelloApp, MicroServiceDeploy } from '../../../constructs/kinds';
import type { AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { Harness, ref } from './harness';

const { Deployment } = owned;

/** A HelloApp with an annotation that a function makes. */
function annotated(annotation: () => string): AnyKind {
  return {
    ...HelloApp,
    children: (scope, self: KubeObject) => {
      const selector = { matchLabels: { app: self.metadata.name } };
      new k8s.KubeDeployment(scope, 'd', {
        metadata: { name: self.metadata.name, annotations: { 'example.com/at': annotation() } },
        spec: {
          selector,
          template: { metadata: { labels: selector.matchLabels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
        },
      });
    },
  } as AnyKind;
}

describe('a kind whose children are not pure', () => {
  it.each<[string, () => string]>([
    ['the clock', () => String(Date.now())],
    ['a random number', () => String(Math.random())],
  ])('is reported instead of written: %s', async (_, annotation) => {
    const harness = new Harness(annotated(annotation));
    await harness.add('web', { image: 'a' });
    expect((await harness.reconcile('web')).writes).toEqual(['APPLY HelloApp web/status (kindred)']);
    expect(harness.conditions('web')).toEqual(['Ready=False ErrImpure', 'Stalled=True ErrImpure']);
    expect(harness.message('web')).toContain('differ at Deployment "web", metadata.annotations["example.com/at"]');
    expect((await harness.reconcile('web')).writes).toEqual([]);
    expect(harness.server.peek(Deployment, ref('web'))).toBeUndefined();
  });

  it('is rendered twice for a new spec, and once otherwise', async () => {
    let calls = 0;
    const harness = new Harness(annotated(() => String((calls += 1) && 'same')));
    await harness.add('web', { image: 'a' });
    await harness.reconcile('web');
    expect(calls).toBe(2);
    await harness.reconcile('web');
    expect(calls).toBe(3);
    harness.respec('web', { image: 'b' });
    await harness.reconcile('web');
    expect(calls).toBe(5);
  });

  it('goes on when the kind is pure for another spec', async () => {
    let isPure = false;
    const harness = new Harness(annotated(() => (isPure ? 'same' : String(Math.random()))));
    await harness.add('web', { image: 'a' });
    await harness.reconcile('web');
    isPure = true;
    expect((await harness.reconcile('web')).writes).toEqual([]);
    harness.respec('web', { image: 'b' });
    await harness.reconcile('web');
    expect(harness.live(Deployment, 'web')).toBeDefined();
  });
});

it('shared children that are not pure are reported instead of written', async () => {
  const [group] = MicroServiceDeploy.shared;
  if (group === undefined) throw new Error('it shares nothing');
  const children: typeof group.children = (scope, key) =>
    void new k8s.KubeService(scope, 's', {
      metadata: { name: key, annotations: { 'example.com/at': String(Math.random()) } },
      spec: { ports: [{ port: 80 }] },
    });
  const harness = new Harness({ ...MicroServiceDeploy, shared: [{ ...group, children }] });
  await harness.add('a', { msName: 'shop', version: '1', path: 'v1', image: 'i', fullName: 'shop-a' });
  const { result, writes } = await harness.reconcileShared('shop');
  expect(writes).toEqual([]);
  expect(result.failed?.reason).toBe('ErrImpure');
  expect(result.state).toMatchObject({ state: 'failed', readiness: { state: 'stalled', reason: 'ErrImpure' } });
  expect((await harness.reconcileShared('shop')).writes).toEqual([]);
});

describe('a child that is rendered differently though its object has not changed', () => {
  it('is written a few times, then ever more slowly, and Ready says so', async () => {
    let state = 0;
    let reads = 0;
    // What both renderings of a new spec agree upon, as a file that another process writes.
    const harness = new Harness(annotated(() => String(reads++ < 2 ? 0 : state)));
    await harness.add('web', { image: 'a' });
    await harness.reconcile('web');
    const applies: string[] = [];
    for (let i = 0; i < 12; i++) {
      state += 1;
      const { writes } = await harness.reconcile('web');
      applies.push(...writes.filter((write) => write.startsWith('APPLY Deployment')));
    }
    expect(applies.length).toBeGreaterThan(3);
    expect(applies.length).toBeLessThan(8);
    expect(harness.conditions('web')[0]).toBe('Ready=False ErrImpure');
    expect(harness.message('web')).toContain(
      'Deployment "web": metadata.annotations.example.com/at is rendered differently again and again',
    );
    harness.respec('web', { image: 'b' });
    await harness.reconcile('web');
    expect(harness.conditions('web')[0]).not.toContain('ErrImpure');
  });
});
