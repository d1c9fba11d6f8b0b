import { z } from 'zod';
import { KindDefinitionError, type Problem } from '../kube/errors';
import { nameProblem } from '../kube/names';
import { ruleProblems, type KindRule } from '../kube/policy-rule';
import { typeKey, type ResourceScope, type ResourceType } from '../kube/resource-type';
import { hasPolicy } from './child-policy';
import { schemaPathProblems, type PrinterColumn } from './columns-and-scale';
import { crdProblems, isProtectedGroup, qualifiedNameProblem } from './crd-problems';
import { effectProblems, type Effect } from './effects';
import type { ConditionType, KindProps, Sample, Seed, SharedChildren, TypedObject } from './kind-props';
import { readDeclarationProblems, type Read } from './reads';
import type { CelRule } from './schema/cel';
import { toStructuralSchema, type StructuralSchema } from './schema/structural-schema';
import { isSecret } from './secret-data';
import { VERSION_PATTERN, defineOtherVersions, type KindVersion } from './versions';

export type {
  CommonStatus,
  ConditionType,
  KindProps,
  Observation,
  ObservedChildren,
  Reason,
  ReportedCondition,
  Sample,
  TypedObject,
} from './kind-props';
export type { PrinterColumn, ScaleSubresource } from './columns-and-scale';

/** A defined kind: inert, frozen data that every surface is derived from. */
export interface Kind<S extends z.ZodObject = z.ZodObject, T extends z.ZodObject = z.ZodObject> extends Readonly<
  KindProps<S, T>
> {
  readonly singular: string;
  readonly categories: readonly string[];
  readonly shortNames: readonly string[];
  readonly status: T;
  readonly columns: readonly PrinterColumn[];
  readonly rules: readonly CelRule[];
  readonly formerlyOwned: readonly ResourceType[];
  readonly shared: readonly SharedChildren<TypedObject<S, T>>[];
  readonly seeds: readonly Seed[];
  readonly extraRules: readonly KindRule[];
  readonly reads: readonly Read<TypedObject<S, T>>[];
  readonly effects: readonly Effect<TypedObject<S, T>>[];
  readonly conditionTypes: readonly ConditionType[];
  readonly lastUpdateTime: boolean;
  readonly samples: readonly Sample<S>[];
  readonly versions: readonly KindVersion<S>[];
  /** `<plural>.<group>`. */
  readonly crdName: string;
  /** `<group>/<version>`. */
  readonly apiVersion: string;
  /** The kind as a resource of the API. */
  readonly type: ResourceType;
  /** `spec` and `status` as a CRD carries them. */
  readonly schema: { readonly spec: StructuralSchema; readonly status: StructuralSchema };
}

/**
 * A kind of any spec, for code that serves every kind. The spec's type occurs in parameter positions, so no
 * common supertype exists; `any` is confined to this name.
 */
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyKind = Kind<any, any>;

/** The type of a kind's objects: `type HelloApp = KindObject<typeof HelloApp>`. */
export type KindObject<K> = K extends Kind<infer S, infer T> ? TypedObject<S, T> : never;

/** What a user may write as a kind's spec: defaults are optional. */
export type KindSpec<K> = K extends Kind<infer S> ? z.input<S> : never;

const noStatus = z.object({});

/**
 * Defines a kind: checks the definition, derives its schema, and freezes it.
 *
 * @throws KindDefinitionError naming every field that Kubernetes cannot express or would reject
 */
export function defineKind<
  S extends z.ZodObject,
  T extends z.ZodObject = typeof noStatus,
  const V extends readonly z.ZodObject[] = readonly z.ZodObject[],
