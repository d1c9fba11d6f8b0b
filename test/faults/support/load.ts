import { setTimeout as delay } from 'node:timers/promises';
import { childTypes, type AnyKind } from '../../../constructs/kind/kind';
import {
  CronTab,
  DemoMicroService,
  Foo,
  HelloApp,
  MicroServiceDeploy,
  SampleResource,
} from '../../../constructs/kinds';
import { MANAGED_BY_LABEL, RECONCILE_AT_ANNOTATION } from '../../../constructs/kube/envelope';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import { ApiError, TransportError } from '../../../operator/client/errors';
import { waitFor } from '../../../testing/wait-for';
import type { TestEnv } from '../../support/test-env';
import type { Workload } from './traffic';

/** How much there is to do. */
interface LoadSize {
  /** Objects of each of the six kinds that live from beginning to end. */
  readonly steady: number;
  /** How often everything else is done; each time with new objects that come and go. */
  readonly rounds: number;
  /** From one act to the next of a kind, in milliseconds: the work is spread over the fault's time. */
  readonly paceMs: number;
}

/** Of one object in a round: its spec twice, each child edited and deleted once; what a child becomes is told once more. */
const CHANGES = 8;

/** An object that is to stand at the end. */
interface LiveObject {
  readonly kind: AnyKind;
  readonly name: string;
}

/**
 * What users do to the six kinds in one namespace: create, update, scale, edit and delete children, delete owners. They reach the API server
 * directly, whatever stands between it and the operator.
 */
export class Load {
  private readonly alive = new Map<string, LiveObject>();
  private forced = 0;

  constructor(
    readonly env: TestEnv,
    readonly namespace: string,
    private readonly size: LoadSize,
  ) {}

  /** What is to stand at the end, and nothing else of the kinds. */
  get liveObjects(): readonly LiveObject[] {
    return [...this.alive.values()];
  }

  /** What there is to do; once all of it is done. */
  get workload(): Workload {
    return { objects: this.alive.size, changes: CHANGES * this.size.rounds };
  }

  /** Makes what is there before the trouble begins. */
  async before(): Promise<void> {
    await this.ofAll((role) => [
      ...this.steady().map((name) => () => this.make(role, name)),
      ...this.rounds().map((round) => () => this.make(role, `doomed-${round}`)),
    ]);
  }

  /** All else. */
  async during(): Promise<void> {
    const [first = ''] = this.steady();
    await this.ofAll((role) => [
      ...this.rounds().flatMap((round) => [
        () => this.make(role, `new-${round}`),
        () => this.make(role, `brief-${round}`),
        () => this.ofSteady((name) => this.change(role, name, 0)),
        () => this.editChildren(role.kind, first),
        () => this.delete(role.kind, `doomed-${round}`),
        () => this.ofSteady((name) => this.change(role, name, 1)),
        () => this.change(role, `new-${round}`, 0),
        () => this.delete(role.kind, `brief-${round}`),
        () => this.deleteChildren(role.kind, first),
      ]),
    ]);
  }

  /** Has every object reconciled, though nothing has changed. */
  async forceReconciles(): Promise<void> {
    this.forced += 1;
    const annotations = { [RECONCILE_AT_ANNOTATION]: String(this.forced) };
    await Promise.all(
      this.liveObjects.map(({ kind, name }) => this.env.patch(kind.type, this.at(name), { metadata: { annotations } })),
    );
  }

  private at(name: string) {
    return { namespace: this.namespace, name };
  }

  private steady(): readonly string[] {
    return Array.from({ length: this.size.steady }, (_, i) => `steady-${String(i)}`);
  }

  private rounds(): readonly string[] {
    return Array.from({ length: this.size.rounds }, (_, i) => String(i));
  }

  private async ofAll(acts: (role: KindWorkload) => readonly (() => Promise<unknown>)[]): Promise<void> {
    await Promise.all(
      kindWorkloads.map(async (role) => {
        for (const act of acts(role)) {
          await act();
          await delay(this.size.paceMs);
        }
      }),
    );
  }

  private async ofSteady(act: (name: string) => Promise<unknown>): Promise<void> {
    await Promise.all(this.steady().map(act));
  }

  private async make({ kind, spec }: KindWorkload, part: string): Promise<void> {
    const name = nameOf(kind, part);
    this.alive.set(`${kind.kind} ${name}`, { kind, name });
    await retryUntilAccepted(`create ${kind.kind} ${name}`, () =>
      this.env.create(kind.type, this.at(name), { spec: spec(name) }),
    );
  }

  private async change({ kind, changes }: KindWorkload, part: string, index: 0 | 1): Promise<void> {
    const name = nameOf(kind, part);
    const spec = changes(name)[index];
    await retryUntilAccepted(`change ${kind.kind} ${name}`, () => this.env.patch(kind.type, this.at(name), { spec }));
  }

  private async delete(kind: AnyKind, part: string): Promise<void> {
    const name = nameOf(kind, part);
    this.alive.delete(`${kind.kind} ${name}`);
    await retryUntilAccepted(`delete ${kind.kind} ${name}`, () => this.env.client.delete(kind.type, this.at(name)));
  }

