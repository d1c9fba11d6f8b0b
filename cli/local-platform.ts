import { App } from 'cdk8s';
import type { AnyKind } from '../constructs/kind/kind';
import type { KubeObject } from '../constructs/kube/kube-object';
import { Kubeconfig, allKinds, kinds, provisionerKinds } from '../constructs/kinds';
import { DEFAULT_NAMESPACE, defaultImage } from '../constructs/platform';
import { version } from '../package.json';
import { Samples, synthPlatform } from './synth';
import { CliError } from './errors';
import type { SourcedObject } from './objects';
import type { Program } from './operator-bundle';

/** The name of a program's Deployment and of its ServiceAccount. */
const nameOf = (program: Program): string => `kindred-${program}`;

/** An operator of the platform. */
export interface LocalOperator {
  readonly program: Program;
  readonly serviceAccount: { readonly namespace: string; readonly name: string };
  /** The arguments of its Deployment. */
  readonly args: readonly string[];
}

/** The platform as it is installed on the local control plane. */
export interface LocalPlatform {
  readonly namespace: string;
  /** In the order of their dependencies. */
  readonly objects: readonly KubeObject[];
  /** The operator first. */
  readonly operators: readonly LocalOperator[];
  /** The configuration under which the Pulumi stack installs the same. */
  readonly stackConfig: Readonly<Record<string, unknown>>;
  /** The kinds that these operators run. */
  readonly kinds: readonly AnyKind[];
}

/** Which operators there are, and where they run. */
interface LocalPlatformOptions {
  /** The provisioner too, for Cluster and Kubeconfig. @default false */
  readonly provisioner?: boolean;
  /** The operators run in pods, as their Deployments. @default false: as processes of this machine */
  readonly pods?: boolean;
}

/**
 * The same objects as `kindred synth` writes, except that without pods the Deployments of the operators have 0 replicas: a simulated
 * operator would look like one that works.
 */
export function localPlatform(
  samplesNamespace: string,
  { provisioner: withProvisioner = false, pods = false }: LocalPlatformOptions = {},
): LocalPlatform {
  const provisionerImage = withProvisioner ? defaultImage('provisioner', version) : undefined;
  const objects = synthPlatform(new App(), {
    ...{ kinds, provisionerKinds, provisionerImage, samplesNamespace },
    image: defaultImage('operator', version),
    namespace: DEFAULT_NAMESPACE,
  });
  const programs: readonly Program[] = withProvisioner ? ['operator', 'provisioner'] : ['operator'];
  const operators = programs.map((program) => ({
    program,
    serviceAccount: { namespace: DEFAULT_NAMESPACE, name: nameOf(program) },
    args: argumentsOf(objects, nameOf(program)),
  }));
  return {
    namespace: DEFAULT_NAMESPACE,
    objects: pods ? objects : objects.map(scaledToZero),
    stackConfig: {
      ...(pods ? {} : { replicas: 0 }),
      guardedNamespaces: [{ name: samplesNamespace, create: true }],
      ...(provisionerImage === undefined ? {} : { provisioner: true, provisionerImage }),
    },
    operators,
    kinds: withProvisioner ? allKinds : kinds,
  };
}

/**
 * Samples for the provisioner: a Kubeconfig of this control plane. There is no Cluster, which would need
 * machines.
 *
 * @param kubeconfig - of this control plane
 */
export function provisionerSamples(kubeconfig: string): readonly SourcedObject[] {
  const ref = { namespace: DEFAULT_NAMESPACE, name: 'this-kubeconfig' };
  const { apiVersion, kind } = Kubeconfig;
  const secretRef = { ...ref, key: 'kubeconfig' };
  return [
    { apiVersion: 'v1', kind: 'Secret', metadata: ref, stringData: { kubeconfig } },
    { apiVersion, kind, metadata: { name: 'this' }, spec: { secretRef } },
  ].map((object) => ({ object: object, source: 'sample' }));
}

/** The samples of some kinds. */
export function samplesOf(served: readonly AnyKind[], namespace: string): readonly SourcedObject[] {
  const samples = new Samples(new App(), 'samples', { kinds: served, namespace });
  return (samples.toJson() as KubeObject[]).map((object) => ({ object, source: 'sample' }));
}

interface DeploymentLike extends KubeObject {
  readonly spec: {
    readonly replicas?: number;
    readonly template: { readonly spec: { readonly containers: readonly { readonly args?: readonly string[] }[] } };
  };
}

function isDeployment(object: KubeObject): object is DeploymentLike {
  return object.kind === 'Deployment';
}

function scaledToZero(object: KubeObject): KubeObject {
  return isDeployment(object) ? { ...object, spec: { ...object.spec, replicas: 0 } } : object;
}

function argumentsOf(objects: readonly KubeObject[], name: string): readonly string[] {
  const deployment = objects.filter(isDeployment).find(({ metadata }) => metadata.name === name);
  const args = deployment?.spec.template.spec.containers[0]?.args;
  if (args !== undefined) return args;
  throw new CliError(`the platform has no Deployment ${name} with arguments; cli/synth makes it otherwise`);
}