>(definition: KindProps<S, T, V>): Kind<S, T> {
  // Callers see the types of each version's own schema; from here on the versions are one list.
  const props = definition as unknown as KindProps<S, T>;
  const problems = definitionProblems(props);
  const status = props.status ?? (noStatus as unknown as T);
  const spec = toStructuralSchema(props.spec, 'spec', problems);
  const statusSchema = toStructuralSchema(withAttempts(withConditionFields(status, props), props), 'status', problems);
  problems.push(...requiredStatusProblems(statusSchema), ...schemaPathProblems(props, spec, statusSchema));
  const versions = defineOtherVersions(props, statusSchema, problems);
  if (problems.length > 0) throw new KindDefinitionError(props.kind, problems);

  const apiVersion = `${props.group}/${props.version}`;
  const { kind, plural, scope } = props;
  return Object.freeze({
    ...props,
    singular: props.singular ?? kind.toLowerCase(),
    categories: Object.freeze([...(props.categories ?? ['kindred'])]),
    shortNames: Object.freeze([...(props.shortNames ?? [])]),
    status,
    columns: Object.freeze([...(props.columns ?? [])]),
    rules: Object.freeze([...(props.rules ?? [])]),
    owns: Object.freeze([...props.owns]),
    formerlyOwned: Object.freeze([...(props.formerlyOwned ?? [])]),
    shared: Object.freeze([...(props.shared ?? [])]),
    seeds: Object.freeze([...(props.seeds ?? [])]),
    extraRules: Object.freeze([...(props.extraRules ?? [])]),
    reads: Object.freeze([...(props.reads ?? [])]),
    effects: Object.freeze([...(props.effects ?? [])]),
    conditionTypes: Object.freeze([...(props.conditionTypes ?? [])]),
    lastUpdateTime: props.lastUpdateTime ?? false,
    samples: Object.freeze([...(props.samples ?? [])]),
    versions,
    crdName: `${plural}.${props.group}`,
    apiVersion,
    type: Object.freeze({ apiVersion, kind, plural, scope }),
    schema: Object.freeze({ spec, status: statusSchema }),
  });
}

/** Every type that an operator of the kind watches and may write: owned, shared and formerly owned, each once. */
export function childTypes(kind: AnyKind): readonly ResourceType[] {
  const all = [...kind.owns, ...kind.shared.flatMap((group) => group.owns), ...kind.formerlyOwned];
  return [...new Map(all.map((type) => [typeKey(type), type])).values()];
}

/** Whether one of the kinds acts outside the Kubernetes API. */
export function hasEffects(kinds: readonly AnyKind[]): boolean {
  return kinds.some(({ effects }) => effects.length > 0);
}

/** The conditions that every kind has. A kind cannot declare them as its own. */
export const COMMON_CONDITIONS: ReadonlySet<string> = new Set(['Ready', 'Reconciling', 'Stalled']);

/** At most 59 characters, four less than the API allows: the kind of its lists is `<kind>List`. */
const KIND_PATTERN = /^[A-Z][A-Za-z0-9]{0,58}$/;
const CONDITION_TYPE_PATTERN = /^[A-Z][A-Za-z0-9]{0,62}$/;

const FINALIZER_PATTERN = /^[a-z0-9-]+([.][a-z0-9-]+)+(\/[A-Za-z0-9._-]+)?$/;

