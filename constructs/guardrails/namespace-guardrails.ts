import { k8s } from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import { compareQuantities, isQuantity, quantityToNumber } from '../kind/quantity';
import type { Problem } from '../kube/errors';

/** Name of the ResourceQuota. */
const RESOURCE_QUOTA_NAME = 'default-resource-quota';
/** Name of the LimitRange. */
const LIMIT_RANGE_NAME = 'default-limit-range';

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

/** An amount of each resource, as Kubernetes writes quantities. */
export type Quantities = Readonly<Record<'cpu' | 'memory', string>>;

/** What the pods of a namespace may ask for altogether. */
export type Quota = Readonly<Record<'requests.cpu' | 'limits.cpu' | 'requests.memory' | 'limits.memory', string>>;

/** What one container gets when it asks for nothing, and the most it may ask for. */
export interface ContainerLimits {
  /** The limits of a container without any. */
  readonly default: Quantities;
  /** The requests of a container without any. */
  readonly defaultRequest: Quantities;
  /** The greatest limits. */
  readonly max: Quantities;
}

/** The quota of a namespace. */
export const defaultQuota: Quota = Object.freeze({
  'requests.cpu': '88',
  'limits.cpu': '352',
  'requests.memory': '112Gi',
  'limits.memory': '448Gi',
});

/** The limits of a namespace's containers. */
export const defaultContainerLimits: ContainerLimits = Object.freeze({
  default: Object.freeze({ cpu: '400m', memory: '2Gi' }),
  defaultRequest: Object.freeze({ cpu: '100m', memory: '500Mi' }),
  max: Object.freeze({ cpu: '2', memory: '8Gi' }),
});

/** The numbers of a namespace's guardrails. */
export interface GuardrailNumbers {
  /** What the namespace's pods may ask for altogether. Numbers left out keep their defaults. @default {@link defaultQuota} */
  readonly quota?: Partial<Quota>;
  /** What one container gets and may ask for. Numbers left out keep their defaults. @default {@link defaultContainerLimits} */
  readonly containers?: { readonly [K in keyof ContainerLimits]?: Partial<Quantities> };
}

/** What is wrong with the numbers that somebody chose. */
export function guardrailProblems({ quota = {}, containers = {} }: GuardrailNumbers): readonly Problem[] {
  const groups = [
    ['quota', quota],
    ...Object.entries(containers).map(([k, v]) => [`containers.${k}`, v] as const),
  ] as const;
  const notQuantities = groups.flatMap(([path, numbers]) =>
    Object.entries(numbers)
      .filter(([, value]) => !isNonNegativeQuantity(value))
      .map(([resource, value]) => ({
        path: `${path}.${resource}`,
        message: `"${value}" is no quantity of 0 or more; write 2, 400m or 8Gi`,
      })),
  );
  return [
    ...notQuantities,
    ...(['cpu', 'memory'] as const).flatMap((resource) => limitOrderProblems(containers, resource)),
  ];
}

function isNonNegativeQuantity(value: string): boolean {
  return isQuantity(value) && quantityToNumber(value) >= 0;
}

/** From the least to the greatest, as the API server wants them. Source: kubernetes, `ValidateLimitRange`. */
const ascending = ['defaultRequest', 'default', 'max'] as const;

/** What was left out keeps its default, and so may not fit what was chosen. */
function limitOrderProblems(
  containers: NonNullable<GuardrailNumbers['containers']>,
  resource: keyof Quantities,
): readonly Problem[] {
  const numbers = ascending.map((group) => ({
    group,
    value: containers[group]?.[resource] ?? defaultContainerLimits[group][resource],
    chosen: containers[group]?.[resource] !== undefined,
  }));
  if (!numbers.every(({ value }) => isNonNegativeQuantity(value))) return [];
  const ordered = numbers.every(({ value }, i) => compareQuantities(numbers[i - 1]?.value ?? value, value) <= 0);
  if (ordered) return [];
  const told = numbers.map(({ group, value, chosen }) => `${group} ${value}${chosen ? '' : ' (left out)'}`).join(', ');
  // The defaults ascend, so that somebody chose one of them.
  const at = numbers.findLast(({ chosen }) => chosen)?.group ?? 'max';
  const message = `the API server refuses such a LimitRange: ${told}; none may be more than the next, and what is left out keeps its default`;
  return [{ path: `containers.${at}.${resource}`, message }];
}
