import { childPath, formatProblems, RenderError, type Problem } from '../kube/errors';
import { isObject, type KubeObject } from '../kube/kube-object';
import { owned, typeKey, type ResourceType } from '../kube/resource-type';

/** Base64 with padding, if the length is a multiple of four. */
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Whether a type is the built-in Secret. */
export function isSecret(type: Pick<ResourceType, 'apiVersion' | 'kind'>): boolean {
  return typeKey(type) === typeKey(owned.Secret);
}

/**
 * A rendered Secret as the server stores it: `stringData` is merged into `data`, where it wins, and each value
 * is canonical base64.
 *
 * `stringData` is never stored or sent back. If it were applied, the server would record that we own
 * `stringData` and nobody owns `data`: a change of `data` by hand would not be found, and a key that is no
 * longer rendered would stay for ever.
 *
 * Source: Kubernetes API reference, Secret: `stringData` is write-only and wins over `data`.
 *
 * @param subject the Secret's owner
 * @param given the Secret's props: what cdk8s makes of them lacks the entries without a value
 * @param isPlaceholder see `RenderOptions`
 * @throws RenderError naming every entry that is not valid; it quotes no value
 */
export function toStoredSecret(
  subject: string,
  manifest: KubeObject,
  given: unknown,
  isPlaceholder: (text: string) => boolean,
): KubeObject {
  const { apiVersion, kind, metadata, data, stringData, ...rest } = manifest;
  const problems: Problem[] = [];
  const stored = new Map<string, string>();
  for (const [key, value] of entriesOf('data', data, problems)) {
    const problem = base64Problem(value, isPlaceholder);
    if (problem !== undefined) problems.push({ path: childPath('data', key), message: problem });
    else stored.set(key, storedBase64(value as string, isPlaceholder));
  }
  for (const [key, value] of entriesOf('stringData', stringData, problems)) {
    if (typeof value !== 'string') problems.push({ path: childPath('stringData', key), message: notText(value) });
    else stored.set(key, Buffer.from(value, 'utf8').toString('base64'));
  }
  problems.push(...undefinedEntries(given));
  if (problems.length > 0) {
    const heading = `Secret "${metadata.name}" has content that the API server would not take:`;
    throw new RenderError(subject, formatProblems(heading, problems));
  }
  // Sorted as cdk8s sorts, so that the bytes do not depend on which of the two fields a key was given in.
  const sorted = [...stored].sort(([a], [b]) => (a < b ? -1 : 1));
  const isAbsent = stored.size === 0 && (data === undefined || stringData !== undefined);
  return { apiVersion, kind, metadata, ...(isAbsent ? {} : { data: Object.fromEntries(sorted) }), ...rest };
}

function entriesOf(field: string, value: unknown, problems: Problem[]): readonly (readonly [string, unknown])[] {
  if (value === undefined) return [];
  if (isObject(value)) return Object.entries(value);
  problems.push({ path: field, message: `is ${typeName(value)}; give an object of texts` });
  return [];
}

function base64Problem(value: unknown, isPlaceholder: (text: string) => boolean): string | undefined {
  if (typeof value !== 'string') return notText(value);
  const text = withoutLineBreaks(value);
  if (isPlaceholder(value) || (text.length % 4 === 0 && BASE64.test(text))) return undefined;
  return 'is not base64 with padding; encode it, or give the text itself in stringData';
}

/** The server decodes what it is sent, so that line breaks and unused bits are not stored. */
function storedBase64(value: string, isPlaceholder: (text: string) => boolean): string {
  if (isPlaceholder(value)) return value;
  return Buffer.from(withoutLineBreaks(value), 'base64').toString('base64');
}

function withoutLineBreaks(value: string): string {
  return /[\r\n]/.test(value) ? value.replaceAll(/[\r\n]/g, '') : value;
}

function notText(value: unknown): string {
  return `is ${typeName(value)}; a Secret has texts only`;
}

function typeName(value: unknown): string {
  return Array.isArray(value)
    ? 'a list'
    : value === null
      ? 'null'
      : isObject(value)
        ? 'an object'
        : `a ${typeof value}`;
}

/**
 * Entries without a value: cdk8s leaves them out, and the Secret would lack a key without anybody noticing.
 */
function undefinedEntries(given: unknown): readonly Problem[] {
  if (!isObject(given)) return [];
  return ['data', 'stringData'].flatMap((field) => {
    const entries = given[field];
    if (!isObject(entries)) return [];
    return Object.keys(entries)
      .filter((key) => entries[key] === undefined || entries[key] === null)
      .map((key) => ({
        path: childPath(field, key),
        message: 'has no value; give it one, or leave the key out',
      }));
  });
}
