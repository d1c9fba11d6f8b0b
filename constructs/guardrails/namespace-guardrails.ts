import { k8s } from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import { defaultContainerLimits, defaultQuota, guardrailProblems } from './numbers';
import type { ContainerLimits, GuardrailNumbers } from './numbers';

/** Name of the ResourceQuota. */
export const RESOURCE_QUOTA_NAME = 'default-resource-quota';
/** Name of the LimitRange. */
export const LIMIT_RANGE_NAME = 'default-limit-range';

/** What {@link NamespaceGuardrails} are made of. */
export interface NamespaceGuardrailsProps extends GuardrailNumbers {
  /** The namespace; it must stand already. */
  readonly namespace: string;
  /** Further labels of both objects. @default none */
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * A ResourceQuota and a LimitRange, once a namespace. The quota makes requests and limits of cpu and memory compulsory, and the
 * LimitRange fills in those that a pod leaves out.
 *
 * Caveats: a quota stops pods, not Deployments: the Deployment's condition `ReplicaFailure` tells.
 * Errors: TypeError when a number is no quantity, or the API server would refuse the LimitRange.
 */
export class NamespaceGuardrails extends Construct {
  constructor(scope: Construct, id: string, props: NamespaceGuardrailsProps) {
    super(scope, id);
    const { namespace } = props;
    const [problem] = guardrailProblems(props);
    if (problem !== undefined) {
      throw new TypeError(`NamespaceGuardrails ${namespace}: ${problem.path}: ${problem.message}`);
    }
    const labels = { ...props.labels, 'my-domain-ops-controller-make': 'true' };
    new k8s.KubeResourceQuota(this, 'quota', {
      metadata: { name: RESOURCE_QUOTA_NAME, namespace, labels },
      spec: { hard: quantities({ ...defaultQuota, ...props.quota }) },
    });
    const limits = (group: keyof ContainerLimits): Record<string, k8s.Quantity> =>
      quantities({ ...defaultContainerLimits[group], ...props.containers?.[group] });
    new k8s.KubeLimitRange(this, 'limits', {
      metadata: { name: LIMIT_RANGE_NAME, namespace, labels },
      spec: {
        limits: [
          {
            type: 'Container',
            default: limits('default'),
            defaultRequest: limits('defaultRequest'),
            max: limits('max'),
          },
        ],
      },
    });
  }
}

function quantities(numbers: Readonly<Record<string, string>>): Record<string, k8s.Quantity> {
  return Object.fromEntries(
    Object.entries(numbers).map(([resource, value]) => [resource, k8s.Quantity.fromString(value)]),
  );
}