/** What is wrong with a definition apart from its schemas. */
function definitionProblems<S extends z.ZodObject, T extends z.ZodObject>(props: KindProps<S, T>): Problem[] {
  const problems: Problem[] = [];
  const check = (ok: boolean, path: string, message: string): void => {
    if (!ok) problems.push({ path, message });
  };
  const name = (path: string, value: string, format: 'dns-label' | 'dns-subdomain' | 'dns-1035-label'): void => {
    const problem = nameProblem(value, { format });
    if (problem !== undefined) problems.push({ path, message: problem });
  };
  name('group', props.group, 'dns-subdomain');
  check(props.group.includes('.'), 'group', `"${props.group}" must be a domain of at least two parts`);
  name('plural', props.plural, 'dns-1035-label');
  if (props.singular !== undefined) name('singular', props.singular, 'dns-1035-label');
  props.shortNames?.forEach((shortName, i) => {
    name(`shortNames[${String(i)}]`, shortName, 'dns-1035-label');
  });
  props.categories?.forEach((category, i) => {
    name(`categories[${String(i)}]`, category, 'dns-1035-label');
  });
  check(
    KIND_PATTERN.test(props.kind),
    'kind',
    `"${props.kind}" must be CamelCase, letters and digits, at most 59 characters: with "List" behind it, it may have 63`,
  );
  check(VERSION_PATTERN.test(props.version), 'version', `"${props.version}" must look like v1, v1beta1 or v2alpha3`);
  check(
    !isProtectedGroup(props.group) || props.crdAnnotations?.['api-approved.kubernetes.io'] !== undefined,
    'crdAnnotations',
    `the group ${props.group} is protected: set api-approved.kubernetes.io (for example "unapproved, sample only")`,
  );
  props.conditionTypes?.forEach(({ type, description }, i) => {
    const path = `conditionTypes[${String(i)}]`;
    const same = props.conditionTypes?.findIndex((other) => other.type === type);
    check(
      CONDITION_TYPE_PATTERN.test(type),
      path,
      `"${type}" must be CamelCase, letters and digits, at most 63 characters`,
    );
    check(!COMMON_CONDITIONS.has(type), path, `every kind has the condition ${type}; leave it out`);
    check(same === i, path, `"${type}" stands twice`);
    check(description.trim() !== '', path, 'it has no description');
  });
  if ((props.effects ?? []).length === 0) {
    const idle = (list: readonly unknown[] | undefined): boolean => (list ?? []).length === 0;
    check(idle(props.reads), 'reads', 'only effects see what is read, and the kind has none; leave it out');
    check(
      idle(props.conditionTypes),
      'conditionTypes',
      'only effects report conditions of the kind, and it has none; leave it out',
    );
  }
  problems.push(
    ...crdProblems(props),
    ...ownershipProblems(props),
    ...(props.extraRules ?? []).flatMap((rule, i) => kindRuleProblems(`extraRules[${i}]`, rule, props.scope)),
    ...readDeclarationProblems(props.reads ?? []),
    ...effectProblems(props.effects ?? [], {
      hasFinalizer: props.finalizer !== undefined,
      conditionTypes: (props.conditionTypes ?? []).map(({ type }) => type),
      statusFields: Object.keys(props.status?.shape ?? {}),
    }),
  );
  return problems;
}

function kindRuleProblems(path: string, { scope: of, ...rule }: KindRule, scope: ResourceScope): readonly Problem[] {
  const problems = ruleProblems(path, rule);
  if (scope === 'Namespaced' || of !== 'Namespaced') return problems;
  const message = 'the operator of a cluster-scoped kind works in no namespace of its objects; leave it out';
  return [...problems, { path: `${path}.scope`, message }];
}

