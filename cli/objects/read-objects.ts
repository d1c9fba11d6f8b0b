import { readFile } from 'node:fs/promises';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { messageOf } from '../../local/errors';
import { CliError } from '../errors';

/** An object and where it was written. */
export interface SourcedObject {
  readonly object: KubeObject;
  /** For messages: `my.yaml, document 2`. */
  readonly source: string;
}

/**
 * Reads manifests of YAML or JSON; a `List` counts as its items.
 *
 * @throws CliError naming the file and the document that is no Kubernetes object
 */
export async function readObjects(files: readonly string[]): Promise<readonly SourcedObject[]> {
  const read = await Promise.all(files.map(readOne));
  return read.flat();
}

async function readOne(file: string): Promise<readonly SourcedObject[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new CliError(`--file=${file} cannot be read: ${messageOf(error)}. Check the path and its permissions.`, {
      cause: error,
    });
  }
  const objects = parseObjects(text, file);
  if (objects.length === 0) throw new CliError(`--file=${file} holds no objects. Write at least one, or leave it out.`);
  return objects;
}

/**
 * The objects in a text of YAML or JSON.
 *
 * @param file - names the text in messages
 * @throws CliError as `readObjects`
 */
export function parseObjects(text: string, file: string): readonly SourcedObject[] {
  const documents = parseAllDocuments(text);
  return [...documents].flatMap((document, i) => {
    const source = documents.length === 1 ? file : `${file}, document ${i + 1}`;
    const [fault] = document.errors;
    if (fault !== undefined) throw new CliError(`${source} is not YAML: ${fault.message.trimEnd()}`, { cause: fault });
    const value: unknown = document.toJS();
    return value === null || value === undefined ? [] : objectsOf(value, source);
  });
}

function objectsOf(value: unknown, source: string): readonly SourcedObject[] {
  const { apiVersion, kind, metadata, items } = isRecord(value) ? value : {};
  if (apiVersion === 'v1' && kind === 'List' && Array.isArray(items)) {
    return items.flatMap((item, i) => objectsOf(item, `${source}, item ${i + 1}`));
  }
  const missing = [
    ...(isText(apiVersion) ? [] : ['apiVersion']),
    ...(isText(kind) ? [] : ['kind']),
    ...(isRecord(metadata) && isText(metadata['name']) ? [] : ['metadata.name']),
  ];
  if (missing.length === 0) return [{ object: value as KubeObject, source }];
  throw new CliError(`${source} is no Kubernetes object: ${missing.join(', ')} must be given, as text.`);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
