import type * as pulumi from '@pulumi/pulumi';
import { ApiObject } from 'cdk8s';
import type { IConstruct } from 'constructs';
import type { Problem } from '../../constructs/kube/errors';
import { groupKind, type RenderedObject } from './manifest';
import { pathBelow } from './render-tree';
import { definedKind } from './built-in-kinds';

/** What each object of a tree waits for. */
export interface DependencyGraph {
  /** Indices of the objects, each after its dependencies; otherwise in the order of the constructs. */
  readonly order: readonly number[];
  /** The direct dependencies of each object, by index, without those that follow from others. */
  readonly dependencies: readonly (readonly number[])[];
  /** Resources of other trees that each object waits for, by index. */
  readonly outside: readonly ReadonlySet<pulumi.Resource>[];
  readonly problems: readonly Problem[];
}

/** Inputs of {@link buildDependencyGraph}. */
export interface DependencyGraphInputs {
  readonly root: IConstruct;
  readonly objects: readonly RenderedObject[];
  /** References between objects by names with a content hash, as pairs of indices. */
  readonly references: readonly (readonly [from: number, to: number])[];
  /** The resource of an object of another tree. */
  readonly registered: (object: ApiObject) => pulumi.Resource | undefined;
}

/**
 * Orders the objects of a tree by the dependencies of constructs, with Namespaces and CRDs before the objects
 * that need them.
 */
export function buildDependencyGraph(inputs: DependencyGraphInputs): DependencyGraph {
  const { objects } = inputs;
  const edges = objects.map(() => new Set<number>());
  const outside = objects.map(() => new Set<pulumi.Resource>());
  const problems: Problem[] = [];
  new ConstructEdges(inputs, edges, outside, problems).add();
  addImplicitEdges(objects, edges);
  for (const [from, to] of inputs.references) if (from !== to) edges[from]?.add(to);
  // A resource is created after its parent, as if it depended on it.
  const containers = containersOf(objects);
  const sorted = topologicalOrder(objects, edges, containers);
  if ('cycle' in sorted) {
    const cycle = sorted.cycle.map((i) => objects[i]?.path ?? '').join(' -> ');
    problems.push({ path: '', message: `dependencies run in a circle: ${cycle}; remove one of them` });
    return { order: [], dependencies: [], outside, problems };
  }
  return { order: sorted.order, dependencies: transitiveReduction(sorted.order, edges), outside, problems };
}

class ConstructEdges {
  private readonly index: ReadonlyMap<IConstruct, number>;
  private readonly below = new Map<IConstruct, readonly number[]>();

  constructor(
    private readonly inputs: DependencyGraphInputs,
    private readonly edges: readonly Set<number>[],
    private readonly outside: readonly Set<pulumi.Resource>[],
    private readonly problems: Problem[],
  ) {
    this.index = new Map(inputs.objects.map(({ construct }, i) => [construct, i]));
  }

  add(): void {
    const { root } = this.inputs;
    for (const source of [...root.node.scopes.slice(0, -1), ...root.node.findAll()]) {
      for (const target of source.node.dependencies) this.addAll(source, target);
    }
  }

  private addAll(source: IConstruct, target: IConstruct): void {
    const { root } = this.inputs;
    if (source === target || source.node.scopes.includes(target)) {
      this.addProblem(
        source,
        `it depends on ${describe(root, target)}, which contains it; depend on the parts that are meant`,
      );
      return;
    }
    if (!target.node.scopes.includes(root)) {
      this.addOutside(source, target);
      return;
    }
    const targets = this.objectsBelow(target);
    const own = new Set(targets);
    for (const from of this.objectsBelow(source)) {
      // If a construct depends on a part of itself, only its other parts do.
      if (own.has(from)) continue;
      for (const to of targets) this.edges[from]?.add(to);
    }
  }

  private addOutside(source: IConstruct, target: IConstruct): void {
    for (const object of target.node.findAll().filter((part) => ApiObject.isApiObject(part))) {
      // A construct that contains the tree may depend on one within the tree.
      const inside = this.index.get(object);
      const resource = this.inputs.registered(object);
      for (const from of this.objectsBelow(source)) {
        if (inside !== undefined) {
          if (inside !== from) this.edges[from]?.add(inside);
        } else if (resource !== undefined) {
          this.outside[from]?.add(resource);
        }
      }
      if (inside === undefined && resource === undefined) {
        this.addProblem(
          source,
          `it depends on ${object.node.path}, which is not in this tree and no resource yet; register the construct that contains ` +
            'both, register that one first, or say resourceOptions(construct, { dependsOn })',
        );
      }
    }
  }

