import type { Converged, Edits, Limit, Restarted, Round } from '../../../bench/operator-results';
import type { KubeObject } from '../../../constructs/core/kube-object';
import { HelloApp } from '../../../constructs/kinds';
import { deleteMany, makeMany } from '../../e2e/operator/many-objects';
import type { AuditedWrites } from './audited-writes';
import { measureEdits } from './edits';
import { pairOf, sendPairs } from './limit';
import type { Options } from './options';
import type { Stage } from './stage';

/** Measures one round after another on one control plane. */
export class Rounds {
  /** A status as the operator writes it, for the bare requests to write. */
  private status: object = {};
  private namespaces = 0;

  constructor(
    private readonly stage: Stage,
    private readonly options: Options,
    private readonly signal: AbortSignal,
  ) {}

  /** A small round that is not counted: the server's caches and compiled paths, and what a status looks like. */
  async warmUp(): Promise<void> {
    const objects = await this.fresh(Math.min(100, this.options.objects));
    await this.converge(objects);
    const { namespace = '', name = '' } = objects[0]?.metadata ?? {};
    this.status = (await this.stage.client.get(HelloApp.type, { namespace, name }))?.status ?? {};
    await deleteMany(this.stage.client, objects);
    await this.limit(await this.fresh(objects.length));
  }

  /** One round: bare requests, the operator from nothing, bare requests again, the operator after a restart and at single edits. */
  async round(): Promise<Round> {
    const { objects } = this.options;
    const before = await this.limit(await this.fresh(objects));
    const apps = await this.fresh(objects);
    const converged = await this.converge(apps);
    const after = await this.limit(await this.fresh(objects));
    const { restarted, edits } = await this.restart(apps);
    await deleteMany(this.stage.client, apps);
    return { limits: [before, after], converged, restarted, edits };
  }

  private fresh(count: number): Promise<readonly KubeObject[]> {
    return makeMany(this.stage.client, `bench-${String((this.namespaces += 1))}`, count);
  }

  /** The bare requests. */
  private async limit(objects: readonly KubeObject[]): Promise<Limit> {
    const { stage, options } = this;
    const pairs = objects.map((object) => pairOf(object, this.status));
    await stage.writes();
    await sendPairs(pairs, stage.kubeconfig, options.concurrency);
    const writes = await stage.writes();
    if (writes.total !== 2 * objects.length) throw new Error(`the bare requests were ${JSON.stringify(writes.counts)}`);
    await deleteMany(stage.client, objects);
    return { objectsPerSecond: perSecond(objects.length, writes) };
  }

  private async converge(objects: readonly KubeObject[]): Promise<Converged> {
    const { stage } = this;
    await stage.writes();
    const operator = stage.operator(this.options.concurrency);
    await operator.settled(objects.length);
    const usage = await operator.usage();
    await operator.stop();
    const writes = await stage.writes();
    return {
      objectsPerSecond: perSecond(objects.length, writes),
      writes: writes.counts,
      writesPerObject: writes.total / objects.length,
      events: writes.events,
      firstWriteMs: writes.firstAt - operator.startedAt,
      convergedMs: writes.lastAt - operator.startedAt,
      ...usage,
    };
  }

  private async restart(
    objects: readonly KubeObject[],
  ): Promise<{ readonly restarted: Restarted; readonly edits: Edits }> {
    const { stage, options } = this;
    const operator = stage.operator(options.concurrency);
    const reconcilingMs = await operator.reconciling();
    await operator.settled(objects.length);
    const usage = await operator.usage();
    const { counts, total, events } = await stage.writes();
    const restarted = { writes: counts, writeCount: total, events, reconcilingMs, ...usage };
    const edited = objects.slice(0, Math.ceil(options.edits / options.rounds));
    const edits = await measureEdits(stage.client, edited, this.signal);
    await operator.stop();
    return { restarted, edits };
  }
}

function perSecond(objects: number, { firstAt, lastAt }: AuditedWrites): number {
  return (objects / (lastAt - firstAt)) * 1000;
}