  /** Somebody edits every child that stands. */
  private async editChildren(kind: AnyKind, part: string): Promise<void> {
    const metadata = { labels: { [MANAGED_BY_LABEL]: null } };
    const template = { spec: { containers: [{ name: 'stranger', image: 'stranger:1' }] } };
    for (const [type, child] of await this.childrenOf(kind, nameOf(kind, part))) {
      const edit = type === owned.Deployment ? { metadata, spec: { template } } : { metadata };
      await retryUntilAccepted(`edit ${type.kind} ${child.metadata.name}`, () =>
        this.env.patch(type, this.at(child.metadata.name), edit),
      );
    }
  }

  /** Somebody deletes every child that stands. */
  private async deleteChildren(kind: AnyKind, part: string): Promise<void> {
    for (const [type, child] of await this.childrenOf(kind, nameOf(kind, part))) {
      await retryUntilAccepted(`delete ${type.kind} ${child.metadata.name}`, () =>
        this.env.client.delete(type, this.at(child.metadata.name)),
      );
    }
  }

  private async childrenOf(kind: AnyKind, name: string) {
    const lists = await Promise.all(
      childTypes(kind).map(async (type) => {
        const list = await retryUntilAccepted(`list ${type.plural}`, () =>
          this.env.client.list(type, { namespace: this.namespace }),
        );
        const held = (child: KubeObject): boolean =>
          child.metadata.ownerReferences?.some((owner) => owner.kind === kind.kind && owner.name === name) === true;
        return (list?.items ?? []).filter(held).map((child) => [type, child] as const);
      }),
    );
    return lists.flat();
  }
}

/** Children bear the names of their owners, so that two kinds cannot have the same. */
function nameOf({ kind }: AnyKind, part: string): string {
  return `${kind.toLowerCase()}-${part}`;
}

/** What one kind does in a load. */
interface KindWorkload {
  readonly kind: AnyKind;
  /** The spec that an object begins with. */
  readonly spec: (name: string) => object;
  /** Then these are merged into it, one after the other: an update, and where the kind can scale, another size. */
  readonly changes: (name: string) => readonly [object, object];
}

/** Never while a test runs: a Job would change the status of its CronTab at a time of its own. */
const RARE_SCHEDULE = '0 0 29 2 *';

/** All instances of a namespace share the Service and the ServiceAccount of this name. */
const SHARED = 'service';

/** The six kinds, each with the changes that take the most writes. */
const kindWorkloads: readonly KindWorkload[] = [
  {
    kind: HelloApp,
    spec: () => ({ image: 'nginx:1', size: 1 }),
    changes: () => [{ image: 'nginx:2' }, { size: 2 }],
  },
  {
    kind: DemoMicroService,
    spec: () => ({ image: 'podinfo:1' }),
    changes: () => [{ image: 'podinfo:2' }, { image: 'podinfo:3' }],
  },
  {
    kind: MicroServiceDeploy,
    spec: (name) => ({
      ...{ msName: SHARED, fullName: name, version: '1.0', path: 'v1', image: 'service:1', replicas: 2 },
      config: 'a=1',
    }),
    // The number of pods is handed over to the autoscaler, and an instance is renamed.
    changes: (name) => [
      { autoscaling: true, config: 'a=2' },
      { autoscaling: false, replicas: 1, fullName: `${name}-renamed` },
    ],
  },
  {
    kind: CronTab,
    spec: () => ({ cronSpec: RARE_SCHEDULE, image: 'busybox:1' }),
    changes: () => [{ image: 'busybox:2' }, { suspend: true }],
  },
  {
    kind: SampleResource,
    spec: () => ({ podImage: 'nginx:1' }),
    changes: () => [{ podImage: 'nginx:2' }, { podImage: 'nginx:3' }],
  },
  {
    kind: Foo,
    spec: (name) => ({ deploymentName: `${name}-old`, replicas: 1 }),
    changes: (name) => [{ deploymentName: `${name}-new` }, { replicas: 2 }],
  },
];

type Attempt<T> = { readonly value: T | undefined } | { readonly error: unknown };

/**
 * Does what a user does who tries again until the server has taken it: the faults of a test may be the server's own.
 *
 * @returns undefined when there is nothing to do it to (404), or it was done by an attempt whose answer was lost (409 of a create)
 * @throws ApiError when the server refuses it; Error when it has not taken it after two minutes
 */
async function retryUntilAccepted<T>(what: string, act: () => Promise<T>): Promise<T | undefined> {
  const options = { describe: `the server to take it: ${what}`, timeout: 120_000, interval: 200 };
  const attempt = await waitFor(() => tryOnce(act), options);
  if ('error' in attempt) throw attempt.error;
  return attempt.value;
}

async function tryOnce<T>(act: () => Promise<T>): Promise<Attempt<T> | undefined> {
  try {
    return { value: await act() };
  } catch (error) {
    if (error instanceof TransportError) return undefined;
    if (!(error instanceof ApiError)) return { error };
    if (error.code === 404 || error.reason === 'AlreadyExists') return { value: undefined };
    // 429 and 5xx are a server that starts; a Conflict is a patch that met another.
    return error.code === 429 || error.code >= 500 || error.code === 409 ? undefined : { error };
  }
}
