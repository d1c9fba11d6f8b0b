import { setTimeout as delay } from 'node:timers/promises';
import type { AnyKind } from '../../../constructs/kind/kind';
import {
  CronTab,
  DemoMicroService,
  Foo,
  HelloApp,
  MicroServiceDeploy,
  SampleResource,
} from '../../../constructs/kinds';
import { noFault, when, type FaultProxy } from '../../../testing/fault-proxy/fault-proxy';
import type { TestEnv } from '../../support/test-env';

/** How a kind's objects are changed, round after round: the spec of an object in its n-th round. */
interface ChurnedKind {
  readonly kind: AnyKind;
  readonly spec: (name: string, round: number) => object;
}

const image = (round: number): string => `example.com/app:${String(round)}`;

/** The six kinds, with changes that write all of its children: images, scales, renamed children, autoscalers that come and go. */
const churned: readonly ChurnedKind[] = [
  { kind: HelloApp, spec: (_, round) => ({ image: image(round >> 1), size: round % 3 }) },
  { kind: DemoMicroService, spec: (_, round) => ({ image: image(round) }) },
  { kind: SampleResource, spec: (_, round) => ({ podImage: image(round) }) },
  {
    kind: Foo,
    spec: (name, round) => ({ deploymentName: `${name}-${String((round >> 1) % 2)}`, replicas: 1 + (round % 2) }),
  },
  {
    kind: CronTab,
    spec: (_, round) => ({ cronSpec: '0 0 1 1 *', image: image(round >> 1), suspend: round % 2 === 1 }),
  },
  {
    kind: MicroServiceDeploy,
    spec: (name, round) => ({
      // Two objects share a service; the last of them takes it along.
      msName: `service-${String(Number(/\d+$/.exec(name)?.[0]) >> 1)}`,
      fullName: `${name}-${String((round >> 2) % 2)}`,
      version: '1',
      path: 'v1',
      image: image(round >> 1),
      autoscaling: round % 4 === 3,
      idle: round % 4 === 2,
      config: `round=${String(round)}`,
    }),
  },
];

/** How fast, and how much of it. */
interface ChurnOptions {
  readonly namespace: string;
  /** Creations, changes and deletions together. */
  readonly perSecond: number;
  /** How many objects of each of the six kinds stand at once. */
  readonly population: number;
  /** After how many changes an object is deleted. */
  readonly rounds: number;
}

interface LiveObject {
  readonly name: string;
  round: number;
}

/**
 * Users at work: creates, changes, scales and deletes objects of the six kinds at a steady rate. Every object has a name of its own, so that whatever
 * is kept of the deleted ones adds up.
 */
export class Churn {
  readonly done = { created: 0, changed: 0, deleted: 0 };
  private readonly liveObjects = new Map<ChurnedKind, LiveObject[]>(churned.map((entry) => [entry, []]));
  private turn = 0;
  private names = 0;

  constructor(
    private readonly env: TestEnv,
    private readonly options: ChurnOptions,
  ) {}

  /** Works until the signal aborts. What takes longer than its time makes the rate fall, not the number of requests at once rise. */
  async run(signal: AbortSignal): Promise<void> {
    const everyMs = 1000 / this.options.perSecond;
    let due = Date.now();
    while (!signal.aborted) {
      await this.step();
      due = Math.max(due + everyMs, Date.now());
      await delay(due - Date.now());
    }
  }

  /** Deletes what is left, and waits until it is gone. */
  async end(): Promise<void> {
    const left = [...this.liveObjects].flatMap(([{ kind }, objects]) => objects.map(({ name }) => ({ kind, name })));
    for (const { kind, name } of left) await this.env.client.delete(kind.type, this.ref(name));
    for (const { kind, name } of left) await this.env.waitUntilGone(kind.type, this.ref(name));
  }

  private async step(): Promise<void> {
    const { env } = this;
    const entry = churned[this.turn % churned.length] as ChurnedKind;
    const round = Math.floor(this.turn / churned.length);
    this.turn += 1;
    const { kind, spec } = entry;
    const objects = this.liveObjects.get(entry) ?? [];
    const chosen = objects[round % this.options.population];
    if (chosen === undefined) {
      const made = { name: `soak-${kind.singular}-${String((this.names += 1))}`, round: 0 };
      objects.push(made);
      await env.createOfKind(kind, this.ref(made.name), spec(made.name, 0));
      this.done.created += 1;
    } else if (chosen.round >= this.options.rounds) {
      objects.splice(objects.indexOf(chosen), 1);
      await env.client.delete(kind.type, this.ref(chosen.name));
      this.done.deleted += 1;
    } else {
      chosen.round += 1;
      await env.patchSpec(kind, this.ref(chosen.name), spec(chosen.name, chosen.round));
      this.done.changed += 1;
    }
  }

  private ref(name: string): { readonly namespace: string; readonly name: string } {
    return { namespace: this.options.namespace, name };
  }
}

/** How often something is wrong between the operator and the API server. */
interface FaultIntervals {
  /** Every connection is cut this often, in milliseconds: all watches begin anew. */
  readonly cutEveryMs: number;
  /** At every how-manieth cut every third request is refused for a second after it. */
  readonly errorsEvery: number;
}

/** Makes ordinary trouble until the signal aborts: a watch that ends, a server that answers 500 or 503 now and then. */
export async function injectFaults(proxy: FaultProxy, options: FaultIntervals, signal: AbortSignal): Promise<number> {
  let cuts = 0;
  while (await passed(options.cutEveryMs, signal)) {
    proxy.dropConnections();
    cuts += 1;
    // Nobody reads them here, and in half an hour they would be many.
    proxy.requests.length = 0;
    if (cuts % options.errorsEvery !== 0) continue;
    let asked = 0;
    proxy.fault = when(
      ({ isBackground }) => !isBackground && (asked += 1) % 3 === 0,
      (exchange) => {
        if (asked % 2 === 0) exchange.respondWithError(500, 'InternalError');
        else exchange.respondWithError(503, 'ServiceUnavailable', { 'retry-after': '1' });
        return Promise.resolve();
      },
    );
    await passed(1000, signal);
    proxy.fault = noFault;
  }
  return cuts;
}

/** @returns false when the signal came first */
async function passed(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await delay(ms, undefined, { signal });
  } catch {
    // The signal; it is what ends the trouble.
  }
  return !signal.aborted;
}
