import { App } from 'cdk8s';
import type { KubeObject } from '../constructs/kube/kube-object';
import type { ResourceType } from '../constructs/kube/resource-type';
import { Platform, type PlatformOperator } from '../constructs/platform';
import type { ApiClient } from '../operator/client/api-client';
import { ApiError } from '../operator/client/errors';
import { RestMapper } from '../operator/client/rest-mapper';
import type { CertificateAuthority } from '../local/certificates';
import type { LoopbackConversion } from '../operator/webhook/loopback-conversion';
import type { GrantedRule } from './operator-audit';
import { waitFor } from './wait-for';

/** A platform installed on a control plane, without the pods of its operator. */
export interface InstalledPlatform {
  /** The operator's ServiceAccount. */
  readonly account: { readonly namespace: string; readonly name: string };
  /** The operator's command line, from its Deployment. */
  readonly args: readonly string[];
  /** The operator's environment variables, from its Deployment, such as the size of its heap. */
  readonly env: Readonly<Record<string, string>>;
  /** The rules of its account, from the roles of the chart. */
  readonly rules: readonly GrantedRule[];
}

export const NAMESPACES: ResourceType = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', scope: 'Cluster' };

/** What converts objects for an API server on this machine, and who signed its certificate. */
export interface TestConversion {
  readonly authority: CertificateAuthority;
  readonly webhook: LoopbackConversion;
}

/** On what a platform is installed. */
interface InstallTarget {
  /** An administrator's. */
  readonly client: ApiClient;
  /** Restarts the controllers, so that garbage collection knows the new kinds. @default none run */
  readonly restartControllers?: () => Promise<void>;
  /** Converts the objects of kinds of several versions, for an API server on this machine. @default their CRDs are refused */
  readonly conversion?: TestConversion | undefined;
}

/**
 * Installs the manifests of the Platform construct by server-side apply. The Deployment is left out: the operator runs elsewhere.
 */
export async function installPlatform(
  { client, restartControllers, conversion }: InstallTarget,
  operator: PlatformOperator,
): Promise<InstalledPlatform> {
  const { kinds } = operator;
  const chart = new Platform(new App(), 'kindred', {
    operators: [operator],
    ...(conversion !== undefined && {
      conversion: {
        certSecretName: 'unused',
        caBundle: Buffer.from(conversion.authority.certificate).toString('base64'),
      },
    }),
  });
  const objects = (chart.toJson() as KubeObject[]).map((object) => conversion?.webhook.redirect(object) ?? object);
  const deployment = objects.find(({ kind }) => kind === 'Deployment') as DeploymentObject;
  const types = new RestMapper(client);
  // Such as those of roles in other namespaces.
  const namespaces = new Set(objects.flatMap(({ metadata: { namespace } }) => namespace ?? []));
  for (const name of namespaces) {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    await client.apply(NAMESPACES, namespace, { fieldManager: 'kindred-testing' });
  }
  for (const object of objects) {
    if (object === deployment) continue;
    const type = await types.find(object);
    if (type === undefined) throw new Error(`the API server serves no ${object.kind} of ${object.apiVersion}`);
    await client.apply(type, object, { fieldManager: 'kindred-testing' });
  }
  for (const { type, crdName } of kinds) {
    await waitFor(() => isServed(client, type), { describe: `${crdName} to be served`, interval: 20 });
  }
  // The garbage collector discovers new kinds only every 30 seconds.
  await restartControllers?.();
  const { serviceAccountName, containers } = deployment.spec.template.spec;
  const [container] = containers;
  return {
    account: { namespace: deployment.metadata.namespace ?? '', name: serviceAccountName },
    args: container?.args ?? [],
    env: Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value])),
    rules: operatorRulesIn(objects, serviceAccountName),
  };
}

async function isServed(client: ApiClient, type: ResourceType): Promise<boolean> {
  try {
    await client.list(type, { limit: 1 });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return false;
    throw error;
  }
}

interface DeploymentObject extends KubeObject {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly serviceAccountName: string;
        readonly containers: readonly {
          readonly args: readonly string[];
          readonly env: readonly { readonly name: string; readonly value: string }[];
        }[];
      };
    };
  };
}

/** The rules of every role that is bound to the account. */
function operatorRulesIn(objects: readonly KubeObject[], account: string): readonly GrantedRule[] {
  const bound = objects
    .filter(({ subjects }) => (subjects as { name: string }[] | undefined)?.some(({ name }) => name === account))
    .map(({ roleRef }) => (roleRef as { name: string }).name);
  return objects
    .filter(({ kind, metadata }) => kind.endsWith('Role') && bound.includes(metadata.name))
    .flatMap(({ rules }) => rules as GrantedRule[]);
}
