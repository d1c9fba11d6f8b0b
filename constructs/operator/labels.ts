/** Labels of one operator's objects. Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/ */
export function operatorLabels(name: string): Readonly<Record<string, string>> {
  return {
    ...operatorSelector(name),
    'app.kubernetes.io/component': 'operator',
    'app.kubernetes.io/part-of': 'kindred',
    'app.kubernetes.io/managed-by': PLATFORM_MANAGED_BY,
  };
}

/** What identifies an operator's pods. A Deployment's selector is immutable: never add to this. */
export function operatorSelector(name: string): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': 'kindred-operator', 'app.kubernetes.io/instance': name };
}

/** Sets the platform's own objects apart from the children that the operator manages, whose value is `kindred`. */
export const PLATFORM_MANAGED_BY = 'kindred-platform';

/** Name of the port of `/metrics`, `/healthz` and `/readyz`. */
export const METRICS_PORT_NAME = 'metrics';
