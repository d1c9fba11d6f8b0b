/** The type of the root of every stack. It stands in no other resource's URN. */
export const stackType = 'pulumi:pulumi:Stack';

/** What a URN is made of. */
export interface UrnParts {
  readonly stack: string;
  readonly project: string;
  /** The types from the outermost component to the resource, joined by `$`. */
  readonly qualifiedType: string;
  readonly name: string;
}

/** Takes a URN apart. A name may hold `::` itself. */
export function parseUrn(urn: string): UrnParts {
  const [head = '', project = '', qualifiedType = '', ...name] = urn.split('::');
  return { stack: head.replace(/^urn:pulumi:/, ''), project, qualifiedType, name: name.join('::') };
}

/** Puts one together. */
export function formatUrn(parts: UrnParts): string {
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
