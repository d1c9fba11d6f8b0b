import { controllerReference } from '../../constructs/kube/envelope';
import type { KubeObject } from '../../constructs/kube/kube-object';

/** A HelloApp whose work is done: its status says that it waits for its pods, which nobody starts here. */
export function doneApp(app: KubeObject): KubeObject {
  const { name, generation = 1 } = app.metadata;
  const condition = { reason: 'Progressing', message: '', lastTransitionTime: '', observedGeneration: generation };
  const conditions = [
    { type: 'Ready', status: 'False', ...condition },
    { type: 'Reconciling', status: 'True', ...condition },
  ];
  const status = {
    replicas: 0,
    readyReplicas: 0,
    selector: `app=${name}`,
    observedGeneration: generation,
    conditions,
  };
  return { ...app, status };
}

/** The Deployment of a HelloApp, as far as it is looked at. */
export function deploymentOf(app: KubeObject): KubeObject {
  const { name, namespace = '' } = app.metadata;
  const { image, size } = app['spec'] as { readonly image: string; readonly size: number };
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { namespace, name, ownerReferences: [controllerReference(app)] },
    spec: { replicas: size, template: { spec: { containers: [{ name: 'helloapp', image }] } } },
  };
}
