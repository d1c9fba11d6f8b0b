import { operatorDefaults } from './operator-props';
import type { OperatorDeploymentProps } from './operator-props';
import { webhookArgs } from './webhook';

/** The props that the operator's command line follows from. */
export type OperatorArgsProps = Pick<
  OperatorDeploymentProps,
  'name' | 'namespace' | 'kinds' | 'watchNamespaces' | 'leaseName' | 'metricsPort' | 'logLevel' | 'args' | 'conversion'
>;

/** The name of an operator's Lease. */
export function leaseNameOf(props: Pick<OperatorDeploymentProps, 'name' | 'leaseName'>): string {
  return props.leaseName ?? props.name;
}

/**
 * The arguments of `kindred-operator`, the image's entrypoint.
 *
 * Leader election is always on: even a single replica has a successor beside it while it is rolled. Kinds and namespaces are sorted,
 * so that their order in the props never rolls a pod.
 */
export function operatorArgs(props: OperatorArgsProps): readonly string[] {
  const { namespace, watchNamespaces, metricsPort, logLevel, args = [] } = props;
  return [
    `--kinds=${sorted(props.kinds.map(({ crdName }) => crdName)).join()}`,
    ...(watchNamespaces === undefined ? [] : [`--namespaces=${sorted(watchNamespaces).join()}`]),
    '--leader-elect',
    `--lease-name=${leaseNameOf(props)}`,
    `--lease-namespace=${namespace}`,
    `--metrics-port=${metricsPort ?? operatorDefaults.metricsPort}`,
    `--log-level=${logLevel ?? operatorDefaults.logLevel}`,
    ...webhookArgs(props),
    ...args,
  ];
}

function sorted(values: readonly string[]): readonly string[] {
  return [...values].sort();
}
