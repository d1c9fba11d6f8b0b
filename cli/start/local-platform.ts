import { App } from 'cdk8s';
import type { AnyKind } from '../../constructs/core/kind';
import type { KubeObject } from '../../constructs/core/kube-object';
import { kinds } from '../../constructs/kinds';
import { DEFAULT_NAMESPACE } from '../../constructs/platform';
import { parseArguments } from '../../operator/src/arguments';
import { version } from '../../package.json';
import { Samples } from '../../scripts/synth/samples';
import { synthPlatform } from '../../scripts/synth/synth-platform';
import { CliError } from '../errors';
import type { SourcedObject } from '../objects/read-objects';

/** Name of the operator's Deployment and ServiceAccount. */
const OPERATOR_NAME = 'kindred-operator';

/** The platform as it is installed where its operator runs out of cluster. */
export interface LocalPlatform {
  readonly namespace: string;
  /** In the order of their dependencies; the Deployments want no pods. */
  readonly objects: readonly KubeObject[];
  readonly serviceAccount: { readonly namespace: string; readonly name: string };
  /** The configuration under which the Pulumi stack installs the same. */
  readonly stackConfig: Readonly<Record<string, unknown>>;
  /** What the Deployment would start the operator with. */
  readonly operatorArgs: readonly string[];
  /** The kinds that this operator runs. */
  readonly kinds: readonly AnyKind[];
}

/**
 * The same objects as `kindred synth` writes, but for one thing: the operator's Deployment has 0 replicas. The pods of the local
 * control plane are pretended, and a pretended operator would look like one that works.
 */
export function localPlatform(samplesNamespace: string): LocalPlatform {
  const objects = synthPlatform(new App(), {
    kinds,
    image: `kindred-operator:${version}`,
    namespace: DEFAULT_NAMESPACE,
    samplesNamespace,
  });
  const operatorArgs = argumentsOf(objects);
  const parsed = parseArguments(operatorArgs, kinds);
  return {
    namespace: DEFAULT_NAMESPACE,
    objects: objects.map(withoutPods),
    stackConfig: { replicas: 0, guardedNamespaces: [{ name: samplesNamespace, create: true }] },
    serviceAccount: { namespace: DEFAULT_NAMESPACE, name: OPERATOR_NAME },
    operatorArgs,
    kinds: parsed === 'help' ? [] : kinds.filter((kind) => parsed.kinds.includes(kind)),
  };
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

function withoutPods(object: KubeObject): KubeObject {
  return isDeployment(object) ? { ...object, spec: { ...object.spec, replicas: 0 } } : object;
}

function argumentsOf(objects: readonly KubeObject[]): readonly string[] {
  const deployment = objects.filter(isDeployment).find(({ metadata }) => metadata.name === OPERATOR_NAME);
  const args = deployment?.spec.template.spec.containers[0]?.args;
  if (args !== undefined) return args;
  throw new CliError(
    `the platform has no Deployment ${OPERATOR_NAME} with arguments; scripts/synth makes it otherwise`,
  );
}
