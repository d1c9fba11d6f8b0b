import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import type { Scene, Stage } from './life';

type Act = Stage['act'];

/** A user makes an object. */
export function makes(name: string, spec: object): Act {
  return ({ bench, kind, namespace }) => bench.create(kind.type, { namespace, name }, { spec });
}

/** A user changes its spec; null takes a field out. */
export function changes(name: string, spec: object): Act {
  return ({ bench, kind, namespace }) => bench.respec(kind, { namespace, name }, spec);
}

/** A user runs `kubectl scale`. */
export function scales(name: string, replicas: number): Act {
  return async ({ bench, kind, namespace }) => {
    const args = ['scale', `${kind.crdName}/${name}`, `--replicas=${String(replicas)}`, '-n', namespace];
    const { code, stderr } = await bench.kubectl(args);
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  };
}

/** A user deletes it. */
export function deletes(name: string): Act {
  return ({ bench, kind, namespace }) => bench.client.delete(kind.type, { namespace, name });
}

/** An administrator changes a child behind the operator's back. */
export function edits(type: ResourceType, name: string, patch: object): Act {
  return ({ bench, namespace }) => bench.patch(type, { namespace, name }, patch);
}

/** An administrator deletes a child. */
export function loses(type: ResourceType, name: string): Act {
  return ({ bench, namespace }) => bench.client.delete(type, { namespace, name });
}

/** An administrator gives a Deployment another image. */
export function editsDeployment(name: string, container: string): Act {
  const template = { spec: { containers: [{ name: container, image: 'stranger:1' }] } };
  return edits(owned.Deployment, name, { spec: { template } });
}

/**
 * An administrator gives a Deployment another number of pods. Not together with another image: when both are taken back while they are rolled out,
 * the Deployment controller can stand still for good, having taken note of one number and made the other.
 * Source: https://github.com/kubernetes/kubernetes/pull/138840, `isScalingEvent` and `scale` in pkg/controller/deployment/sync.go.
 */
export function scalesDeployment(name: string): Act {
  return edits(owned.Deployment, name, { spec: { replicas: 4 } });
}

/** One after the other. */
export function all(...acts: readonly Act[]): Act {
  return async (scene: Scene) => {
    for (const act of acts) await act(scene);
  };
}
