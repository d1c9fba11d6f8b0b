import type { Alias, Registration } from './registration';
import { childUrn, nameOf, parseUrn } from './urn';

/** Where the program runs. */
export interface Home {
  readonly project: string;
  readonly stack: string;
}

/**
 * The URNs that a resource may have had, in the order they are looked for: its own aliases, then those that follow from its parent's
 * having had another URN (as pkg/resource/deploy/step_generator.go multiplies them out).
 *
 * @param movedFrom - the URN that the parent was found under, if it was another
 */
export function aliasUrns(home: Home, registration: Registration, movedFrom: string | undefined): string[] {
  const own = registration.aliases.map((alias) => aliasUrn(home, registration, alias));
  if (movedFrom === undefined) return [...new Set(own)];
  const inherited = [childUrn(home, registration.parent, registration.type, registration.name), ...own].map((urn) => {
    const { qualifiedType, name } = parseUrn(urn);
    return inheritedUrn(home, qualifiedType.split('$').at(-1)!, name, registration.parent, movedFrom);
  });
  return [...new Set([...own, ...inherited])];
}

function aliasUrn(home: Home, registration: Registration, alias: Alias): string {
  if ('urn' in alias) return alias.urn;
  const where = { project: alias.project ?? home.project, stack: alias.stack ?? home.stack };
  const parent = alias.noParent ? undefined : (alias.parent ?? registration.parent);
  return childUrn(where, parent, alias.type ?? registration.type, alias.name ?? registration.name);
}

/** A child's name often begins with its parent's; it then began with the parent's old one. */
function inheritedUrn(home: Home, type: string, name: string, parent: string, movedFrom: string): string {
  const parentName = nameOf(parent);
  const oldName = name.startsWith(parentName) ? nameOf(movedFrom) + name.slice(parentName.length) : name;
  return childUrn(home, movedFrom, type, oldName);
}
