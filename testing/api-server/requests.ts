import type { ResourceType } from '../../constructs/kube/resource-type';
import type { ObjectRef } from '../../operator/client/api-client';
import { ApiError, type ApiStatus } from '../../operator/client/errors';

/** One request as the server received it. */
export interface MemoryRequest {
  readonly verb: 'GET' | 'LIST' | 'POST' | 'PUT' | 'APPLY' | 'PATCH' | 'DELETE';
  readonly type: ResourceType;
  readonly ref: ObjectRef;
  readonly body?: unknown;
  readonly options?: Readonly<Record<string, unknown>>;
}

/** A request in one line: `APPLY Deployment web (kindred)`, `APPLY HelloApp web/status (kindred)`. */
export function formatRequest({ verb, type, ref, options = {} }: MemoryRequest): string {
  const { subresource, fieldManager, propagation, dryRun } = options as Record<string, string | undefined>;
  const by = fieldManager ?? propagation;
  const part = subresource === undefined ? '' : `/${subresource}`;
  const how = dryRun === undefined ? '' : 'dry run, ';
  return `${verb} ${type.kind} ${ref.name}${part}${by === undefined ? '' : ` (${how}${by})`}`;
}

/** An error response. */
export function apiError(code: number, reason: string, message: string, causes: ApiStatus['causes'] = []): ApiError {
  return new ApiError({ code, reason, message, causes }, 'a request to the memory');
}

export function conflict(message: string): ApiError {
  return apiError(409, 'Conflict', `Operation cannot be fulfilled: ${message}`);
}

export function notFound(type: ResourceType, { name }: ObjectRef): ApiError {
  return apiError(404, 'NotFound', `${type.plural} "${name}" not found`);
}

/** A copy as after a transfer in JSON: undefined fields are lost, and nothing is shared with the original. */
export function jsonCopy<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T);
}
