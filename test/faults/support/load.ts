import { setTimeout as delay } from 'node:timers/promises';
import { MANAGED_BY_LABEL, RECONCILE_AT_ANNOTATION } from '../../../constructs/kube/envelope';
import { childTypes, type AnyKind } from '../../../constructs/kind/kind';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';
import type { Bench } from '../../e2e/operator/support/bench';
import { cast, type Role } from './cast';
import { insist } from './insist';
import type { Workload } from './traffic';

/** How much there is to do. */
export interface LoadSize {
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
export interface Living {
  readonly kind: AnyKind;
  readonly name: string;
}

/**
 * What users do to the six kinds in one namespace: create, update, scale, edit and delete children, delete owners. They reach the API server
 * directly, whatever stands between it and the operator.
 */
export class Load {
  private readonly alive = new Map<string, Living>();
  private forced = 0;

  constructor(
    readonly bench: Bench,
    readonly namespace: string,
    private readonly size: LoadSize,
  ) {}

  /** What is to stand at the end, and nothing else of the kinds. */
  get living(): readonly Living[] {
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
        () => this.drift(role.kind, first),
        () => this.delete(role.kind, `doomed-${round}`),
        () => this.ofSteady((name) => this.change(role, name, 1)),
        () => this.change(role, `new-${round}`, 0),
        () => this.delete(role.kind, `brief-${round}`),
        () => this.bereave(role.kind, first),
      ]),
    ]);
  }

  /** Has every object reconciled, though nothing has changed. */
  async forceReconciles(): Promise<void> {
    this.forced += 1;
    const annotations = { [RECONCILE_AT_ANNOTATION]: String(this.forced) };
    await Promise.all(
      this.living.map(({ kind, name }) => this.bench.patch(kind.type, this.at(name), { metadata: { annotations } })),
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

  private async ofAll(acts: (role: Role) => readonly (() => Promise<unknown>)[]): Promise<void> {
    await Promise.all(
      cast.map(async (role) => {
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

  private async make({ kind, spec }: Role, part: string): Promise<void> {
    const name = nameOf(kind, part);
    this.alive.set(`${kind.kind} ${name}`, { kind, name });
    await insist(`create ${kind.kind} ${name}`, () =>
      this.bench.create(kind.type, this.at(name), { spec: spec(name) }),
    );
  }

  private async change({ kind, changes }: Role, part: string, index: 0 | 1): Promise<void> {
    const name = nameOf(kind, part);
    const spec = changes(name)[index];
    await insist(`change ${kind.kind} ${name}`, () => this.bench.patch(kind.type, this.at(name), { spec }));
  }

  private async delete(kind: AnyKind, part: string): Promise<void> {
    const name = nameOf(kind, part);
    this.alive.delete(`${kind.kind} ${name}`);
    await insist(`delete ${kind.kind} ${name}`, () => this.bench.client.delete(kind.type, this.at(name)));
  }

  /** Somebody edits every child that stands. */
  private async drift(kind: AnyKind, part: string): Promise<void> {
    const metadata = { labels: { [MANAGED_BY_LABEL]: null } };
    const template = { spec: { containers: [{ name: 'stranger', image: 'stranger:1' }] } };
    for (const [type, child] of await this.childrenOf(kind, nameOf(kind, part))) {
      const edit = type === owned.Deployment ? { metadata, spec: { template } } : { metadata };
      await insist(`edit ${type.kind} ${child.metadata.name}`, () =>
        this.bench.patch(type, this.at(child.metadata.name), edit),
      );
    }
  }

  /** Somebody deletes every child that stands. */
  private async bereave(kind: AnyKind, part: string): Promise<void> {
    for (const [type, child] of await this.childrenOf(kind, nameOf(kind, part))) {
      await insist(`delete ${type.kind} ${child.metadata.name}`, () =>
        this.bench.client.delete(type, this.at(child.metadata.name)),
      );
    }
  }

  private async childrenOf(kind: AnyKind, name: string) {
    const lists = await Promise.all(
      childTypes(kind).map(async (type) => {
        const list = await insist(`list ${type.plural}`, () =>
          this.bench.client.list(type, { namespace: this.namespace }),
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
