import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ApiClient } from '../../operator/client/api-client';
import { ApiError } from '../../operator/client/errors';
import { CliError } from '../errors';
import { objectName } from '../object-name';
import type { ResourceTypes } from '../resource-types';
import type { SourcedObject } from './read-objects';

/** Field manager of the samples and of the user's own objects. */
const FIELD_MANAGER = 'kindred-cli';

/** How to apply. */
export interface ApplyOptions {
  readonly client: ApiClient;
  readonly types: ResourceTypes;
  /** Namespace of objects that live in one and name none. */
  readonly namespace: string;
  readonly signal: AbortSignal;
}

/**
 * Applies people's objects in the order in which they are given.
 *
 * @returns them as they were sent, each with its namespace
 * @throws CliError with every object that was refused, and the server's own words
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
  const type = await types.of(object);
  const placed =
    type.scope === 'Cluster' || object.metadata.namespace !== undefined
      ? object
      : { ...object, metadata: { ...object.metadata, namespace } };
  await client.apply(type, placed, { fieldManager: FIELD_MANAGER, force: false, signal });
  return placed;
}
