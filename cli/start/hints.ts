import { DEFAULT_NAMESPACE } from '../../constructs/platform';

/** What the hints speak of. */
export interface HintsOptions {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly samples: boolean;
  readonly metricsPort: number;
  readonly logFile: string;
  /** Log of the provisioner. @default it does not run */
  readonly provisioner?: string | undefined;
}

/** How to go on once everything is Ready. */
export function hints({ kubeconfig, namespace, samples, metricsPort, logFile, provisioner }: HintsOptions): string {
  const n = `kubectl -n ${namespace}`;
  const tries = [
    [`kubectl get kindred -A`, 'every object of every kind'],
    ...(samples
      ? [
          [`${n} scale helloapp/helloapp-sample --replicas=3`, 'the Deployment follows'],
          [`${n} edit foo/example-foo`, 'another deploymentName replaces the Deployment'],
          [`${n} delete deployment helloapp-sample`, 'it comes back'],
          [`${n} get events.events.k8s.io`, 'what the operator has recorded'],
        ]
      : []),
    [`kubectl -n ${DEFAULT_NAMESPACE} get lease,deployment`, 'the operator'],
  ];
  const width = Math.max(...tries.map(([command = '']) => command.length));
  return [
    '',
    'The control plane stays until Ctrl-C. In another terminal:',
    '',
    `  export KUBECONFIG=${kubeconfig}`,
    ...tries.map(([command = '', what = '']) => `  ${command.padEnd(width)}  # ${what}`),
    '',
    `Metrics of the operator: http://127.0.0.1:${metricsPort}/metrics`,
    `Log of the operator:     ${logFile}`,
    ...(provisioner === undefined ? [] : [`Log of the provisioner:  ${provisioner}`]),
    '',
  ].join('\n');
}
