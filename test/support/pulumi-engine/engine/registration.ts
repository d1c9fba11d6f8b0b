import type { Values } from './values';

/** Another URN that a resource may have had. */
export type Alias =
  | { readonly urn: string }
  | {
      readonly name?: string;
      readonly type?: string;
      readonly stack?: string;
      readonly project?: string;
      readonly parent?: string;
      readonly noParent: boolean;
    };

/** What a program asks for: one resource. */
export interface Registration {
  readonly type: string;
  readonly name: string;
  readonly parent: string;
  readonly custom: boolean;
  readonly inputs: Values;
  /** `<urn>::<id>`; empty: the default provider of the package. */
  readonly provider: string;
  readonly version: string;
  readonly dependencies: readonly string[];
  readonly propertyDependencies: Readonly<Record<string, readonly string[]>>;
  /** Undefined: as its parent. */
  readonly protect: boolean | undefined;
  /** Undefined: as its parent. */
  readonly retainOnDelete: boolean | undefined;
  readonly deleteBeforeReplace: boolean | undefined;
  readonly ignoreChanges: readonly string[];
  readonly replaceOnChanges: readonly string[];
  readonly additionalSecretOutputs: readonly string[];
  readonly aliases: readonly Alias[];
  readonly importId: string;
  readonly deletedWith: string;
  /** URNs of resources with which it is replaced. */
  readonly replaceWith: readonly string[];
  /** Names of hooks. */
  readonly beforeCreate: readonly string[];
  readonly timeouts: { readonly create?: number; readonly update?: number };
}

/** What a program is told of its resource. */
export interface RegisterResult {
  readonly urn: string;
  /** Empty: a component, or not known yet. */
  readonly id: string;
  readonly outputs: Values;
}

/**
 * Milliseconds of a duration as Go writes them: `1h30m`, `90s`, `250ms`. Undefined for an empty text.
 *
 * @throws Error when it is none
 */
export function durationMs(text: string): number | undefined {
  if (text === '') return undefined;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|h|m|s)/g)];
  if (parts.map(([whole]) => whole).join('') !== text) throw new Error(`"${text}" is no duration, such as 10m or 90s`);
  const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * units[unit!]!, 0);
}

/** The type of the root of every stack. It stands in no other resource's URN. */
export const stackType = 'pulumi:pulumi:Stack';

/** What a URN is made of. */
interface UrnParts {
  readonly stack: string;
  readonly project: string;
  /** The types from the outermost component to the resource, joined by `$`. */
  readonly qualifiedType: string;
  readonly name: string;
}

/** Takes a URN apart. A name may hold `::` itself. */
function parseUrn(urn: string): UrnParts {
  const [head = '', project = '', qualifiedType = '', ...name] = urn.split('::');
  return { stack: head.replace(/^urn:pulumi:/, ''), project, qualifiedType, name: name.join('::') };
}

/** Puts one together. */
function formatUrn(parts: UrnParts): string {
  return `urn:pulumi:${parts.stack}::${parts.project}::${parts.qualifiedType}::${parts.name}`;
}

/** The type of a resource, without those of its parents. */
export function typeOf(urn: string): string {
  return parseUrn(urn).qualifiedType.split('$').at(-1)!;
}

/** The name of a resource. */
export function nameOf(urn: string): string {
  return parseUrn(urn).name;
}

/** The URN of a resource below a parent. */
export function childUrn(
  home: Pick<UrnParts, 'stack' | 'project'>,
  parent: string | undefined,
  type: string,
  name: string,
): string {
  const above = parent === undefined || parent === '' ? '' : parseUrn(parent).qualifiedType;
  return formatUrn({
    ...home,
    qualifiedType: above === '' || above === stackType ? type : `${above}$${type}`,
    name,
  });
}

/** The package of a type: `kubernetes` of `kubernetes:apps/v1:Deployment`. */
export function packageOf(type: string): string {
  return type.split(':')[0]!;
}

/** The package that a provider's type is for; undefined for any other type. */
export function providedPackage(type: string): string | undefined {
  return type.startsWith('pulumi:providers:') ? type.slice('pulumi:providers:'.length) : undefined;
}

/** Takes a provider reference, `<urn>::<id>`, apart. */
export function parseReference(reference: string): { readonly urn: string; readonly id: string } {
  const at = reference.lastIndexOf('::');
  return { urn: reference.slice(0, at), id: reference.slice(at + 2) };
}

/** Where the program runs. */
export interface StackId {
  readonly project: string;
  readonly stack: string;
}

/**
 * The URNs that a resource may have had, in the order they are looked for: its own aliases, then those that follow from its parent's
 * having had another URN (as pkg/resource/deploy/step_generator.go multiplies them out).
 *
 * @param movedFrom - the URN that the parent was found under, if it was another
 */
export function aliasUrns(home: StackId, registration: Registration, movedFrom: string | undefined): string[] {
  const own = registration.aliases.map((alias) => aliasUrn(home, registration, alias));
  if (movedFrom === undefined) return [...new Set(own)];
  const inherited = [childUrn(home, registration.parent, registration.type, registration.name), ...own].map((urn) => {
    const { qualifiedType, name } = parseUrn(urn);
    return inheritedUrn(home, qualifiedType.split('$').at(-1)!, name, registration.parent, movedFrom);
  });
  return [...new Set([...own, ...inherited])];
}

function aliasUrn(home: StackId, registration: Registration, alias: Alias): string {
  if ('urn' in alias) return alias.urn;
  const where = { project: alias.project ?? home.project, stack: alias.stack ?? home.stack };
  const parent = alias.noParent ? undefined : (alias.parent ?? registration.parent);
  return childUrn(where, parent, alias.type ?? registration.type, alias.name ?? registration.name);
}

/** A child's name often begins with its parent's; it then began with the parent's old one. */
function inheritedUrn(home: StackId, type: string, name: string, parent: string, movedFrom: string): string {
  const parentName = nameOf(parent);
  const oldName = name.startsWith(parentName) ? nameOf(movedFrom) + name.slice(parentName.length) : name;
  return childUrn(home, movedFrom, type, oldName);
}
