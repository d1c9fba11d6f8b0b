import { groupOf, owned, typeKey } from '../../../constructs/kube/resource-type';
import { kinds } from '../../../constructs/kinds';
import { childTypes } from '../../../constructs/kind/kind';

describe('owned types', () => {
  it('are named as the API names them', () => {
    const named = Object.values(owned).map(({ apiVersion, kind, plural }) => `${plural} ${apiVersion}/${kind}`);
    expect(named).toMatchInlineSnapshot(`
      [
        "configmaps v1/ConfigMap",
        "secrets v1/Secret",
        "services v1/Service",
        "serviceaccounts v1/ServiceAccount",
        "persistentvolumeclaims v1/PersistentVolumeClaim",
        "deployments apps/v1/Deployment",
        "statefulsets apps/v1/StatefulSet",
        "daemonsets apps/v1/DaemonSet",
        "jobs batch/v1/Job",
        "cronjobs batch/v1/CronJob",
        "horizontalpodautoscalers autoscaling/v2/HorizontalPodAutoscaler",
        "poddisruptionbudgets policy/v1/PodDisruptionBudget",
        "ingresses networking.k8s.io/v1/Ingress",
        "networkpolicies networking.k8s.io/v1/NetworkPolicy",
      ]
    `);
  });

  it('are told apart by version and kind', () => {
    const keys = Object.values(owned).map(typeKey);
    expect(new Set(keys).size).toBe(keys.length);
    expect([groupOf(owned.ConfigMap), groupOf(owned.Deployment)]).toEqual(['', 'apps']);
  });

  it('are each named once among the child types of a kind', () => {
    for (const kind of kinds) {
      const keys = childTypes(kind).map(typeKey);
      expect(new Set(keys).size).toBe(keys.length);
      const expected = [...kind.owns, ...kind.shared.flatMap((group) => group.owns)].map(typeKey);
      expect(new Set(keys)).toEqual(new Set(expected));
    }
  });
});
