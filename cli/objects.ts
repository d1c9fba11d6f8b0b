import { readFile } from 'node:fs/promises';
import { parseAllDocuments, type Document } from 'yaml';
import type { KubeObject } from '../constructs/kube/kube-object';
import type { ResourceType } from '../constructs/kube/resource-type';
import { messageOf } from '../local/assets/errors';
import type { ApiClient } from '../operator/client/api-client';
import { ApiError } from '../operator/client/errors';
import type { RestMapper } from '../operator/client/rest-mapper';
import { CliError } from './errors';

/** An object and where it comes from. */
export interface SourcedObject {
  readonly object: KubeObject;
  /** For messages: `my.yaml, document 2`. */
  readonly source: string;
}

/**
 * Reads manifests of YAML or JSON; a `List` counts as its items.
 *
 * @param flag - what stands before a file's name on the command line, for messages
 * @throws CliError if a file cannot be read, or naming the document that is no Kubernetes object
 */
export async function readObjects(files: readonly string[], flag = '--file='): Promise<readonly SourcedObject[]> {
  const read = await Promise.all(files.map((file) => readOne(file, flag)));
  return read.flat();
}

async function readOne(file: string, flag: string): Promise<readonly SourcedObject[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new CliError(`${flag}${file} cannot be read: ${messageOf(error)}. Check the path and its permissions.`, {
      cause: error,
    });
  }
  const objects = parseObjects(text, file);
  if (objects.length === 0) throw new CliError(`${flag}${file} holds no objects. Write at least one, or leave it out.`);
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
    const value = contentOf(document, source);
    return value === null || value === undefined ? [] : objectsOf(value, source);
  });
}

function contentOf(document: Document.Parsed, source: string): unknown {
  try {
    return document.toJS() as unknown;
  } catch (error) {
    // An alias that leads nowhere, or to more than is reasonable.
    throw new CliError(`${source} cannot be read: ${messageOf(error)}`, { cause: error });
  }
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

/** Field manager of the samples and of the user's own objects. */
const FIELD_MANAGER = 'kindred-cli';

/** Options of {@link applyObjects}. */
interface ApplyOptions {
  readonly client: ApiClient;
  readonly types: RestMapper;
  /** Namespace of namespaced objects that set none. */
  readonly namespace: string;
  readonly signal: AbortSignal;
}

/**
 * Applies samples and the user's objects in the given order.
 *
 * @returns the objects as they were sent, with their namespaces
 * @throws CliError with every object that was rejected, and the server's message
 */
export async function applyObjects(
  sourced: readonly SourcedObject[],
  options: ApplyOptions,
): Promise<readonly KubeObject[]> {
  const applied: KubeObject[] = [];
  const refused: string[] = [];
  for (const { object, source } of sourced) {
    try {
      applied.push(await applyOne(object, options));
    } catch (error) {
      if (!(error instanceof ApiError) && !(error instanceof CliError)) throw error;
      const by = error instanceof ApiError ? 'was refused by the API server' : 'cannot be applied';
      refused.push(`${source}: ${objectName(object)} ${by}: ${error.message}`);
    }
  }
  if (refused.length === 0) return applied;
  throw new CliError(`${refused.join('\n')}\nCorrect ${refused.length === 1 ? 'it' : 'them'} and run this again.`);
}

async function applyOne(object: KubeObject, { client, types, namespace, signal }: ApplyOptions): Promise<KubeObject> {
  const type = await resourceTypeOf(types, object);
  const placed =
    type.scope === 'Cluster' || object.metadata.namespace !== undefined
      ? object
      : { ...object, metadata: { ...object.metadata, namespace } };
  await client.apply(type, placed, { fieldManager: FIELD_MANAGER, force: false, signal });
  return placed;
}

/**
 * The type of an object.
 *
 * @throws CliError when the server serves no such kind
 */
export async function resourceTypeOf(
  types: RestMapper,
  object: Pick<KubeObject, 'apiVersion' | 'kind'>,
): Promise<ResourceType> {
  const found = await types.find(object);
  if (found !== undefined) return found;
  const { apiVersion, kind } = object;
  const kinds = await types.kindsOf(apiVersion);
  const there = kinds.length === 0 ? `nothing of ${apiVersion}` : `${kinds.length} other kinds of it`;
  throw new CliError(
    `the API server serves no ${kind} of ${apiVersion}; it serves ${there}. Check apiVersion and kind (kubectl api-resources lists them).`,
  );
}

/** An object in messages: `HelloApp kindred-samples/web`. */
export function objectName({ kind, metadata }: Pick<KubeObject, 'kind' | 'metadata'>): string {
  const { name, namespace } = metadata;
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}
