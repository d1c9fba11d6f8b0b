import { MicroServiceDeploy } from '../../../constructs/kinds';
import type { AnyKind } from '../../../constructs/kind/kind';
import { KindFunctionError } from '../../../constructs/kube/function-error';
import { owned } from '../../../constructs/kube/resource-type';
import { FunctionLimits } from '../../../operator/reconcile/function-limits';
import { ObjectRenderer } from '../../../operator/reconcile/render-object';
import { Harness, ref } from './harness';

// The function of a seed that decides whether a live value stays, when it fails.

/** A MicroServiceDeploy whose replicas are judged by a function. */
function judgedBy(keep: (live: unknown) => boolean): AnyKind {
  const seeds = MicroServiceDeploy.seeds.map((seed) => ({ ...seed, keep }));
  return { ...MicroServiceDeploy, seeds } as AnyKind;
}

/** Hands the replicas of a Deployment over to an autoscaler. @returns what came of it */
async function handOver(keep: (live: unknown) => boolean): Promise<Awaited<ReturnType<Harness['reconcile']>>['next']> {
  const harness = new Harness(judgedBy(keep));
  const limits = new FunctionLimits(harness.kind, { limitMs: 200 });
  Object.assign(harness.context, { limits, renderer: new ObjectRenderer(harness.kind, limits) });
  await harness.add('m', { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'i', replicas: 3 });
  await harness.reconcile('m');
  harness.respec('m', { autoscaling: true });
  const { next } = await harness.reconcile('m');
  expect(harness.conditions('m')).toEqual(['Ready=False ErrRender', 'Stalled=True ErrRender']);
  expect(harness.live(owned.Deployment, 'shop-1').spec).toMatchObject({ replicas: 3 });
  expect(harness.server.peek(owned.HorizontalPodAutoscaler, ref('shop-1'))).toBeUndefined();
  return next;
}

it('reports what it throws, with its name, and its stack for the log', async () => {
  const { action, failed, thrown } = await handOver(() => {
    throw new TypeError('no number');
  });
  expect(action).toBe('wait');
  expect(failed?.message).toMatch(
    /^MicroServiceDeploy\.seeds\.keep: TypeError: no number \(.*seeds-keep\.test\.ts:34:11\)/,
  );
  expect(thrown).toBeInstanceOf(KindFunctionError);
});

it('is stopped when it does not return', async () => {
  const { failed } = await handOver(() => {
    for (;;);
  });
  expect(failed?.message).toMatch(/^MicroServiceDeploy\.seeds\.keep: TimeLimitError: it has not returned after 0\.2 s/);
});
