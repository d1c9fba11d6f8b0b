import { owned, type WorkloadObject } from '../../../../constructs/kube/resource-type';
import type { ObjectRef } from '../../../../operator/client/api-client';
import type { Bench } from './bench';

/** Every number of pods that a Deployment was told to have, in order, from a watch: nothing between two looks is missed. */
export class ReplicaRecorder {
  private readonly numbers: number[] = [];
  private seen = '';
  private failure: unknown;
  private readonly end = new AbortController();
  private done: Promise<void> = Promise.resolve();

  private constructor(
    private readonly bench: Bench,
    private readonly ref: ObjectRef,
  ) {}

  /** Starts at the Deployment as it stands. */
  static async start(bench: Bench, ref: ObjectRef): Promise<ReplicaRecorder> {
    const recorder = new ReplicaRecorder(bench, ref);
    const now = await bench.get(owned.Deployment, ref);
    recorder.take(now);
    recorder.done = recorder.follow(now.metadata.resourceVersion ?? '');
    return recorder;
  }

  /** Everything up to now. */
  async stop(): Promise<readonly number[]> {
    const { resourceVersion } = (await this.bench.get(owned.Deployment, this.ref)).metadata;
    await this.bench.eventually('the watch to have caught up', () => {
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
      const events = this.bench.client.watch(owned.Deployment, {
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
