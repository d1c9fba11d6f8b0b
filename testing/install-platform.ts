import { App } from 'cdk8s';
import { stringify } from 'yaml';
import type { AnyKind } from '../constructs/kind/kind';
import type { KubeObject } from '../constructs/kube/kube-object';
import { Platform, type PlatformOperator } from '../constructs/platform';
import type { ControlPlane } from '../local';
import { kubectlOrThrow } from './kubectl';
import type { GrantedRule } from './index';

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

/**
 * Installs the manifests of the Platform construct as a user does, with kubectl. The Deployment is left out:
 * the operator runs elsewhere.
 */
export async function installPlatform(plane: ControlPlane, operator: PlatformOperator): Promise<InstalledPlatform> {
  const { kinds } = operator;
  const chart = new Platform(new App(), 'kindred', { operators: [operator] });
  const objects = chart.toJson() as KubeObject[];
  const isCrd = ({ kind }: KubeObject): boolean => kind === 'CustomResourceDefinition';
  const deployment = objects.find(({ kind }) => kind === 'Deployment') as DeploymentObject;
  const rest = objects.filter((object) => !isCrd(object) && object !== deployment);
  await apply(plane, objects.filter(isCrd));
  await apply(plane, rest);
  await kubectlOrThrow(plane, ['wait', '--for=condition=Established', 'crd', ...kinds.map(({ crdName }) => crdName)]);
  // The garbage collector discovers new kinds only every 30 seconds.
  await plane.faults.restartControllerManager();
  const { serviceAccountName, containers } = deployment.spec.template.spec;
  const [container] = containers;
  return {
    account: { namespace: deployment.metadata.namespace ?? '', name: serviceAccountName },
    args: container?.args ?? [],
    env: Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value])),
    rules: operatorRulesIn(objects, serviceAccountName),
  };
}

/**
 * Installs the platform on a control plane with components `api`, which has no controller manager to restart.
 */
export async function installWithoutControllers(
  plane: ControlPlane,
  kinds: readonly AnyKind[],
): Promise<InstalledPlatform> {
  return installPlatform(
    {
      ...{ url: plane.url, version: plane.version, dataDir: plane.dataDir, adminKubeconfig: plane.adminKubeconfig },
      nodes: plane.nodes,
      importImage: (archive) => plane.importImage(archive),
      kubeconfigFor: (account, options) => plane.kubeconfigFor(account, options),
      auditLog: () => plane.auditLog(),
      onPartExit: (listener) => plane.onPartExit(listener),
      stop: () => plane.stop(),
      faults: { ...plane.faults, restartControllerManager: () => Promise.resolve() },
    },
    { name: 'operator', image: 'none', kinds },
  );
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

async function apply(plane: ControlPlane, objects: readonly KubeObject[]): Promise<void> {
  const input = objects.map((object) => stringify(object, { aliasDuplicateObjects: false })).join('---\n');
  await kubectlOrThrow(plane, ['apply', '--server-side', '-f', '-'], input);
}
