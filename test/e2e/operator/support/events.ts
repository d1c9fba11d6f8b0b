import type { KubeObject } from '../../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../../constructs/kube/resource-type';
import type { Bench } from './bench';

const EVENTS: ResourceType = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  plural: 'events',
  scope: 'Namespaced',
};

/** An event as `events.k8s.io/v1` has it. */
export interface RecordedEvent extends KubeObject {
  readonly type: string;
  readonly reason: string;
  readonly note: string;
  readonly regarding: { readonly kind: string; readonly name: string; readonly uid: string };
}

/** Waits for an event about an object. */
export async function eventAbout(bench: Bench, object: KubeObject, reason: string): Promise<RecordedEvent> {
  const { namespace = 'default', uid } = object.metadata;
  const describe = `an event ${reason} about ${object.kind} ${object.metadata.name}`;
  return bench.whenChanged(describe, [{ type: EVENTS, namespace }], async () => {
    const { items } = await bench.client.list(EVENTS, { namespace });
    return (items as readonly RecordedEvent[]).find((event) => event.regarding.uid === uid && event.reason === reason);
  });
}
