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
import type { Bench } from '../../e2e/operator/support/bench';

/** How a kind's objects are changed, round after round: the spec of an object in its n-th round. */
interface Churned {
  readonly kind: AnyKind;
  readonly spec: (name: string, round: number) => object;
}

const image = (round: number): string => `example.com/app:${String(round)}`;

/** The six kinds, with changes that write all of its children: images, scales, renamed children, autoscalers that come and go. */
const churned: readonly Churned[] = [
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
export interface ChurnOptions {
  readonly namespace: string;
  /** Creations, changes and deletions together. */
  readonly perSecond: number;
  /** How many objects of each of the six kinds stand at once. */
  readonly population: number;
  /** After how many changes an object is deleted. */
  readonly rounds: number;
}

interface Living {
  readonly name: string;
  round: number;
}

/**
 * Users at work: creates, changes, scales and deletes objects of the six kinds at a steady rate. Every object has a name of its own, so that whatever
 * is kept of the deleted ones adds up.
 */
export class Churn {
  readonly done = { created: 0, changed: 0, deleted: 0 };
  private readonly living = new Map<Churned, Living[]>(churned.map((entry) => [entry, []]));
  private turn = 0;
  private names = 0;

  constructor(
    private readonly bench: Bench,
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
    const left = [...this.living].flatMap(([{ kind }, objects]) => objects.map(({ name }) => ({ kind, name })));
    for (const { kind, name } of left) await this.bench.client.delete(kind.type, this.ref(name));
    for (const { kind, name } of left) await this.bench.gone(kind.type, this.ref(name));
  }

  private async step(): Promise<void> {
    const { bench } = this;
    const entry = churned[this.turn % churned.length] as Churned;
    const round = Math.floor(this.turn / churned.length);
    this.turn += 1;
    const { kind, spec } = entry;
    const objects = this.living.get(entry) ?? [];
    const chosen = objects[round % this.options.population];
    if (chosen === undefined) {
      const made = { name: `soak-${kind.singular}-${String((this.names += 1))}`, round: 0 };
      objects.push(made);
      await bench.make(kind, this.ref(made.name), spec(made.name, 0));
      this.done.created += 1;
    } else if (chosen.round >= this.options.rounds) {
      objects.splice(objects.indexOf(chosen), 1);
      await bench.client.delete(kind.type, this.ref(chosen.name));
      this.done.deleted += 1;
    } else {
      chosen.round += 1;
      await bench.respec(kind, this.ref(chosen.name), spec(chosen.name, chosen.round));
      this.done.changed += 1;
    }
  }

  private ref(name: string): { readonly namespace: string; readonly name: string } {
    return { namespace: this.options.namespace, name };
  }
}
