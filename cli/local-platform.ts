import { App } from 'cdk8s';
import type { AnyKind } from '../constructs/kind/kind';
import type { KubeObject } from '../constructs/kube/kube-object';
import { hasMultipleVersions, webhookServiceName } from '../constructs/operator';
import { operatorObjectName } from '../constructs/platform/platform-props';
import type { CertificateAuthority } from '../local/certificates';
import { CliError } from './errors';
import type { SourcedObject } from './objects';
import type { Project, ProjectOperator } from './project';
import {
  assertConversion,
  defaultImageOf,
  projectPlatform,
  requiredOperator,
  type ProjectPlatform,
} from './project-platform';
import { Samples, kindsWithSamples, synthPlatform } from './synth';

/** An operator of the platform. */
export interface LocalOperator {
  readonly operator: ProjectOperator;
  readonly serviceAccount: { readonly namespace: string; readonly name: string };
  /** The arguments of its Deployment. */
  readonly args: readonly string[];
  /** Undefined when it takes none. */
  readonly leaseName: string | undefined;
}

/** A project's platform as `kindred dev` installs it. */
export interface LocalPlatform {
  readonly project: Project;
  /** Namespace of the operators. */
  readonly namespace: string;
  readonly samplesNamespace: string;
  /** In the order of their dependencies. */
  readonly objects: readonly KubeObject[];
  /** Those that run; the one whose metrics and log the user is told comes first. */
  readonly operators: readonly LocalOperator[];
  /** The kinds that these operators run. */
  readonly kinds: readonly AnyKind[];
  /** The kinds whose samples are applied. */
  readonly sampledKinds: readonly AnyKind[];
}

/** Which operators there are, and where they run. */
interface LocalPlatformOptions {
  /** Optional operators that run too, by name. */
  readonly operators: readonly string[];
  /** Namespace of the samples. @default that of `kindred synth` */
  readonly samplesNamespace: string | undefined;
  /** Namespace of the operators. @default that of `kindred synth` */
  readonly operatorNamespace?: string | undefined;
  /** The operators run in pods, as their Deployments. Otherwise they are processes of this machine. */
  readonly pods: boolean;
  /** Context of a cluster that exists; undefined: a control plane on this machine. */
  readonly context: string | undefined;
  /** Signs the certificates of conversion webhooks. */
  readonly authority: CertificateAuthority;
}

/**
 * The same objects as `kindred synth` writes, except for the Deployments of the operators. Without pods they have 0 replicas: a simulated
 * operator would look like one that works. In a cluster that exists they are left as they are, and no namespace there gets guardrails:
 * its pods may be others' too.
 *
 * @throws UsageError for an operator that the project does not have; CliError for kinds of several versions in a cluster that exists
 */
export function localPlatform(project: Project, options: LocalPlatformOptions): LocalPlatform {
  const asked = options.operators.map((name) => requiredOperator(project, name));
  const platform = projectPlatform(project, {
    images: asked.map((operator) => `${operator.name}=${defaultImageOf(project, operator)}`),
    ...{ configSecret: undefined, configFiles: undefined, certManager: false },
    namespace: options.operatorNamespace,
    samplesNamespace: options.samplesNamespace,
  });
  if (options.context !== undefined) assertConversion(platform, options.context);
  const { authority } = options;
  const conversion = { certSecretName: CERT_SECRET, caBundle: base64(authority.certificate) };
  const objects = synthPlatform(new App(), platform, conversion);
  const { namespace, samplesNamespace } = platform;
  const installed = platform.operators.filter(({ isInstalled }) => isInstalled).map(({ operator }) => operator);
  return {
    ...{ project, namespace, samplesNamespace },
    objects: objectsFor(objects, platform, options),
    operators: installed.map((operator) => {
      const name = operatorObjectName(operator);
      const args = argumentsOf(objects, name);
      const leaseName = args.find((arg) => arg.startsWith('--lease-name='))?.replace('--lease-name=', '');
      return { operator, serviceAccount: { namespace, name }, args, leaseName };
    }),
    kinds: installed.flatMap(({ kinds }) => kinds),
    sampledKinds: kindsWithSamples(platform),
  };
}

/**
 * The samples of a platform, with those that its operators have for a local control plane.
 *
 * @param kubeconfig - an administrator's, as text; undefined: it is no local control plane
 */
export function localSamples(
  { sampledKinds, samplesNamespace, operators, namespace }: LocalPlatform,
  kubeconfig: string | undefined,
): readonly SourcedObject[] {
  const samples = new Samples(new App(), 'samples', { kinds: sampledKinds, namespace: samplesNamespace });
  const further =
    kubeconfig === undefined
      ? []
      : operators.flatMap(({ operator }) => operator.localSamples?.({ kubeconfig, namespace }) ?? []);
  return [...(samples.toJson() as KubeObject[]), ...further].map((object) => ({ object, source: 'sample' }));
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

/** The objects of a platform that are for the cluster that the options name. */
function objectsFor(
  objects: readonly KubeObject[],
  platform: ProjectPlatform,
  options: LocalPlatformOptions,
): readonly KubeObject[] {
  if (options.context !== undefined) return objects.filter((object) => !isLeftOut(object, platform, options));
  return options.pods ? withCertificate(objects, platform, options) : objects.map(scaledToZero);
}

/** The Secret of the conversion webhooks' certificate, which pods mount. */
const CERT_SECRET = 'kindred-dev-webhook-tls';

/** The objects, and before the Deployments the certificate that their pods wait for, if an operator converts anything. */
function withCertificate(
  objects: readonly KubeObject[],
  { namespace, operators }: Pick<ProjectPlatform, 'namespace' | 'operators'>,
  { authority }: LocalPlatformOptions,
): readonly KubeObject[] {
  const converting = operators.filter(
    ({ operator, isInstalled }) => isInstalled && operator.kinds.some(hasMultipleVersions),
  );
  if (converting.length === 0) return objects;
  const hosts = converting.map(
    ({ operator }) => `${webhookServiceName(operatorObjectName(operator))}.${namespace}.svc`,
  );
  const { certificate, key } = authority.server('kindred-webhook', hosts);
  const secret: KubeObject = {
    ...{ apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/tls', metadata: { name: CERT_SECRET, namespace } },
    data: { 'tls.crt': base64(certificate), 'tls.key': base64(key) },
  };
  const first = objects.findIndex(isDeployment);
  return [...objects.slice(0, first), secret, ...objects.slice(first)];
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** Whether an object of the platform is not for a cluster that exists. A namespace that the user has named is there already. */
function isLeftOut(
  { kind, metadata }: KubeObject,
  platform: { readonly samplesNamespace: string },
  given: LocalPlatformOptions,
): boolean {
  if (kind === 'Namespace') return given.samplesNamespace !== undefined && metadata.name === platform.samplesNamespace;
  return kind === 'Deployment' || kind === 'ResourceQuota' || kind === 'LimitRange';
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