  private objectsBelow(construct: IConstruct): readonly number[] {
    const known = this.below.get(construct);
    if (known !== undefined) return known;
    const found = construct.node.findAll().flatMap((part) => this.index.get(part) ?? []);
    this.below.set(construct, found);
    return found;
  }

  private addProblem(source: IConstruct, message: string): void {
    this.problems.push({ path: describe(this.inputs.root, source), message });
  }
}

function describe(root: IConstruct, construct: IConstruct): string {
  return construct.node.scopes.includes(root) ? pathBelow(root, construct) : construct.node.path;
}

/** Namespaces before what is in them, CRDs before objects of their kinds. */
function addImplicitEdges(objects: readonly RenderedObject[], edges: readonly Set<number>[]): void {
  const namespaces = new Map<unknown, number>();
  const crds = new Map<string, number>();
  objects.forEach(({ manifest }, i) => {
    if (groupKind(manifest) === '/Namespace') namespaces.set(manifest.metadata.name, i);
    const defined = definedKind(manifest);
    if (defined !== undefined) crds.set(defined, i);
  });
  objects.forEach(({ manifest }, i) => {
    for (const to of [namespaces.get(manifest.metadata.namespace), crds.get(groupKind(manifest))]) {
      if (to !== undefined && to !== i) edges[i]?.add(to);
    }
  });
}

/** The object that contains each object, if any. */
function containersOf(objects: readonly RenderedObject[]): readonly (number | undefined)[] {
  const index = new Map<IConstruct, number>(objects.map(({ construct }, i) => [construct, i]));
  return objects.map(({ construct }) => {
    const containing = construct.node.scopes.slice(0, -1).reverse();
    return containing.map((scope) => index.get(scope)).find((i) => i !== undefined);
  });
}

type Sorted = { readonly order: readonly number[] } | { readonly cycle: readonly number[] };

/** Depth first, without recursion, since trees may be deep. */
function topologicalOrder(
  objects: readonly RenderedObject[],
  edges: readonly ReadonlySet<number>[],
  containers: readonly (number | undefined)[],
): Sorted {
  const order: number[] = [];
  const state = new Map<number, 'open' | 'done'>();
  for (const start of objects.keys()) {
    const path: { readonly at: number; readonly next: Iterator<number> }[] = [];
    const enter = (at: number): void => {
      state.set(at, 'open');
      const container = containers[at];
      const before = [...(container === undefined ? [] : [container]), ...(edges[at] ?? [])];
      path.push({ at, next: before.sort((a, b) => a - b).values() });
    };
    if (!state.has(start)) enter(start);
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const step = top.next.next();
      const value = step.value as number;
      if (step.done === true) {
        state.set(top.at, 'done');
        order.push(top.at);
        path.pop();
      } else if (state.get(value) === 'open') {
        const from = path.findIndex(({ at }) => at === value);
        return { cycle: [...path.slice(from).map(({ at }) => at), value] };
      } else if (!state.has(value)) {
        enter(value);
      }
    }
  }
  return { order };
}

/** Removes the edges that follow from others. */
function transitiveReduction(
  order: readonly number[],
  edges: readonly ReadonlySet<number>[],
): readonly (readonly number[])[] {
  const position = new Map(order.map((node, i) => [node, i]));
  const reached = new Map<number, ReadonlySet<number>>();
  const result: number[][] = edges.map(() => []);
  for (const node of order) {
    const all = new Set<number>();
    // Latest first: it reaches every earlier dependency that follows from it before that one is visited.
    const latestFirst = [...(edges[node] ?? [])].sort((a, b) => (position.get(b) ?? 0) - (position.get(a) ?? 0));
    for (const to of latestFirst) {
      if (all.has(to)) continue;
      result[node]?.push(to);
      all.add(to);
      for (const further of reached.get(to) ?? []) all.add(further);
    }
    reached.set(node, all);
    result[node]?.sort((a, b) => a - b);
  }
  return result;
}
