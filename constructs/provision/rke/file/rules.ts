/** What a field of a user's cluster.yml may hold. A field that has no rule is refused. */
export type Rule =
  /** A string; RKE's parser also takes a number or a boolean for one. */
  | { readonly text: true; readonly secret?: SecretKind }
  | { readonly number: true }
  | { readonly boolean: true }
  | { readonly list: Rule }
  /** Any keys. */
  | { readonly map: Rule }
  | { readonly fields: Fields }
  /** Any JSON that goes to the cluster as it is: RKE looks for nothing in it. */
  | { readonly json: true; readonly secret?: SecretKind }
  /** A path of a file that RKE reads on its own host. */
  | { readonly file: FilePurpose }
  /** A field that RKE knows and that is not taken. A value that means nothing (false, or an empty one) is dropped. */
  | { readonly refused: string };

/** Rules by name of the field. */
export interface Fields {
  readonly [name: string]: Rule;
}

/** What RKE reads a file for. */
export type FilePurpose = 'sshKey' | 'sshCertificate' | 'addon';

/**
 * `sshKey` is a private SSH key, which must move to a Secret of its own; `inline` is any other secret, which stays where it is and is hidden
 * wherever people read.
 */
export type SecretKind = 'sshKey' | 'inline';

export const text: Rule = { text: true };
export const number: Rule = { number: true };
export const boolean: Rule = { boolean: true };
export const json: Rule = { json: true };
export const secretText: Rule = { text: true, secret: 'inline' };
export const secretJson: Rule = { json: true, secret: 'inline' };
export const texts: Rule = { list: text };
export const textMap: Rule = { map: text };

/** A list of that. */
export const listOf = (list: Rule): Rule => ({ list });
/** An object with these fields and no others. */
export const object = (fields: Fields): Rule => ({ fields });
/** The named fields, all by one rule. */
export const all = (rule: Rule, ...names: readonly string[]): Fields =>
  Object.fromEntries(names.map((name) => [name, rule]));
