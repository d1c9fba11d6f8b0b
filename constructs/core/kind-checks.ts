import type { z } from 'zod';
import { effectProblems } from './effects';
import type { Problem } from './errors';
import type { KindProps } from './kind-props';
import { nameProblem } from './names';
import { readProblems } from './reads';
import { typeKey } from './resource-type';
import type { ResourceScope, ResourceType } from './resource-type';
import { VERSION } from './versions-definition';

/** Four characters less than a name of the API may have: the kind of its lists is `<kind>List`. */
const KIND = /^[A-Z][A-Za-z0-9]{0,58}$/;
const CONDITION_TYPE = /^[A-Z][A-Za-z0-9]{0,62}$/;
/** The conditions that every kind has, and no kind may name for its own. */
export const COMMON_CONDITIONS: ReadonlySet<string> = new Set(['Ready', 'Reconciling', 'Stalled']);
const FINALIZER = /^[a-z0-9-]+([.][a-z0-9-]+)+(\/[A-Za-z0-9._-]+)?$/;

/** Groups that the CRD needs an `api-approved.kubernetes.io` annotation for. Source: KEP-1111. */
function isProtectedGroup(group: string): boolean {
  return /(^|\.)(k8s\.io|kubernetes\.io)$/.test(group);
}

/** What is wrong with a definition apart from its schemas. */
export function definitionProblems<S extends z.ZodObject, T extends z.ZodObject>(props: KindProps<S, T>): Problem[] {
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
    KIND.test(props.kind),
    'kind',
    `"${props.kind}" must be CamelCase, letters and digits, at most 59 characters: with "List" behind it, it may have 63`,
  );
  check(VERSION.test(props.version), 'version', `"${props.version}" must look like v1, v1beta1 or v2alpha3`);
  check(
    !isProtectedGroup(props.group) || props.crdAnnotations?.['api-approved.kubernetes.io'] !== undefined,
    'crdAnnotations',
    `the group ${props.group} is protected: set api-approved.kubernetes.io (for example "unapproved, sample only")`,
  );
  props.conditionTypes?.forEach(({ type, description }, i) => {
    const path = `conditionTypes[${String(i)}]`;
    const same = props.conditionTypes?.findIndex((other) => other.type === type);
    check(CONDITION_TYPE.test(type), path, `"${type}" must be CamelCase, letters and digits, at most 63 characters`);
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
    ...ownershipProblems(props),
    ...readProblems(props.reads ?? []),
    ...effectProblems(props.effects ?? [], {
      hasFinalizer: props.finalizer !== undefined,
      conditionTypes: (props.conditionTypes ?? []).map(({ type }) => type),
    }),
  );
  return problems;
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
  });
  const groups = new Set<string>();
  props.shared?.forEach((group, i) => {
    if (groups.has(group.name))
      problems.push({ path: `shared[${String(i)}].name`, message: `"${group.name}" stands twice` });
    groups.add(group.name);
    const problem = nameProblem(group.name, { format: 'dns-label' });
    if (problem !== undefined) problems.push({ path: `shared[${String(i)}].name`, message: problem });
  });
  if (props.finalizer !== undefined && !FINALIZER.test(props.finalizer.name)) {
    problems.push({ path: 'finalizer.name', message: `"${props.finalizer.name}" must be a domain-qualified name` });
  }
  return problems;
}

/** Why objects of a scope cannot own a type. */
function scopeProblem(scope: ResourceScope, type: ResourceType, isPast: boolean): string | undefined {
  if (scope === type.scope) return undefined;
  if (scope === 'Namespaced') {
    return `${typeKey(type)} is cluster-scoped; an object in a namespace cannot own it (the garbage collector would delete it)`;
  }
  // What another operator made for such an object bears its namespace already, and pruning needs no other.
  if (isPast) return undefined;
  return `${typeKey(type)} lives in a namespace, and a cluster-scoped object has none to render it in; own cluster-scoped types only, or make the kind Namespaced`;
}
