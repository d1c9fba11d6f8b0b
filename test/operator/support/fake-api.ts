import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import type {
  ApiClient,
  CreateOptions,
  ObjectRef,
  PatchOptions,
  RequestOptions,
} from '../../../operator/client/api-client';
import { ApiError, TransportError } from '../../../operator/client/errors';

export type Verb = 'get' | 'create' | 'update' | 'patch';

/**
 * What befalls a request. `pass`: nothing. An Error: thrown, nothing is stored. `lost`: stored, but the answer is lost.
 * `hang`: no answer until aborted, nothing is stored. `stored-hang`: stored, no answer until aborted.
 */
export type Fate = 'pass' | 'lost' | 'hang' | 'stored-hang' | Error;

export interface SeenRequest {
  readonly verb: Verb;
  readonly name: string;
  readonly body?: unknown;
}

export function apiError(code: number, reason: string, cause?: string): ApiError {
  const causes = cause === undefined ? [] : [{ reason: cause }];
  return new ApiError({ code, reason, message: `${reason} by the test`, causes }, 'TEST');
}

/** The part of a Kubernetes API server that elections and events use, in memory, with faults on demand. */
export class FakeApi implements Pick<ApiClient, Verb> {
  readonly objects = new Map<string, KubeObject>();
  readonly seen: SeenRequest[] = [];
  /** Decides each request's fate. */
  fate: (request: SeenRequest) => Fate = () => 'pass';
  /** Awaited before each answer reaches the caller; for a process that is stopped. */
  beforeAnswer: () => Promise<void> = () => Promise.resolve();
  private readonly version = { last: 0 };

  get(type: ResourceType, ref: ObjectRef, options?: RequestOptions): Promise<KubeObject | undefined> {
    const run = (): KubeObject | undefined => this.objects.get(keyOf(type, ref));
    return this.answer({ verb: 'get', name: ref.name }, options, run);
  }

  create(type: ResourceType, body: KubeObject, options: CreateOptions): Promise<KubeObject> {
    return this.answer({ verb: 'create', name: body.metadata.name, body }, options, () => {
      if (this.objects.has(keyOf(type, body.metadata))) throw apiError(409, 'AlreadyExists');
      return this.store(type, body);
    });
  }

  update(type: ResourceType, body: KubeObject, options: CreateOptions): Promise<KubeObject> {
    return this.answer({ verb: 'update', name: body.metadata.name, body }, options, () => {
      const old = this.objects.get(keyOf(type, body.metadata));
      if (old === undefined) throw apiError(404, 'NotFound');
      const wanted = body.metadata.resourceVersion;
      if (wanted !== undefined && wanted !== old.metadata.resourceVersion) throw apiError(409, 'Conflict');
      return this.store(type, body);
    });
  }

  patch(type: ResourceType, ref: ObjectRef, body: unknown, options: PatchOptions): Promise<KubeObject> {
    return this.answer({ verb: 'patch', name: ref.name, body }, options, () => {
      const old = this.objects.get(keyOf(type, ref));
      if (old === undefined) throw apiError(404, 'NotFound');
      return this.store(type, { ...old, ...(body as object) });
    });
  }

  /** Changes an object from outside. */
  edit(type: ResourceType, ref: ObjectRef, spec: Record<string, unknown>): void {
    const old = this.objects.get(keyOf(type, ref));
    if (old === undefined) throw new Error(`the fake has no ${ref.name}`);
    this.store(type, { ...old, spec: { ...(old['spec'] as object), ...spec } });
  }

  count(verb: Verb): number {
    return this.seen.filter((request) => request.verb === verb).length;
  }

  private store(type: ResourceType, body: KubeObject): KubeObject {
    const stored = { ...body, metadata: { ...body.metadata, resourceVersion: String(++this.version.last) } };
    this.objects.set(keyOf(type, body.metadata), stored);
    return stored;
  }

  private async answer<T>(request: SeenRequest, options: RequestOptions | undefined, run: () => T): Promise<T> {
    this.seen.push(request);
    options?.signal?.throwIfAborted();
    const fate = this.fate(request);
    if (fate instanceof Error) {
      await this.beforeAnswer();
      throw fate;
    }
    if (fate === 'hang') return await untilAborted(options?.signal);
    // The server acts a moment later; the answer may wait in the socket for longer.
    await Promise.resolve();
    const result = run();
    await this.beforeAnswer();
    if (fate === 'lost') throw new TransportError('the answer was lost', 'TEST');
    if (fate === 'stored-hang') return await untilAborted(options?.signal);
    return result;
  }
}

function keyOf(type: ResourceType, ref: ObjectRef): string {
  return `${type.kind}/${ref.namespace ?? ''}/${ref.name}`;
}

function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}