function ownershipProblems<S extends z.ZodObject, T extends z.ZodObject>(props: KindProps<S, T>): Problem[] {
  const problems: Problem[] = [];
  const owns = new Set(props.owns.map(typeKey));
  for (const type of props.formerlyOwned ?? []) {
    if (owns.has(typeKey(type))) {
      problems.push({ path: 'formerlyOwned', message: `${typeKey(type)} is still among \`owns\`; name it once` });
    }
  }
  const sharedTypes = (props.shared ?? []).map(({ owns: types }, i) => [`shared[${String(i)}].owns`, types] as const);
  for (const [path, types] of [
    ['owns', props.owns],
    ['formerlyOwned', props.formerlyOwned ?? []],
    ...sharedTypes,
  ] as const) {
    for (const type of types) {
      if (path !== 'owns' && hasPolicy(type)) {
        const message = `a policy by own() is for a kind's own children, in \`owns\`; name ${typeKey(type)} itself`;
        problems.push({ path, message });
      }
      const message = scopeProblem(props.scope, type, path === 'formerlyOwned');
      if (message !== undefined) problems.push({ path, message });
    }
  }
  props.seeds?.forEach((seed, i) => {
    for (const [role, type] of [
      ['of', seed.of],
      ['writer', seed.writer],
    ] as const) {
      if (!owns.has(typeKey(type))) {
        problems.push({ path: `seeds[${String(i)}].${role}`, message: `${typeKey(type)} is not among \`owns\`` });
      }
    }
    if (isSecret(seed.of) && seed.path[0] === 'stringData') {
      const message = 'a Secret is rendered with `data` alone; name `data` instead of `stringData`';
      problems.push({ path: `seeds[${String(i)}].path`, message });
    }
  });
  const groups = new Set<string>();
  props.shared?.forEach((group, i) => {
    if (groups.has(group.name))
      problems.push({ path: `shared[${String(i)}].name`, message: `"${group.name}" stands twice` });
    groups.add(group.name);
    const problem = nameProblem(group.name, { format: 'dns-label' });
    if (problem !== undefined) problems.push({ path: `shared[${String(i)}].name`, message: problem });
  });
  if (props.finalizer !== undefined && !FINALIZER_PATTERN.test(props.finalizer.name)) {
    problems.push({ path: 'finalizer.name', message: `"${props.finalizer.name}" must be a domain-qualified name` });
  } else if (props.finalizer !== undefined) {
    const message = qualifiedNameProblem(props.finalizer.name);
    if (message !== undefined) problems.push({ path: 'finalizer.name', message });
  }
  return problems;
}

/**
 * Why objects of a scope cannot own a type, or undefined if they can. `isPast`: the type is formerly owned.
 */
function scopeProblem(scope: ResourceScope, type: ResourceType, isPast: boolean): string | undefined {
  if (scope === type.scope) return undefined;
  if (scope === 'Namespaced') {
    return `${typeKey(type)} is cluster-scoped; an object in a namespace cannot own it (the garbage collector would delete it)`;
  }
  // The children of an earlier operator already have a namespace, and pruning needs nothing else.
  if (isPast) return undefined;
  return `${typeKey(type)} lives in a namespace, and a cluster-scoped object has none to render it in; own cluster-scoped types only, or make the kind Namespaced`;
}

type ConditionProps = Pick<KindProps<z.ZodObject, z.ZodObject>, 'conditionTypes' | 'lastUpdateTime'>;

/**
 * A status whose `conditions` describe this kind's own ones; the CRD adds the fields that all conditions
 * have.
 */
function withConditionFields(status: z.ZodObject, props: ConditionProps): z.ZodObject {
  const { conditionTypes = [], lastUpdateTime = false } = props;
  if (conditionTypes.length === 0 && !lastUpdateTime) return status;
  const updated = z
    .string()
    .meta({ format: 'date-time', description: 'When the status, reason or message last changed.' });
  const condition = z.object(lastUpdateTime ? { lastUpdateTime: updated.optional() } : {});
  const own = conditionTypes.map(({ type, description }) => `${type}: ${description}`);
  const description = [...own, ...(lastUpdateTime ? ['Each carries lastUpdateTime.'] : [])].join(' ');
  return status.extend({ conditions: z.array(condition).optional().describe(description) });
}

/**
 * The status with the number of runs begun, where something is removed at the end: by it the operator sees that the
 * state of an object was lost, and does not take it for one that never did anything.
 */
function withAttempts(status: z.ZodObject, { effects = [] }: KindProps<z.ZodObject, z.ZodObject>): z.ZodObject {
  const isNeeded = effects.some(({ phase }) => phase === 'remove') && !Object.hasOwn(status.shape, 'attempts');
  return isNeeded
    ? status.extend({ attempts: z.int32().min(0).optional().describe('Runs begun for this spec.') })
    : status;
}

/**
 * Status fields that are required. None may be: the operator also writes a status when it has observed
 * nothing, because the object is paused or its spec is invalid.
 */
function requiredStatusProblems({ required = [] }: StructuralSchema): Problem[] {
  return (required as readonly string[]).map((field) => ({
    path: `status.${field}`,
    message: 'a status may stand without it, for example while the object is paused; add .optional()',
  }));
}
