import { MicroServiceDeploy } from '../../../constructs/kinds';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned, type WorkloadObject } from '../../../constructs/kube/resource-type';
import type { ObjectRef } from '../../../operator/client/api-client';
import { waitForChildren, expectChildren, isReadyNow } from '../../support/assertions';
import type { TestEnv } from '../../support/test-env';

/** Who says how many pods a MicroServiceDeploy has, on a real API server with its autoscaler. */
export function microServiceScalingTests(env: TestEnv): void {
  let ref: { namespace: string; name: string };
  let child: { namespace: string; name: string };
  beforeAll(async () => {
    const namespace = await env.namespace('scaling');
    ref = { namespace, name: 'scaled' };
    child = { namespace, name: 'scaled-v1' };
    const spec = { msName: 'scaled', fullName: child.name, version: '1', path: 'v1', image: 'ms:1', replicas: 4 };
    await env.createOfKind(MicroServiceDeploy, ref, spec);
    await env.waitUntil(MicroServiceDeploy.type, ref, 'Ready', isReadyNow);
  });

  /** Changes the spec and gives every number of pods on the way to Ready. */
  const numbersOn = async (spec: object): Promise<readonly number[]> => {
    const recorder = await ReplicaRecorder.start(env, child);
    await env.patchSpec(MicroServiceDeploy, ref, spec);
    await expectChildren(
      env,
      MicroServiceDeploy,
      await env.waitUntil(MicroServiceDeploy.type, ref, 'Ready', isReadyNow),
    );
    return recorder.stop();
  };
  const autoscaler = (): Promise<KubeObject | undefined> => env.client.get(owned.HorizontalPodAutoscaler, child);
  /** What an autoscaler does: it writes to the scale subresource. */
  const scale = async (replicas: number): Promise<void> => {
    const { namespace, name } = child;
    const { code } = await env.kubectl([
      'scale',
      `deployment/${name}`,
      `--replicas=${String(replicas)}`,
      '-n',
      namespace,
    ]);
    expect(code).toBe(0);
    await env.waitUntil(owned.Deployment, child, 'scaled', ({ status }) => status?.availableReplicas === replicas);
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
    const recorder = await ReplicaRecorder.start(env, child);
    const live = await env.get(MicroServiceDeploy.type, ref);
    await env.patch(owned.HorizontalPodAutoscaler, child, { spec: { maxReplicas: 20 } });
    await waitForChildren(env, MicroServiceDeploy, live);
    await env.client.delete(owned.HorizontalPodAutoscaler, child);
    await waitForChildren(env, MicroServiceDeploy, live);
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
    await env.createOfKind(MicroServiceDeploy, born, spec);
    await env.waitUntil(MicroServiceDeploy.type, born, 'Ready', isReadyNow);
    const deployment = { namespace, name: 'born-v1' };
    await env.kubectl(['scale', 'deployment/born-v1', '--replicas=3', '-n', namespace]);
    const recorder = await ReplicaRecorder.start(env, deployment);
    await env.patchSpec(MicroServiceDeploy, born, { image: 'ms:2' });
    await expectChildren(
      env,
      MicroServiceDeploy,
      await env.waitUntil(MicroServiceDeploy.type, born, 'Ready', isReadyNow),
    );
    expect(await recorder.stop()).toEqual([3]);
  });

  test('without autoscaling, idle and waking follow replicas', async () => {
    expect(await numbersOn({ autoscaling: false, replicas: 2 })).toEqual([1, 2]);
    expect(await numbersOn({ idle: true })).toEqual([2, 0]);
    expect(await numbersOn({ idle: false })).toEqual([0, 2]);
  });
}

/** Every number of pods that a Deployment was told to have, in order, from a watch: nothing between two looks is missed. */
class ReplicaRecorder {
  private readonly numbers: number[] = [];
  private seen = '';
  private failure: unknown;
  private readonly end = new AbortController();
  private done: Promise<void> = Promise.resolve();

  private constructor(
    private readonly env: TestEnv,
    private readonly ref: ObjectRef,
  ) {}

  /** Starts at the Deployment as it stands. */
  static async start(env: TestEnv, ref: ObjectRef): Promise<ReplicaRecorder> {
    const recorder = new ReplicaRecorder(env, ref);
    const now = await env.get(owned.Deployment, ref);
    recorder.take(now);
    recorder.done = recorder.follow(now.metadata.resourceVersion ?? '');
    return recorder;
  }

  /** Everything up to now. */
  async stop(): Promise<readonly number[]> {
    const { resourceVersion } = (await this.env.get(owned.Deployment, this.ref)).metadata;
    await this.env.eventually('the watch to have caught up', () => {
      if (this.failure !== undefined) throw new Error('the watch failed', { cause: this.failure });
      return Promise.resolve(Number(this.seen) >= Number(resourceVersion) ? true : undefined);
    });
    this.end.abort();
    await this.done;
    return this.numbers;
  }

  private async follow(resourceVersion: string): Promise<void> {
    const { signal } = this.end;
    const { namespace = '', name } = this.ref;
    try {
      const events = this.env.client.watch(owned.Deployment, {
        namespace,
        fieldSelector: `metadata.name=${name}`,
        resourceVersion,
        timeoutSeconds: 600,
        idleTimeoutMs: 600_000,
        signal,
      });
      for await (const { type, object } of events) {
        if (type !== 'BOOKMARK') this.take(object);
      }
    } catch (error) {
      if (!signal.aborted) this.failure = error;
    }
  }

  private take(deployment: WorkloadObject): void {
    const replicas = deployment.spec?.replicas ?? NaN;
    if (this.numbers.at(-1) !== replicas) this.numbers.push(replicas);
    this.seen = deployment.metadata.resourceVersion ?? '';
  }
}
