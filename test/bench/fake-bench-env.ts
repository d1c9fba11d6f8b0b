import type { AuditSummary } from '../../bench/audit';
import type { RequestPair } from '../../bench/bare-requests';
import type { OperatorUnderTest } from '../../bench/operators-under-test';
import type { Program } from '../../bench/measured-process';
import type { Usage } from '../../bench/results';
import type { BenchContext, MeasuredOperator } from '../../bench/bench-env';
import { HelloApp } from '../../constructs/kinds';
import { controllerReference } from '../../constructs/kube/envelope';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ApiClient, WatchEvent, WatchOptions } from '../../operator/client/api-client';

const none: AuditSummary = {
  ...{ writes: {}, writeCount: 0, events: 0, requests: {} },
  ...{ firstAt: Infinity, lastAt: -Infinity, done: 0, doneAt: -Infinity },
};

/** Milliseconds that each takes for an object, from its first write on. */
export const paces: Readonly<Record<string, number>> = { kindred: 5, tuned: 10, plain: 20, same: 2, apply: 4 };

/** When every operator starts, and how long it then takes to its first write. */
const startedAt = 1_000_000;
export const firstWriteMs = 300;

/** A stage on which everything takes no time and lasts as long as `paces` says; it tells what was done on it, in its order. */
export class FakeStage implements BenchContext {
  readonly told: string[] = [];
  readonly contestants: readonly OperatorUnderTest[];
  readonly client: ApiClient;
  /** What is open and done, for each look in turn; then nothing is open. */
  readonly work: { readonly open: number; readonly done: number }[] = [];
  /** Who leaves one object without its Deployment, and in which of its turns: `tuned 2`. */
  lazy = '';
  private readonly objects = new Map<string, KubeObject>();
  private readonly watches = new Set<(event: WatchEvent) => void>();
  private asked: AuditSummary = none;

  constructor(names: readonly OperatorUnderTest['name'][] = ['kindred', 'tuned', 'plain']) {
    this.contestants = names.map((name) => ({ name, user: name, program: () => Promise.resolve(programOf(name)) }));
    this.client = this.clientOfNothing();
  }

  calm(): Promise<void> {
    this.told.push('calm');
    return Promise.resolve();
  }

  requests(): Promise<AuditSummary> {
    const { asked } = this;
    this.asked = none;
    return Promise.resolve(asked);
  }

  send(pairs: readonly RequestPair[]): Promise<Usage> {
    const name = pairs[0]?.[0].method === 'POST' ? 'same' : 'apply';
    this.told.push(name);
    this.write(pairs.length, paces[name] ?? 0);
    return Promise.resolve({ cpuSeconds: 0.5, peakMiB: 50 });
  }

  start({ command: name }: Program): MeasuredOperator {
    this.told.push(name);
    return {
      startedAt,
      gone: new AbortController().signal,
      reconciling: () => Promise.resolve(250),
      settled: (count) => {
        this.write(count, paces[name] ?? 0);
        return Promise.resolve();
      },
      work: () => Promise.resolve(this.work.shift() ?? { open: 0, done: 1 }),
      usage: () => Promise.resolve({ cpuSeconds: 2, peakMiB: 80 }),
      stop: () => Promise.resolve(),
    };
  }

  /** Two writes an object, and one more after all is done. */
  private write(count: number, pace: number): void {
    const firstAt = startedAt + firstWriteMs;
    const doneAt = firstAt + count * pace;
    const writes = { 'patch deployments 200': count, 'patch helloapps/status 200': count };
    this.asked = { ...none, writes, writeCount: 2 * count, firstAt, doneAt, done: count, lastAt: doneAt + 1000 };
  }

