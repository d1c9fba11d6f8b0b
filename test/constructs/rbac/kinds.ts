import { z } from 'zod';
import type { Effect } from '../../../constructs/kind/effects';
import { defineKind } from '../../../constructs/kind/kind';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';

const common = {
  group: 'test.kindred.dev',
  version: 'v1',
  description: 'A kind for tests.',
  children: () => undefined,
};
const spec = z.object({ text: z.string().max(10).optional().describe('Any text.') });

/** Owns a Deployment, and nothing else. */
export const Plain = defineKind({
  ...common,
  kind: 'Plain',
  plural: 'plains',
  scope: 'Namespaced',
  spec,
  owns: [owned.Deployment],
});

/** Has a finalizer, shared children, a seed, a scale subresource and a past. */
export const Rich = defineKind({
  ...common,
  kind: 'Rich',
  plural: 'riches',
  scope: 'Namespaced',
  spec: spec.extend({ replicas: z.int32().min(0).optional().describe('Pods that are wanted.') }),
  status: z.object({ replicas: z.int32().min(0).optional().describe('Pods that stand.') }),
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
  finalizer: { name: 'riches.test.kindred.dev', propagation: 'Foreground' },
  owns: [owned.Deployment, owned.ConfigMap, owned.HorizontalPodAutoscaler],
  shared: [{ name: 'front', owns: [owned.Service, owned.ServiceAccount], key: () => 'key', children: () => undefined }],
  formerlyOwned: [owned.StatefulSet, owned.Secret],
  seeds: [{ of: owned.Deployment, path: ['spec', 'replicas'], writer: owned.HorizontalPodAutoscaler }],
});

/** Owns nothing of its own, only shares. */
export const Sharer = defineKind({
  ...common,
  kind: 'Sharer',
  plural: 'sharers',
  scope: 'Namespaced',
  spec,
  owns: [],
  shared: [{ name: 'front', owns: [owned.Service], key: () => 'key', children: () => undefined }],
});

const priorityClass: ResourceType = {
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  plural: 'priorityclasses',
  scope: 'Cluster',
};

/** Owns what {@link Rich} owned once. */
export const Keeper = defineKind({
  ...common,
  kind: 'Keeper',
  plural: 'keepers',
  scope: 'Namespaced',
  spec,
  owns: [owned.Secret],
});

/** Cluster-scoped, with children that are so too; what it owned once stands in namespaces. */
export const Wide = defineKind({
  ...common,
  kind: 'Wide',
  plural: 'wides',
  scope: 'Cluster',
  spec,
  finalizer: { name: 'wides.test.kindred.dev', propagation: 'Background' },
  owns: [priorityClass],
  formerlyOwned: [owned.Secret],
});

const effect: Effect<unknown> = {
  ...{ name: 'make', phase: 'apply', plan: 'outside.make', timeoutSeconds: 60 },
  ...{ input: () => ({}), maxAttempts: () => 3 },
};

const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1' } as const;

/** Acts outside the Kubernetes API, and reads a Secret for it. */
export const Outside = defineKind({
  ...{ ...common, kind: 'Outside', plural: 'outsides', scope: 'Namespaced', spec, owns: [], effects: [effect] },
  reads: [{ name: 'password', type: owned.Secret, refs: () => [] }],
});

/** Renders bindings to a ClusterRole, and looks at nodes. */
export const Binder = defineKind({
  ...{ ...common, kind: 'Binder', plural: 'binders', scope: 'Namespaced', spec },
  owns: [{ ...rbac, kind: 'RoleBinding', plural: 'rolebindings', scope: 'Namespaced' }],
  extraRules: [
    { apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles'], verbs: ['bind'], resourceNames: ['edit'] },
    { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list'], scope: 'Cluster' },
  ],
});

/** The same for the whole cluster. */
export const OutsideWide = defineKind({
  ...{ ...common, kind: 'OutsideWide', plural: 'outsidewides', scope: 'Cluster', spec, owns: [], effects: [effect] },
  reads: [
    { name: 'settings', type: owned.ConfigMap, refs: () => [] },
    { name: 'class', type: priorityClass, refs: () => [] },
  ],
});

/** Only probes, so that there is nothing to store. */
export const Watcher = defineKind({
  ...{ ...common, kind: 'Watcher', plural: 'watchers', scope: 'Namespaced', spec, owns: [] },
  effects: [{ ...effect, everySeconds: 60 }],
});
