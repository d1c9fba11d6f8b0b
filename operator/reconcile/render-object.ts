import type { AnyKind, KindObject, ObservedChildren } from '../../constructs/kind/kind';
import {
  assertPureChildren,
  renderBeforeStatus,
  renderDefaulted,
  sharedKeys,
  withDefaults,
  type BeforeStatus,
  type RenderedChild,
  type SharedKey,
} from '../../constructs/kind/render';
import { callKindFunction } from '../../constructs/kube/function-error';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { typeKey, type ResourceType } from '../../constructs/kube/resource-type';
import { valueOf, type FunctionCalls, type FunctionLimits, type Outcome } from './function-limits';

/** An object with everything that it renders. */
export interface Rendered {
  /** The object, with its spec's defaults applied. */
  readonly self: KindObject<AnyKind>;
  readonly children: readonly RenderedChild[];
  readonly shared: readonly SharedKey[];
  /** What `children` has read of the status, see `StatusReadListener`. The children of an object that was rendered first are without one. */
  readonly statusReads: ReadonlySet<string>;
  /** The calls of the kind's functions for the object. */
  readonly calls: FunctionCalls;
}

type Status = Readonly<Record<string, unknown>>;

/** An object that is to be rendered. */
interface Unrendered {
  /** As it is in the cache. */
  readonly object: KubeObject;
  readonly calls: FunctionCalls;
}

/** How many objects are rendered together at most. */
const BATCH = 32;

/**
 * Renders the objects of a kind.
 *
 * Guarantees: an object that was not rendered before, as it is, is rendered with a time limit, and twice, to find out
 * what depends on anything else. The objects that are reconciled next are rendered in the same call, since a limit for
 * each would cost more than everything else that is done to render them.
 */
export class ObjectRenderer {
  /** What was rendered for objects whose turn has not come. */
  private readonly ahead = new WeakMap<KubeObject, Rendered>();

  /** @param next - the objects in the cache that are reconciled next, at most so many. @default none are known */
  constructor(
    private readonly kind: AnyKind,
    private readonly limits: FunctionLimits,
    private readonly next: (most: number) => readonly KubeObject[] = () => [],
  ) {}

  /**
   * Renders an object as it is in the cache.
   *
   * @throws InvalidObjectError when the spec does not fit the schema; RenderError when the kind renders what it must not;
   * ImpureError when two renderings differ; KindFunctionError
   */
  render(object: KubeObject): Rendered {
    const one = this.unrendered(object);
    const ahead = this.ahead.get(object);
    this.ahead.delete(object);
    const rendered = ahead ?? (isNew(one) ? this.renderWithNext(one) : this.renderKnown(one));
    const { self, children, calls } = rendered;
    calls.compareOnce('comparison', () => assertPureChildren(this.kind, withStatus(self, undefined), children));
    return rendered;
  }

  /**
   * Renders the children of an object again, from what its effects have reported.
   *
   * @param status - what `children` sees as the status
   * @throws as `render` does
   */
  renderReported({ self, calls }: Rendered, status: Status | undefined): Pick<Rendered, 'children' | 'statusReads'> {
    const reported = withStatus(self, status);
    const given = status === undefined ? 'no status' : JSON.stringify(status);
    const rendered = calls.run('render reported', () => this.renderChildren(reported, calls), given);
    calls.compareOnce(
      'comparison of reported',
      () => assertPureChildren(this.kind, reported, rendered.children),
      given,
    );
    return rendered;
  }

  /**
   * Renders what `children` adds before it reads something of the status that is not known.
   *
   * @param status - what is known
   * @throws as `render` does
   */
  renderBeforeStatus({ self, calls }: Rendered, status: Status, isUnknown: (path: string) => boolean): BeforeStatus {
    const known = withStatus(self, status);
    return calls.run('render before', () => renderBeforeStatus(this.kind, known, isUnknown), JSON.stringify(status));
  }

  private renderKnown({ object, calls }: Unrendered): Rendered {
    return calls.run('render', () => this.renderSelf(withDefaults(this.kind, object), calls));
  }

  private renderWithNext(first: Unrendered): Rendered {
    const others = this.next(BATCH - 1).map((object) => this.unrendered(object));
    const batch = [first, ...others.filter(isNew)];
    const calls = batch.map((one) => one.calls);
    const outcomes = this.limits.runAll('render', calls, (i) => this.renderNew(batch[i] ?? first));
    for (const [i, outcome] of outcomes.entries()) {
      const other = i === 0 ? undefined : batch[i];
      // What throws is rendered again when it is reconciled, and throws again.
      if (other !== undefined && 'value' in outcome) this.ahead.set(other.object, outcome.value);
    }
    return valueOf(outcomes[0] as Outcome<Rendered>);
  }

  private renderNew({ object, calls }: Unrendered): Rendered {
    const rendered = this.renderSelf(withDefaults(this.kind, object), calls);
    this.tryObserve(rendered);
    return rendered;
  }

  private renderSelf(self: KindObject<AnyKind>, calls: FunctionCalls): Rendered {
    const rendered = this.renderChildren(withStatus(self, undefined), calls);
    return { self, ...rendered, shared: sharedKeys(this.kind, self), calls };
  }

  private renderChildren(self: KindObject<AnyKind>, calls: FunctionCalls): Pick<Rendered, 'children' | 'statusReads'> {
    const statusReads = new Set<string>();
    const children = renderDefaulted(this.kind, self, {}, (path) => statusReads.add(path));
    return { children: children.map((child) => withLimitedKeep(child, calls)), statusReads };
  }

  /**
   * Observes the children as they are rendered, within the limit that rendering has: `observe` needs no limit of its own
   * then. What it returns is of no use before the children exist.
   */
  private tryObserve({ self, children, calls }: Rendered): void {
    const { kind, observe } = this.kind;
    if (observe === undefined) return;
    try {
      const manifests = observedChildren(children.map(({ manifest }) => manifest));
      callKindFunction(calls.name, `${kind}.observe`, () => observe({ self, children: manifests }));
    } catch {
      // It may expect a status. It is called with a limit when the children exist.
      return;
    }
    calls.recordEnd('observe');
  }

  private unrendered(object: KubeObject): Unrendered {
    return { object, calls: this.limits.of(object) };
  }
}

/** A child whose seeds' `keep` is called with a time limit. */
function withLimitedKeep(child: RenderedChild, calls: FunctionCalls): RenderedChild {
  if (child.seeds.length === 0) return child;
  const seeds = child.seeds.map((seed) => ({
    ...seed,
    keep: (live: unknown) => calls.run(`keep ${seed.path.join('.')}`, () => seed.keep(live), JSON.stringify(live)),
  }));
  return { ...child, seeds };
}

/** An object with another status. */
function withStatus(self: KindObject<AnyKind>, status: Status | undefined): KindObject<AnyKind> {
  const { status: _, ...rest } = self;
  return (status === undefined ? rest : { ...rest, status }) as KindObject<AnyKind>;
}

/** Whether an object was never rendered as it is. */
function isNew({ calls }: Unrendered): boolean {
  return calls.stopped === undefined && !calls.hasEnded('render');
}

/** Children, for the `observe` of a kind. */
export function observedChildren(live: readonly KubeObject[]): ObservedChildren {
  const all = <C extends KubeObject>(type: ResourceType<C>): readonly C[] =>
    live.filter((child): child is C => typeKey(child) === typeKey(type));
  return { all, one: (type) => all(type)[0] };
}
