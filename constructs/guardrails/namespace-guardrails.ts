import { k8s } from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import { compareQuantities, isQuantity, quantityToNumber } from '../kind/quantity';
import { childPath, type Problem } from '../kube/errors';
import { isObject } from '../kube/kube-object';

/** The numbers of a namespace's guardrails. */
export interface GuardrailNumbers {
  /**
   * What the namespace's pods may request in total. Numbers left out keep their defaults.
   * @default {@link defaultQuota}
   */
  readonly quota?: Numbers<keyof Quota>;
  /**
   * What one container gets and may have. Numbers left out keep their defaults.
   * @default {@link defaultContainerLimits}
   */
  readonly containers?: { readonly [K in keyof ContainerLimits]?: Numbers<keyof Quantities> };
}

/** Quantities of some of the resources. A number is a quantity too: YAML reads 8 as one. */
type Numbers<R extends string> = Readonly<Partial<Record<R, string | number>>>;

/** What the pods of a namespace may request in total. */
export type Quota = Readonly<Record<'requests.cpu' | 'limits.cpu' | 'requests.memory' | 'limits.memory', string>>;

/** What one container gets when it requests nothing, and the most it may have. */
export interface ContainerLimits {
  /** The limits of a container without any. */
  readonly default: Quantities;
  /** The requests of a container without any. */
  readonly defaultRequest: Quantities;
  /** The greatest limits. */
  readonly max: Quantities;
}

/** An amount of each resource, as Kubernetes writes quantities. */
export type Quantities = Readonly<Record<'cpu' | 'memory', string>>;

/** Props of {@link NamespaceGuardrails}. */
export interface NamespaceGuardrailsProps extends GuardrailNumbers {
  /** The namespace; it must exist already. */
  readonly namespace: string;
  /** Further labels of both objects. @default none */
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * The ResourceQuota and the LimitRange of a namespace. The quota makes requests and limits of cpu and memory
 * mandatory, and the LimitRange fills in those that a pod leaves out.
 *
 * Caveats: a quota rejects pods, not Deployments: the Deployment reports it in its condition
 * `ReplicaFailure`.
 * Errors: TypeError when a number is no quantity, or the API server would reject the LimitRange.
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
      spec: { hard: quantities(defaultQuota, props.quota) },
    });
    const limits = (group: keyof ContainerLimits): Record<string, k8s.Quantity> =>
      quantities(defaultContainerLimits[group], props.containers?.[group]);
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

/** Name of the ResourceQuota. */
const RESOURCE_QUOTA_NAME = 'default-resource-quota';
/** Name of the LimitRange. */
const LIMIT_RANGE_NAME = 'default-limit-range';

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

function quantities<R extends string>(
  defaults: Readonly<Record<R, string>>,
  numbers: Numbers<R> | undefined,
): Record<string, k8s.Quantity> {
  return Object.fromEntries(
    Object.entries<string>(defaults).map(([resource, fallback]) => [
      resource,
      k8s.Quantity.fromString(String(numbers?.[resource as R] ?? fallback)),
    ]),
  );
}

/** What is wrong with the chosen numbers. Checks types as well, since the numbers may come from YAML. */
export function guardrailProblems({ quota, containers }: GuardrailNumbers): readonly Problem[] {
  const groups = isObject(containers) ? containers : {};
  return [
    ...fieldProblems('quota', quota, Object.keys(defaultQuota), quantityProblems),
    ...fieldProblems('containers', containers, ascending, (path, group) =>
      fieldProblems(path, group, ['cpu', 'memory'], quantityProblems),
    ),
    ...(['cpu', 'memory'] as const).flatMap((resource) => limitOrderProblems(groups, resource)),
  ];
}

/** The problems of an object's fields, none of which is required. */
function fieldProblems(
  path: string,
  object: unknown,
  fields: readonly string[],
  problemsOf: (path: string, value: unknown) => readonly Problem[],
): readonly Problem[] {
  if (object === undefined) return [];
  if (!isObject(object)) return [{ path, message: `it must be an object of ${fields.join(', ')}` }];
  const given = fields.filter((field) => object[field] !== undefined);
  return [
    ...unknownFieldProblems(path, object, fields),
    ...given.flatMap((field) => problemsOf(childPath(path, field), object[field])),
  ];
}

/** The fields of an object that are not among the known ones. */
export function unknownFieldProblems(path: string, object: object, known: readonly string[]): readonly Problem[] {
  const message = `is no field of it; it has ${known.join(', ')}`;
  const unknown = Object.keys(object).filter((field) => !known.includes(field));
  return unknown.map((field) => ({ path: childPath(path, field), message, remedy: 'remove' }));
}

function quantityProblems(path: string, value: unknown): readonly Problem[] {
  if (typeof value !== 'string' && typeof value !== 'number') {
    return [{ path, message: 'it must be a quantity, such as 2, 400m or 8Gi' }];
  }
  if (isQuantity(String(value)) && quantityToNumber(String(value)) >= 0) return [];
  return [{ path, message: `"${value}" is no quantity of 0 or more; write 2, 400m or 8Gi` }];
}

/** From the least to the greatest, as the API server requires. Source: kubernetes, `ValidateLimitRange`. */
const ascending = ['defaultRequest', 'default', 'max'] as const;

/** A number left out keeps its default, which may not fit the chosen ones. */
function limitOrderProblems(
  containers: NonNullable<GuardrailNumbers['containers']>,
  resource: keyof Quantities,
): readonly Problem[] {
  const numbers = ascending.map((group) => ({
    group,
    value: String(containers[group]?.[resource] ?? defaultContainerLimits[group][resource]),
    chosen: containers[group]?.[resource] !== undefined,
  }));
  if (numbers.some(({ value }) => quantityProblems('', value).length > 0)) return [];
  const ordered = numbers.every(({ value }, i) => compareQuantities(numbers[i - 1]?.value ?? value, value) <= 0);
  if (ordered) return [];
  const told = numbers.map(({ group, value, chosen }) => `${group} ${value}${chosen ? '' : ' (left out)'}`).join(', ');
  // The defaults ascend, so at least one number was chosen.
  const at = numbers.findLast(({ chosen }) => chosen)?.group ?? 'max';
  const message = `the API server refuses such a LimitRange: ${told}; none may be more than the next, and what is left out keeps its default`;
  return [{ path: `containers.${at}.${resource}`, message }];
}
