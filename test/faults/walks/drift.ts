import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { refOf, type ApiClient } from '../../../operator/client/api-client';

/** A child as somebody else finds it. */
export interface LiveChild {
  readonly type: ResourceType;
  readonly object: KubeObject;
}

type Drift = (client: ApiClient, found: LiveChild) => Promise<unknown>;

const manager = 'stranger';

/** One field of ours in every type that the kinds render, changed by a JSON patch. */
const edits: Readonly<Record<string, { readonly path: string; readonly value: unknown }>> = {
  [owned.Deployment.kind]: { path: '/spec/template/spec/containers/0/image', value: 'stranger:1' },
  [owned.Service.kind]: { path: '/spec/ports/0/port', value: 1234 },
  [owned.ConfigMap.kind]: { path: '/data', value: { 'ms.properties': 'stranger' } },
  [owned.CronJob.kind]: { path: '/spec/schedule', value: '0 0 31 6 *' },
  [owned.HorizontalPodAutoscaler.kind]: { path: '/spec/maxReplicas', value: 3 },
  [owned.ServiceAccount.kind]: { path: '/metadata/labels/my-domain-ops-controller-make', value: 'stranger' },
};

/** One field of ours in every type, taken over by another field manager's apply. */
const takeovers: Readonly<Record<string, object>> = {
  [owned.Deployment.kind]: { spec: { replicas: 4 } },
  [owned.Service.kind]: { spec: { selector: { app: 'stranger' } } },
  [owned.ConfigMap.kind]: { data: { 'ms.properties': 'taken over' } },
  [owned.CronJob.kind]: { spec: { suspend: true, startingDeadlineSeconds: 60 } },
  [owned.HorizontalPodAutoscaler.kind]: { spec: { minReplicas: 2 } },
  [owned.ServiceAccount.kind]: {},
};

const drifts = {
  /** Deletes it. */
  remove: (client, { type, object }) => client.delete(type, refOf(object)),
  /** Changes a field. */
  edit: (client, { type, object }) => {
    const { path = '', value } = edits[type.kind] ?? {};
    return client.patch(type, refOf(object), [{ op: 'replace', path, value }], { type: 'json', fieldManager: manager });
  },
  /** Takes all labels away. */
  strip: (client, found) => mergeMetadata(client, found, { labels: null }),
  /** Takes all owner references away. */
  disown: (client, found) => mergeMetadata(client, found, { ownerReferences: null }),
  /** Takes all annotations away. */
  unannotate: (client, found) => mergeMetadata(client, found, { annotations: null }),
  /** Applies a field of ours by server-side apply, with force. */
  'take over': (client, { type, object }) => {
    const { apiVersion, kind } = type;
    const { name, namespace = '', uid = '' } = object.metadata;
    const labels = { 'my-domain-ops-controller-make': 'taken-over' };
    const body = { apiVersion, kind, ...takeovers[type.kind], metadata: { name, namespace, uid, labels } };
    return client.apply(type, body, { fieldManager: manager });
  },
} satisfies Record<string, Drift>;

export type DriftName = keyof typeof drifts;

export const driftNames = Object.keys(drifts) as readonly DriftName[];

/**
 * Does it.
 *
 * @throws ApiError when the server refuses
 */
export async function applyDrift(client: ApiClient, found: LiveChild, how: DriftName): Promise<void> {
  await drifts[how](client, found);
}

function mergeMetadata(client: ApiClient, { type, object }: LiveChild, metadata: object): Promise<unknown> {
  return client.patch(type, refOf(object), { metadata }, { type: 'merge', fieldManager: manager });
}
