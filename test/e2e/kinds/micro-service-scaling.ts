import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { MicroServiceDeploy } from '../../../constructs/kinds';
import type { Bench } from '../operator/support/bench';
import { ready } from '../operator/support/conditions';
import { childrenStand, expectChildren } from '../operator/support/expect-children';
import { ReplicaRecorder } from '../operator/support/replica-recorder';

/** Who says how many pods a MicroServiceDeploy has, on a real API server with its autoscaler. */
export function microServiceScalingTests(bench: Bench): void {
  let ref: { namespace: string; name: string };
  let child: { namespace: string; name: string };
  beforeAll(async () => {
    const namespace = await bench.namespace('scaling');
    ref = { namespace, name: 'scaled' };
    child = { namespace, name: 'scaled-v1' };
    const spec = { msName: 'scaled', fullName: child.name, version: '1', path: 'v1', image: 'ms:1', replicas: 4 };
    await bench.make(MicroServiceDeploy, ref, spec);
    await bench.until(MicroServiceDeploy.type, ref, 'Ready', ready);
  });

  /** Changes the spec and gives every number of pods on the way to Ready. */
  const numbersOn = async (spec: object): Promise<readonly number[]> => {
    const recorder = await ReplicaRecorder.start(bench, child);
    await bench.respec(MicroServiceDeploy, ref, spec);
    await expectChildren(bench, MicroServiceDeploy, await bench.until(MicroServiceDeploy.type, ref, 'Ready', ready));
    return recorder.stop();
  };
  const autoscaler = (): Promise<KubeObject | undefined> => bench.client.get(owned.HorizontalPodAutoscaler, child);
  /** What an autoscaler does: it writes to the scale subresource. */
  const scale = async (replicas: number): Promise<void> => {
    const { namespace, name } = child;
    const { code } = await bench.kubectl([
      'scale',
      `deployment/${name}`,
      `--replicas=${String(replicas)}`,
      '-n',
      namespace,
    ]);
    expect(code).toBe(0);
    await bench.until(owned.Deployment, child, 'scaled', ({ status }) => status?.availableReplicas === replicas);
  };

  test('autoscaling on takes over at the live number', async () => {
    expect(await numbersOn({ autoscaling: true, replicas: 2 })).toEqual([4]);
    expect(await autoscaler()).toBeDefined();
  });

  test('the operator does not fight the autoscaler', async () => {
    await scale(6);
    expect(await numbersOn({ image: 'ms:2' })).toEqual([6]);
  });

  test('an edited or deleted autoscaler comes back, and the number of pods stays', async () => {
    const recorder = await ReplicaRecorder.start(bench, child);
    const live = await bench.get(MicroServiceDeploy.type, ref);
    await bench.patch(owned.HorizontalPodAutoscaler, child, { spec: { maxReplicas: 20 } });
    await childrenStand(bench, MicroServiceDeploy, live);
    await bench.client.delete(owned.HorizontalPodAutoscaler, child);
    await childrenStand(bench, MicroServiceDeploy, live);
    expect(await recorder.stop()).toEqual([6]);
  });

  test('autoscaling off stays at the live number, if that is wanted', async () => {
    expect(await numbersOn({ autoscaling: false, replicas: 6 })).toEqual([6]);
    expect(await autoscaler()).toBeUndefined();
  });

  test('autoscaling off goes straight to the number that is wanted', async () => {
    expect(await numbersOn({ autoscaling: true })).toEqual([6]);
    await scale(5);
    expect(await numbersOn({ autoscaling: false, replicas: 3 })).toEqual([5, 3]);
  });

  test('idle scales to zero and takes the autoscaler away; waking seeds at least one pod', async () => {
    expect(await numbersOn({ autoscaling: true })).toEqual([3]);
    expect(await numbersOn({ idle: true })).toEqual([3, 0]);
    expect(await autoscaler()).toBeUndefined();
    expect(await numbersOn({ idle: false, replicas: 0 })).toEqual([0, 1]);
    expect(await autoscaler()).toBeDefined();
  });

  test('created with autoscaling, it keeps the number that the autoscaler chose through its first change', async () => {
    const { namespace } = ref;
    const born = { namespace, name: 'born' };
    const spec = { msName: 'born', fullName: 'born-v1', version: '1', path: 'v1', image: 'ms:1', autoscaling: true };
    await bench.make(MicroServiceDeploy, born, spec);
    await bench.until(MicroServiceDeploy.type, born, 'Ready', ready);
    const deployment = { namespace, name: 'born-v1' };
    await bench.kubectl(['scale', 'deployment/born-v1', '--replicas=3', '-n', namespace]);
    const recorder = await ReplicaRecorder.start(bench, deployment);
    await bench.respec(MicroServiceDeploy, born, { image: 'ms:2' });
    await expectChildren(bench, MicroServiceDeploy, await bench.until(MicroServiceDeploy.type, born, 'Ready', ready));
    expect(await recorder.stop()).toEqual([3]);
  });

  test('without autoscaling, idle and waking follow replicas', async () => {
    expect(await numbersOn({ autoscaling: false, replicas: 2 })).toEqual([1, 2]);
    expect(await numbersOn({ idle: true })).toEqual([2, 0]);
    expect(await numbersOn({ idle: false })).toEqual([0, 2]);
  });
}
