import * as pulumi from '@pulumi/pulumi';
import { ApiObject, type App, type IResolver, type ResolutionContext } from 'cdk8s';
import type { IConstruct } from 'constructs';
import { errorMessage, formatProblems, type Problem } from '../../constructs/kube/errors';
import type { Manifest, RenderedObject } from './manifest';
import { splitAtTokens, textToken, tokenFor } from './tokens';

/** The objects of a tree, and the problems that keep it from being rendered. */
interface RenderedTree {
  /** In the order of the constructs. */
  readonly objects: readonly RenderedObject[];
  readonly problems: readonly Problem[];
}

/** Validates the constructs and renders their objects as cdk8s does, with tokens in place of Outputs. */
export function renderTree(root: IConstruct): RenderedTree {
  const app = root.node.root as Partial<App>;
  if (!Array.isArray(app.resolvers)) {
    const message = 'the tree does not stand in a cdk8s App; make its topmost construct with new App()';
    return { objects: [], problems: [{ path: pathBelow(root, root), message }] };
  }
  const invalid = root.node.findAll().flatMap((construct) => validationProblems(root, construct));
  if (invalid.length > 0) return { objects: [], problems: invalid };
  const resolver = new OutputResolver();
  app.resolvers.unshift(resolver);
  try {
    return renderObjects(root, resolver);
  } finally {
    app.resolvers.splice(app.resolvers.indexOf(resolver), 1);
  }
}

function validationProblems(root: IConstruct, construct: IConstruct): readonly Problem[] {
  const path = pathBelow(root, construct);
  return construct.node.validate().map((message) => ({ path, message }));
}

function renderObjects(root: IConstruct, resolver: OutputResolver): RenderedTree {
  const objects: RenderedObject[] = [];
  const problems: Problem[] = [];
  for (const construct of root.node.findAll()) {
    if (!ApiObject.isApiObject(construct)) continue;
    const path = pathBelow(root, construct);
    resolver.start();
    try {
      const manifest = construct.toJson() as Manifest;
      const lost = resolver.lostOutputs(manifest);
      problems.push(...lost.map((at) => ({ path: `${path}#${at}`, message: LOST })));
      objects.push({ construct, path, manifest });
    } catch (error) {
      const hint = resolver.found.size > 0 ? ` (${LOST})` : '';
      problems.push({ path, message: `${errorMessage(error)}${hint}` });
    }
  }
  return { objects, problems };
}

const LOST =
  'an Output stands where the construct reads the value itself (a list, an object, an IntOrString or a Quantity), so it would be ' +
  'lost; put Outputs at the leaves, use outputs.text() or outputs.number() within the wrapper, or use a plain ApiObject';

/** Turns Outputs in props into tokens before cdk8s reads them. */
class OutputResolver implements IResolver {
  /** The tokens found in the current object, each with its path. */
  readonly found = new Map<string, string>();

  start(): void {
    this.found.clear();
  }

  resolve(context: ResolutionContext): void {
    const value: unknown = context.value;
    const output = outputIn(value, context);
    if (output === undefined) return;
    const at = context.key.join('.');
    const { id } = tokenFor(output, `${context.obj.node.path}#${at}`);
    this.found.set(id, at);
    context.replaceValue(textToken(id));
  }

  /** The paths of Outputs that were found but are not in the manifest. */
  lostOutputs(manifest: Manifest): readonly string[] {
    if (this.found.size === 0) return [];
    const present = new Set(
      textsIn(manifest)
        .flatMap(splitAtTokens)
        .flatMap((piece) => ('id' in piece ? [piece.id] : [])),
    );
    return [...this.found].filter(([id]) => !present.has(id)).map(([, at]) => at);
  }
}

function outputIn(value: unknown, { key }: ResolutionContext): pulumi.Output<unknown> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (pulumi.Output.isInstance(value)) {
    // `{...output}` copies the marker that identifies Outputs, but none of the methods.
    if (typeof value.apply === 'function') return value;
    throw new TypeError(
      `an Output was spread into an object at ${key.join('.')}; use outputs.any(output) as a whole value`,
    );
  }
  return isPromise(value) ? promised(value) : undefined;
}

const promises = new WeakMap<object, pulumi.Output<unknown>>();

/** The same Output for a promise, however often it is rendered. */
function promised(promise: PromiseLike<unknown>): pulumi.Output<unknown> {
  const output = promises.get(promise) ?? pulumi.output(promise);
  promises.set(promise, output);
  return output;
}

function isPromise(value: object): value is PromiseLike<unknown> {
  return 'then' in value && typeof value.then === 'function';
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** Path of a construct below the root of its tree; empty for the root. */
export function pathBelow(root: IConstruct, construct: IConstruct): string {
  const steps: string[] = [];
  for (let at: IConstruct | undefined = construct; at !== undefined && at !== root; at = at.node.scope) {
    steps.unshift(at.node.id);
  }
  return steps.join('/');
}

/** A construct tree cannot be turned into Pulumi resources. None of them was registered. */
export class BridgeError extends Error {
  override readonly name = 'BridgeError';
  constructor(
    /** Name of the tree's ConstructResources. */
    readonly tree: string,
    /**
     * All problems. A path is that of a construct, followed by `#` and a path within its object if needed.
     */
    readonly problems: readonly Problem[],
    options?: { readonly cause?: unknown },
  ) {
    super(formatProblems(`${tree} cannot be turned into Pulumi resources:`, problems), options);
  }
}
