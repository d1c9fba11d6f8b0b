import { stringify } from 'yaml';

/**
 * An object as kubectl reads it: kubectl takes YAML 1.1, in which `on`, `y` and `0o7` are no strings unless they are quoted. No line is
 * wrapped: a regular expression on two lines is hard to read.
 */
export function yamlText(object: object): string {
  return stringify(object, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false });
}
