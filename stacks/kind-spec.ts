import type * as pulumi from '@pulumi/pulumi';
import { InvalidObjectError, type Problem } from '../constructs/kube/errors';
import { isObject, type KubeObject } from '../constructs/kube/kube-object';
import type { AnyKind } from '../constructs/kind/kind';
import { sharedKeys, withDefaults } from '../constructs/kind/render';
import { describeObject, objectProblems } from '../constructs/kind/validate';
import { containsToken, isDeferred, outputs, pathsOverlap } from './bridge';

/**
 * Checks the values of an object that are known while the program runs; the bridge checks the Outputs once
 * they are known.
 *
 * @throws InvalidObjectError naming every field that is wrong
 */
export function validateKnown(kind: AnyKind, object: KubeObject): void {
  const later: string[] = [];
  const spec = mapLeaves(object.spec ?? {}, 'spec', (value, at) => {
    if (!isDeferred(value)) return value;
    later.push(at);
    // It fits no schema of a leaf, so that no rule across fields runs on it.
    return {};
  });
  const found = objectProblems(kind, { ...object, spec }).filter(
    ({ path }) => !later.some((at) => pathsOverlap(path, at)),
  );
  if (found.length > 0) throw new InvalidObjectError(describeObject(plainName(object)), found);
}

/** A copy of a value with its leaves replaced. Outputs and promises are leaves; lists and objects are not. */
function mapLeaves(value: unknown, at: string, leaf: (value: unknown, at: string) => unknown): unknown {
  if (isDeferred(value)) return leaf(value, at);
  if (Array.isArray(value)) return value.map((item, i) => mapLeaves(item, `${at}[${i}]`, leaf));
  if (!isObject(value)) return leaf(value, at);
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, mapLeaves(field, `${at}.${key}`, leaf)]));
}

/** The object without a namespace that is a token: in an error, a token would say nothing. */
function plainName(object: KubeObject): KubeObject {
  const { namespace, ...metadata } = object.metadata;
  return namespace === undefined || !containsToken(namespace) ? object : { ...object, metadata };
}

/**
 * The object with tokens in place of its Outputs, for code that needs plain values. The bridge replaces the
 * tokens by the Outputs again, wherever they end up.
 *
 * @param tree part of the tokens' ids
 * @throws InvalidObjectError if no token can replace an Output: of a boolean, of a text or number that the
 *   schema constrains, or of a value that names shared children
 */
export function replaceOutputsWithTokens(kind: AnyKind, object: KubeObject, tree: string): KubeObject {
  const refused: Problem[] = [];
  const standIns = new Map<string, unknown>();
  const standIn = (value: unknown, at: string): unknown => {
    if (!isDeferred(value)) return value;
    const token = tokenOf(value, typeAt(kind.schema.spec, at), `${tree}#${at}`);
    standIns.set(at, token);
    if (token === undefined) refused.push({ path: at, message: `an Output cannot stand for it ${FOR_CHILDREN}` });
    return token;
  };
  const spec = mapLeaves(object.spec ?? {}, 'spec', standIn);
  const stood = { ...object, spec };
  const problems = [
    ...refused,
    ...objectProblems(kind, stood).map((problem) =>
      standIns.has(problem.path)
        ? { path: problem.path, message: `an Output cannot stand for it ${FOR_CHILDREN}: ${problem.message}` }
        : problem,
    ),
  ];
  const all = problems.length > 0 ? problems : sharedProblems(kind, stood, standIns);
  if (all.length > 0) throw new InvalidObjectError(describeObject(plainName(object)), unique(all));
  return stood;
}

function tokenOf(value: unknown, type: unknown, id: string): string | number | undefined {
  if (type === 'string') return outputs.text(value as pulumi.Input<string>, { id });
  if (type === 'integer' || type === 'number') return outputs.number(value as pulumi.Input<number>, { id });
  return undefined;
}

/**
 * Problems with Outputs in the namespace or the key of shared children. These are one resource of the
 * program, named by namespace and key. If tokens named it, two Outputs of one namespace would create it
 * twice, and its name would change with the first of the objects.
 */
function sharedProblems(kind: AnyKind, object: KubeObject, standIns: ReadonlyMap<string, unknown>): readonly Problem[] {
  if (kind.shared.length === 0) return [];
  const { namespace } = object.metadata;
  const inNamespace = namespace !== undefined && containsToken(namespace) ? ['metadata.namespace'] : [];
  return sharedKeys(kind, withDefaults(kind, object)).flatMap(({ group, key }) => {
    const inKey = [...standIns].filter(([, token]) => key.includes(String(token))).map(([at]) => at);
    const message =
      `an Output cannot stand for it with as: 'children', since the ${group.name} that objects of the kind ${kind.kind} share is named by ` +
      'it; give the value itself';
    return [...inNamespace, ...inKey].map((path) => ({ path, message }));
  });
}

const FOR_CHILDREN = "with as: 'children', since the children follow from it; give the value itself";

/** The first problem of each path. */
function unique(problems: readonly Problem[]): readonly Problem[] {
  return problems.filter(({ path }, i) => problems.findIndex((other) => other.path === path) === i);
}

/** The type that a schema has at a path below `spec`. */
function typeAt(schema: unknown, path: string): unknown {
  const steps = path.replace(/^spec/, '').match(/[^.[\]]+|\[\d+\]/g) ?? [];
  const at = steps.reduce<unknown>((node, step) => {
    if (!isObject(node)) return undefined;
    if (step.startsWith('[')) return node['items'];
    const { properties, additionalProperties } = node;
    return (isObject(properties) ? properties[step] : undefined) ?? additionalProperties;
  }, schema);
  return isObject(at) ? at['type'] : undefined;
}
