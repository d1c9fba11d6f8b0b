import type { ApiClient, ObjectRef } from '../../../../../operator';
import type { ResourceType } from '../../../../../constructs/kube/resource-type';
import type { KubeObject } from '../../../../../constructs/kube/kube-object';

/** Whether an object is as it should be: `true`, or what is missing. Undefined object: it is not there. */
export type Readiness = (object: KubeObject | undefined) => true | string;

/** Where and how long to wait. */
export interface WaitOptions {
  readonly client: ApiClient;
  readonly type: ResourceType;
  readonly ref: ObjectRef;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Waits on a watch until an object is ready.
 *
 * @returns the object as it then is, and what is still missing if the time ran out
 */
export async function waitFor(
  options: WaitOptions,
  ready: Readiness,
): Promise<{ readonly object: KubeObject | undefined; readonly missing?: string }> {
  const { client, type, ref, timeoutMs, signal } = options;
  const deadline = AbortSignal.timeout(timeoutMs);
  const stop = AbortSignal.any([signal, deadline]);
  const over = (): boolean => stop.aborted;
  let object = await client.get(type, ref);
  let verdict = ready(object);
  while (verdict !== true && !over()) {
    const page = await client.list(type, listed(ref));
    object = page.items.find((item) => item.metadata.name === ref.name);
    verdict = ready(object);
    if (verdict === true) break;
    try {
      const events = client.watch(type, {
        ...listed(ref),
        resourceVersion: page.resourceVersion,
        timeoutSeconds: Math.ceil(timeoutMs / 1000),
        signal: stop,
        idleTimeoutMs: timeoutMs + 1000,
      });
      for await (const event of events) {
        if (event.type === 'BOOKMARK') continue;
        object = event.type === 'DELETED' ? undefined : event.object;
        verdict = ready(object);
        if (verdict === true) break;
      }
    } catch (error) {
      // The deadline ends the watch with an error of its own.
      if (!over()) throw error;
    }
  }
  signal.throwIfAborted();
  return { object, ...(verdict === true ? {} : { missing: verdict }) };
}

function listed(ref: ObjectRef): { fieldSelector: string; namespace?: string } {
  return {
    fieldSelector: `metadata.name=${ref.name}`,
    ...(ref.namespace === undefined ? {} : { namespace: ref.namespace }),
  };
}
