import { k8s } from 'cdk8s-plus-27';
import type { Construct } from 'constructs';
import { operatorSelector } from './labels';
import { WEBHOOK_PORT_NAME, webhookServiceName } from './webhook';

/**
 * The Service that the API server finds the webhook by.
 *
 * It leads to pods that are not ready, too: a pod is ready when its caches are filled, and to fill them the API server may have to ask
 * this very webhook to convert what is stored in an old version. Else none would ever become ready.
 */
export function addWebhookService(scope: Construct, name: string, metadata: k8s.ObjectMeta): void {
  new k8s.KubeService(scope, 'webhook-service', {
    metadata: { ...metadata, name: webhookServiceName(name) },
    spec: {
      type: 'ClusterIP',
      publishNotReadyAddresses: true,
      selector: operatorSelector(name),
      ports: [
        {
          name: WEBHOOK_PORT_NAME,
          port: 443,
          targetPort: k8s.IntOrString.fromString(WEBHOOK_PORT_NAME),
          protocol: 'TCP',
        },
      ],
    },
  });
}

/** Who may reach the webhook: everybody, since the address of the API server is the cluster's secret. */
export function webhookIngress(): k8s.NetworkPolicyIngressRule {
  return { ports: [{ port: k8s.IntOrString.fromString(WEBHOOK_PORT_NAME), protocol: 'TCP' }] };
}
