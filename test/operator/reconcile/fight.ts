import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import { DriftBackoff } from '../../../operator/apply/drift-backoff';
import type { ReconcileResult } from '../../../operator/reconcile/context';
import { reconcileObject } from '../../../operator/reconcile/reconcile-object';
import { Harness, ref, rolledOut } from './harness';

const { Deployment } = owned;
export const CORRECTION = 'APPLY Deployment web (kindred)';
/** How many corrections need no delay. */
export const AT_ONCE = 5;

/** A HelloApp of two replicas whose Deployment somebody else wants otherwise, and a clock that only the test moves. */
export class Fight {
  readonly harness = new Harness(HelloApp);
  private now = 0;
  private readonly context = { ...this.harness.context, driftBackoff: new DriftBackoff(() => this.now) };

  async begin(): Promise<void> {
    await this.harness.add('web', { image: 'nginx:1', size: 2 });
    await this.reconcile();
    this.rollOut(2);
    await this.reconcile();
  }

  /** The other manager sets its value. */
  async meddle(replicas = 9, manager = 'scaler'): Promise<void> {
    await this.harness.server.patch(
      Deployment,
      ref('web'),
      { spec: { replicas } },
      { type: 'merge', fieldManager: manager },
    );
  }

  /** The other manager sets several values. */
  async change(spec: object): Promise<void> {
    await this.harness.server.patch(Deployment, ref('web'), { spec }, { type: 'merge', fieldManager: 'scaler' });
  }

  /** The other manager puts its whole object in the place of ours: without our annotations, or with a hash of its own. */
  replace(annotations: Record<string, string> = {}): void {
    this.harness.server.edit(Deployment, ref('web'), (live) => ({
      ...live,
      metadata: { ...live.metadata, annotations },
      spec: { ...(live.spec as object), replicas: 9 },
    }));
  }

  /** How often the child is corrected while somebody does something to it again and again. */
  async correctionsOf(meddle: (time: number) => void, times = 20): Promise<number> {
    let corrections = 0;
    for (let time = 0; time < times; time++) {
      meddle(time);
      corrections += (await this.reconcile()).writes.filter((write) => write === CORRECTION).length;
    }
    return corrections;
  }

  async reconcile(): Promise<{ readonly next: ReconcileResult; readonly writes: readonly string[] }> {
    this.harness.server.takeRequests();
    const next = await reconcileObject(this.context, ref('web'));
    return { next, writes: this.harness.server.writes };
  }

  /** The other manager meddles and is corrected, as often as that is free. */
  async untilContested(): Promise<void> {
    for (let i = 0; i < AT_ONCE; i++) {
      await this.meddle();
      await this.reconcile();
    }
    await this.meddle();
  }

  pass(ms: number): void {
    this.now += ms;
  }

  rollOut(replicas: number): void {
    const { generation } = this.harness.live(Deployment, 'web').metadata;
    this.harness.server.setStatus(Deployment, ref('web'), rolledOut(replicas, generation));
  }

  get replicas(): unknown {
    return (this.harness.live(Deployment, 'web') as KubeObject & { spec: { replicas: number } }).spec.replicas;
  }
}