  /** A server on which a child follows its owner at once. */
  private clientOfNothing(): ApiClient {
    const some: Partial<ApiClient> = {
      create: (_, body) => {
        const { name, namespace = '' } = body.metadata;
        const object = { ...body, metadata: { ...body.metadata, uid: `${namespace}-${name}`, generation: 1 } };
        this.objects.set(`${namespace}/${name}`, object);
        return Promise.resolve(object);
      },
      get: (_, { namespace = '', name }) => Promise.resolve(this.objects.get(`${namespace}/${name}`)),
      delete: () => Promise.resolve(true),
      list: (type, { namespace } = {}) =>
        Promise.resolve({ items: this.standing(type.kind, namespace), resourceVersion: '1' }),
      patch: (type, { namespace = '', name }, body) => {
        const { image } = (body as { readonly spec: { readonly image: string } }).spec;
        const generation = 2;
        const metadata = { namespace, name, generation };
        const owner = { ...this.objects.get(`${namespace}/${name}`)!, metadata };
        const child = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { namespace, name } };
        const spec = { template: { spec: { containers: [{ image }] } } };
        for (const tell of this.watches) {
          tell({ type: 'MODIFIED', object: { ...child, spec, status: { observedGeneration: generation } } });
        }
        this.told.push(`edit ${type.kind} ${name}`);
        return Promise.resolve(owner);
      },
      watch: (_, options) => this.events(options),
    };
    return some as ApiClient;
  }

  /** Everything is done, but for what the last to work has left out. */
  private standing(kind: string, namespace: string | undefined): readonly KubeObject[] {
    const apps = [...this.objects.values()].filter(({ metadata }) => metadata.namespace === namespace);
    if (kind === HelloApp.kind) return apps.map(doneApp);
    const turns = this.told.filter((act) => act in paces);
    const [who = ''] = turns.slice(-1);
    const turn = turns.filter((each) => each === who).length;
    return apps.slice(this.lazy === `${who} ${String(turn)}` ? 1 : 0).map(deploymentOf);
  }

  private async *events({ signal, onOpen }: WatchOptions): AsyncGenerator<WatchEvent> {
    const waiting: WatchEvent[] = [];
    let wake = (): void => undefined;
    const tell = (event: WatchEvent): void => {
      waiting.push(event);
      wake();
    };
    signal.addEventListener('abort', () => wake(), { once: true });
    this.watches.add(tell);
    onOpen?.();
    while (!signal.aborted) {
      const event = waiting.shift();
      if (event !== undefined) yield event;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
    this.watches.delete(tell);
    signal.throwIfAborted();
  }
}

function programOf(name: string): Program {
  return {
    command: name,
    args: [],
    env: {},
    reconcilingLine: '',
    expectedErrors: [],
    metricsPort: () => Promise.resolve(0),
  };
}

/** So many objects as `Rounds` makes them. */
export function objectsOf(count: number): readonly KubeObject[] {
  return Array.from({ length: count }, (_, i) => ({
    ...{ apiVersion: HelloApp.apiVersion, kind: HelloApp.kind },
    metadata: { namespace: 'mine', name: `app-${String(i)}` },
  }));
}

/** A HelloApp whose work is done: its status says that it waits for its pods, which nobody starts here. */
export function doneApp(app: KubeObject): KubeObject {
  const { name, generation = 1 } = app.metadata;
  const condition = { reason: 'Progressing', message: '', lastTransitionTime: '', observedGeneration: generation };
  const conditions = [
    { type: 'Ready', status: 'False', ...condition },
    { type: 'Reconciling', status: 'True', ...condition },
  ];
  const status = {
    replicas: 0,
    readyReplicas: 0,
    selector: `app=${name}`,
    observedGeneration: generation,
    conditions,
  };
  return { ...app, status };
}

/** The Deployment of a HelloApp, as far as it is looked at. */
export function deploymentOf(app: KubeObject): KubeObject {
  const { name, namespace = '' } = app.metadata;
  const { image, size } = app['spec'] as { readonly image: string; readonly size: number };
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { namespace, name, ownerReferences: [controllerReference(app)] },
    spec: { replicas: size, template: { spec: { containers: [{ name: 'helloapp', image }] } } },
  };
}
