import { stringify } from 'yaml';
import type { KubeObject } from '../../constructs/kube/kube-object';

/** Stands for what {@link value} and {@link lines} are given, until the template's text is written. */
const token = /HELM(VALUE|LINES)x([0-9a-f]*)x/g;

const tokenOf = (kind: 'VALUE' | 'LINES', text: string): string => `HELM${kind}x${Buffer.from(text).toString('hex')}x`;

/**
 * A text, or a part of one, that Helm computes.
 *
 * @param expression - what is between the braces. Where it is the whole value, it must give YAML of one line, as
 *   `toJson` does
 */
export function value(expression: string): string {
  return tokenOf('VALUE', expression);
}

/**
 * An item of a list in whose place these lines are written. In them, `nindent +2` counts from the indentation
 * of that place.
 */
export function lines(...texts: readonly string[]): string {
  return tokenOf('LINES', texts.join('\n'));
}

/** An entry of an object in whose place these lines stand, as {@link lines}. */
export function entryLines(...texts: readonly string[]): Readonly<Record<string, string>> {
  return { [lines(...texts)]: '' };
}

/** Replaces a text wherever it occurs in the strings of an object, keys excluded. */
export function replaceText<T>(within: T, text: string, replacement: (isWhole: boolean) => string): T {
  const replace = (node: unknown): unknown => {
    if (typeof node === 'string')
      return node === text ? replacement(true) : node.replaceAll(text, () => replacement(false));
    if (Array.isArray(node)) return node.map(replace);
    if (typeof node !== 'object' || node === null) return node;
    return Object.fromEntries(Object.entries(node).map(([key, each]) => [key, replace(each)]));
  };
  return replace(within) as T;
}

/** Objects as a Helm template, in which Helm evaluates only what {@link value} and {@link lines} made. */
export function templateText(objects: readonly KubeObject[]): string {
  return objects.map(documentText).join('---\n');
}

function documentText(object: KubeObject): string {
  // No line is wrapped, so that each token is on one line.
  const text = stringify(object, { lineWidth: 0, aliasDuplicateObjects: false });
  return text.replaceAll('{{', '{{ "{{" }}').split('\n').map(lineText).join('\n');
}

function lineText(line: string): string {
  const [, space = '', hex] = /^( *(?:- )*)HELMLINESx([0-9a-f]*)x(?:: "")?$/.exec(line) ?? [];
  if (hex !== undefined) {
    // The dash of a list's item is one of the lines' own.
    const indent = space.replaceAll('- ', '');
    return decode(hex)
      .split('\n')
      .map(
        (text) =>
          indent + text.replaceAll(/nindent \+(\d+)/g, (_, more: string) => `nindent ${indent.length + Number(more)}`),
      )
      .join('\n');
  }
  return line.replaceAll(token, (_, kind: string, text: string) => {
    if (kind === 'LINES') throw new Error(`these lines of a template do not stand alone: ${line}`);
    return `{{ ${decode(text)} }}`;
  });
}

function decode(hex: string): string {
  return Buffer.from(hex, 'hex').toString();
}
