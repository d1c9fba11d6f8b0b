import { z } from 'zod';
import { storesState } from '../../../constructs/kind/effects';
import { defineKind, type AnyKind } from '../../../constructs/kind/kind';
import type { KindFunctionError } from '../../../constructs/kube/function-error';
import { owned } from '../../../constructs/kube/resource-type';
import { EffectReconciler } from '../../../operator/effects/effect-reconciler';
import { EffectInputReader } from '../../../operator/effects/effect-input-reader';
import { EffectRunQueue } from '../../../operator/effects/effect-runs';
import { noopStore, type EffectStore } from '../../../operator/effects/effect-state';
import type { PlanResult, PlanRun, PlanRunner } from '../../../operator/effects/plan-runner';
import { StateStore } from '../../../operator/effects/state-store';
import type { Clock } from '../../../operator/process/clock';
import { Harness, NAMESPACE, ref } from '../reconcile/harness';

/** A kind that acts on something outside: what it makes of `size` is taken away again when it goes. */
export const Thing = defineKind({
  group: 'example.com',
  version: 'v1',
  kind: 'Thing',
  plural: 'things',
  scope: 'Namespaced',
  description: 'Something outside the cluster.',
  spec: z.object({
    size: z.int32().default(1).describe('How large.'),
    secret: z.string().optional().describe('A Secret that decides too.'),
  }),
  status: z.object({
    attempts: z.int32().optional().describe('Runs begun.'),
    built: z.int32().optional().describe('What stands.'),
  }),
  conditionTypes: [{ type: 'Made', description: 'It stands as asked for.' }],
  lastUpdateTime: true,
  finalizer: { name: 'example.com/thing', propagation: 'Foreground' },
  owns: [owned.ConfigMap],
  reads: [
    {
      name: 'secret',
      type: owned.Secret,
      refs: ({ spec }) => (spec.secret === undefined ? [] : [{ namespace: NAMESPACE, name: spec.secret }]),
    },
  ],
  effects: [
    {
      name: 'make',
      phase: 'apply',
      plan: 'thing.up',
      input: ({ spec }, read) => ({
        size: spec.size,
        ...(spec.secret === undefined
          ? {}
          : { digest: read.digest(owned.Secret, { namespace: NAMESPACE, name: spec.secret, key: 'k' }) }),
      }),
      timeoutSeconds: 60,
      maxAttempts: () => 3,
      condition: 'Made',
    },
    {
      name: 'unmake',
      phase: 'remove',
      plan: 'thing.down',
      input: ({ metadata }) => ({ name: metadata.name }),
      timeoutSeconds: 60,
      maxAttempts: () => 2,
    },
  ],
  children() {
    // None: it acts outside.
  },
});

/** A run that waits for the test to end it. */
export interface OpenRun {
  readonly run: PlanRun;
  readonly end: (how: PlanResult | Error) => void;
}

/** A clock that a test moves. */
export class TestClock implements Clock {
  now = 1_000_000;
  private timers: { readonly at: number; readonly run: () => void }[] = [];
  monotonicMs(): number {
    return this.now;
  }
  wallMs(): number {
    return this.now;
  }
  setTimer(run: () => void, ms: number): () => void {
    const timer = { at: this.now + ms, run };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((other) => other !== timer);
    };
  }
  nextTurn(run: () => void): void {
    setImmediate(run);
  }
  pass(ms: number): void {
    this.now += ms;
    const over = this.timers.filter(({ at }) => at <= this.now);
    this.timers = this.timers.filter(({ at }) => at > this.now);
    for (const { run } of over) run();
  }
}

/** A Thing's reconciles with its effects, whose runs the test ends. */
export class World {
  readonly harness: Harness;
  readonly clock = new TestClock();
  readonly open: OpenRun[] = [];
  readonly stop = new AbortController();
  runs: EffectRunQueue;
  woken: string[] = [];
  /** What plans threw unexpectedly. */
  readonly thrown: KindFunctionError[] = [];
  leads = true;
  desk: EffectReconciler;

  constructor(
    /** How many runs at once. */
    private readonly limit = 4,
    private readonly kind: AnyKind = Thing,
  ) {
    this.harness = new Harness(kind);
    this.runs = this.newRuns();
    this.desk = this.newDesk();
  }

  private newRuns(): EffectRunQueue {
    return new EffectRunQueue({ limit: this.limit, stop: this.stop.signal });
  }

  private newDesk(store?: EffectStore): EffectReconciler {
    const { server, context } = this.harness;
    const runner: PlanRunner = (run) =>
      new Promise((resolve, reject) => {
        this.open.push({ run, end: (how) => (how instanceof Error ? reject(how) : resolve(how)) });
      });
    const stored = (): EffectStore =>
      new StateStore({
        client: server,
        kind: this.kind,
        refOf: ({ metadata }) => ({ namespace: NAMESPACE, name: `${metadata.name}-state` }),
        retain: () => false,
      });
    const desk = new EffectReconciler({
      kind: this.kind,
      plans: { 'thing.up': runner, 'thing.down': runner },
      store: store ?? (storesState(this.kind) ? stored() : noopStore),
      reads: new EffectInputReader(server, { namespacesFor: () => [NAMESPACE] }),
      runs: this.runs,
      backoff: { baseMs: 1000, maxMs: 60_000 },
      clock: this.clock,
      record: context.record,
      onPlanError: (_, error) => this.thrown.push(error),
      enqueue: (object) => this.woken.push(object.metadata.name),
      getCached: ({ metadata }) => this.harness.objects.get(metadata)?.object,
      stop: this.stop.signal,
      assertMayRun: () => {
        if (!this.leads) throw new Error('another leads');
      },
    });
    (context as { effects?: EffectReconciler }).effects = desk;
    return desk;
  }

  /** The process was killed, and another one goes on with what is stored. */
  restart(): void {
    this.open.length = 0;
    this.runs = this.newRuns();
    this.desk = this.newDesk();
  }

  /** Ends the one run that is open, and waits until what follows from it is stored. */
  async end(how: PlanResult | Error): Promise<void> {
    const [only] = this.open.splice(0);
    if (only === undefined) throw new Error('no run is open');
    const woken = this.woken.length;
    only.end(how);
    while (this.woken.length === woken) await new Promise((resolve) => setImmediate(resolve));
    await this.settle();
  }

  /** Somebody deletes a Secret, and takes off what holds it. */
  lose(name: string): void {
    const { server } = this.harness;
    server.edit(owned.Secret, ref(name), (secret) => ({ ...secret, metadata: { ...secret.metadata, finalizers: [] } }));
    server.remove(owned.Secret, ref(name));
  }

  async reconcile(name = 'a'): Promise<Awaited<ReturnType<Harness['reconcile']>>> {
    const result = await this.harness.reconcile(name);
    await this.settle();
    return result;
  }

  /** A run's record is stored before the run begins. */
  async settle(): Promise<void> {
    for (let i = 0; i < 20; i += 1) await new Promise((resolve) => setImmediate(resolve));
  }
}
