import type { Problem } from '../core/errors';
import { compareQuantities, isQuantity, quantityToNumber } from '../core/quantity';

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
      .filter(([, value]) => !isAmount(value))
      .map(([resource, value]) => ({
        path: `${path}.${resource}`,
        message: `"${value}" is no quantity of 0 or more; write 2, 400m or 8Gi`,
      })),
  );
  return [...notQuantities, ...(['cpu', 'memory'] as const).flatMap((resource) => orderProblems(containers, resource))];
}

function isAmount(value: string): boolean {
  return isQuantity(value) && quantityToNumber(value) >= 0;
}

/** From the least to the greatest, as the API server wants them. Source: kubernetes, `ValidateLimitRange`. */
const ascending = ['defaultRequest', 'default', 'max'] as const;

/** What was left out keeps its default, and so may not fit what was chosen. */
function orderProblems(
  containers: NonNullable<GuardrailNumbers['containers']>,
  resource: keyof Quantities,
): readonly Problem[] {
  const numbers = ascending.map((group) => ({
    group,
    value: containers[group]?.[resource] ?? defaultContainerLimits[group][resource],
    chosen: containers[group]?.[resource] !== undefined,
  }));
  if (!numbers.every(({ value }) => isAmount(value))) return [];
  const ordered = numbers.every(({ value }, i) => compareQuantities(numbers[i - 1]?.value ?? value, value) <= 0);
  if (ordered) return [];
  const told = numbers.map(({ group, value, chosen }) => `${group} ${value}${chosen ? '' : ' (left out)'}`).join(', ');
  // The defaults ascend, so that somebody chose one of them.
  const at = numbers.findLast(({ chosen }) => chosen)?.group ?? 'max';
  const message = `the API server refuses such a LimitRange: ${told}; none may be more than the next, and what is left out keeps its default`;
  return [{ path: `containers.${at}.${resource}`, message }];
}
