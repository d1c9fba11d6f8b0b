import * as pulumi from '@pulumi/pulumi';
import { ApiObject, App, JsonPatch } from 'cdk8s';
import type { IConstruct } from 'constructs';
import { InvalidPropsError } from '../constructs/operator';
import { Platform, type GuardedNamespace, type PlatformOperator, type PlatformProps } from '../constructs/platform';
import { isDeferred, outputs } from './bridge';

/** An operator of a platform. Its values may be Outputs of other resources. */
export interface PlatformOperatorArgs extends Omit<PlatformOperator, 'image' | 'replicas'> {
  /** Container image whose entrypoint is the operator. Prefer a digest. */
  readonly image: pulumi.Input<string>;
  /** Number of pods, 0 to 10: one leads, the others stand by. @default 2 */
  readonly replicas?: pulumi.Input<number>;
}

/** A namespace with guardrails. Its name may be an Output of another resource. */
export interface GuardedNamespaceArgs extends Omit<GuardedNamespace, 'name'> {
  readonly name: pulumi.Input<string>;
}

/** Arguments of a PlatformComponent: the platform, and the cluster to install it on. */
export interface PlatformComponentArgs extends Omit<PlatformProps, 'guardedNamespaces' | 'namespace' | 'operators'> {
  /**
   * Namespace of the operators. If it is an Output, pass the same one to a provisioner of the platform:
   * `provisioner({ namespace: outputs.text(namespace), ... })`.
   * @default 'kindred-system'
   */
  readonly namespace?: pulumi.Input<string>;
  /** The operators, each with the kinds that it alone runs. At least one. */
  readonly operators: readonly PlatformOperatorArgs[];
  /**
   * Namespaces that get a ResourceQuota and a LimitRange, by name or with numbers of their own. If a name is
   * an Output, the resources of that namespace are named by its place in this list.
   * @default none
   */
  readonly guardedNamespaces?: readonly (pulumi.Input<string> | GuardedNamespaceArgs)[];
  /**
   * Text of the cluster's kubeconfig. Only the cluster and the user of the context are kept, as a secret,
   * with the content of the files that it names by absolute paths.
   * @default the kubeconfig files of the user who runs Pulumi, as kubectl finds them, unless `provider` is
   *   among the options, or the parent has one
   */
  readonly kubeconfig?: pulumi.Input<string>;
  /** Context of the kubeconfig. One that does not exist is an error. @default its current one */
  readonly context?: pulumi.Input<string>;
  /**
   * Identifies the cluster, whatever its kubeconfig says, and without a request to it. Another value means
   * another cluster: everything is created on the new one and removed from the old one. For a cluster that
   * the same program creates, give the cluster's name.
   * @default the UID of the namespace `kube-system`. On another cluster the program then fails, before
   *   anything changes, and says how to move the platform
   */
  readonly clusterIdentifier?: string;
  /**
   * Provider for CRDs and for guarded namespaces that the platform creates, if the options name a `provider`
   * or the parent has one. It must be for the same cluster, with `upsertExistingObjects` and
   * `enablePatchForce`.
   * @default created from `kubeconfig` and `context`
   */
  readonly crdProvider?: pulumi.ProviderResource;
  /**
   * Provider for the operators' namespace, if the options name a `provider` and the namespace is kept. It
   * must be for the same cluster, with `upsertExistingObjects` and `enablePatchForce`: without these, a
   * platform that was destroyed cannot be created again, since its namespace still exists. With another
   * provider than before, Pulumi replaces the namespace: it deletes it, with all that is in it.
   * @default `provider`, or created from `kubeconfig` and `context`
   */
  readonly namespaceProvider?: pulumi.ProviderResource;
  /**
   * How long to wait until each operator is available, or deleted, in seconds.
   * @default 600, which is Pulumi's
   */
  readonly timeoutSeconds?: number;
  /**
   * Whether the operators' namespace stays when the stack is destroyed, and is taken over by the next `up` if
   * it exists. It stays with everything in it: the state of a provisioner, and other people's objects. With
   * false, deleting it deletes all of that, and the first `up` fails if the namespace exists already. A
   * change takes a run of its own, before the one that removes the namespace. Only if the platform creates
   * the namespace.
   * @default true
   */
  readonly keepNamespace?: boolean;
  /** Refuse to delete CRDs. Destroying the stack then fails until it is false. @default false: they stay in the cluster anyway */
  readonly protect?: boolean;
}

/**
 * The arguments as transforms and the state have them: kinds by the names of their CRDs, without the fields
 * that say how the cluster is reached.
 */
export function inputsOf(args: PlatformComponentArgs): pulumi.Inputs {
  const hidden: readonly (keyof PlatformComponentArgs)[] = [
    'kubeconfig',
    'context',
    'crdProvider',
    'namespaceProvider',
  ];
  const shown = Object.entries(args).filter(([key]) => !(hidden as readonly string[]).includes(key));
  const operators = args.operators.map(({ kinds, ...rest }) => ({
    ...rest,
    kinds: kinds.map(({ crdName }) => crdName),
  }));
  return { ...Object.fromEntries(shown), operators };
}

const componentOnlyArgs: readonly (keyof PlatformComponentArgs)[] = [
  'kubeconfig',
  'context',
  'clusterIdentifier',
  'crdProvider',
  'namespaceProvider',
  'keepNamespace',
  'protect',
  'timeoutSeconds',
];

export function buildPlatform(name: string, args: PlatformComponentArgs): Platform {
  const own = Object.entries(args).filter(([key]) => !(componentOnlyArgs as readonly string[]).includes(key));
  const { namespace, guardedNamespaces, operators } = args;
  const platform = new Platform(new App(), name, {
    ...(Object.fromEntries(own) as Omit<PlatformProps, 'guardedNamespaces' | 'namespace' | 'operators'>),
    ...(namespace === undefined ? {} : { namespace: outputs.text(namespace, { id: `${name}#namespace` }) }),
    ...(guardedNamespaces === undefined
      ? {}
      : {
          guardedNamespaces: guardedNamespaces.map((entry, i) =>
            withNamespaceToken(entry, `${name}#guardedNamespaces[${i}]`),
          ),
        }),
    operators: operators.map(({ replicas, ...operator }) => ({
      ...operator,
      ...(typeof replicas === 'number' ? { replicas } : {}),
      image: outputs.text(operator.image, { id: `${name}#${operator.name}/image` }),
    })),
  });
  for (const { name: operator, replicas } of operators) {
    if (replicas === undefined || typeof replicas === 'number') continue;
    const checked = pulumi.output(replicas).apply((value) => replicasOf(name, operator, value));
    const token = outputs.number(checked, { id: `${name}#${operator}/replicas` });
    const deployment = apiObjectsIn(platform.node.findChild('operators')).find(
      ({ kind, node }) => kind === 'Deployment' && node.scopes.some(({ node: { id } }) => id === operator),
    );
    if (deployment === undefined) throw new TypeError(`the platform has no Deployment of the operator ${operator}`);
    // The construct checks the number, so it takes no token.
    deployment.addJsonPatch(JsonPatch.replace('/spec/replicas', token));
  }
  return platform;
}

function withNamespaceToken(entry: pulumi.Input<string> | GuardedNamespaceArgs, id: string): string | GuardedNamespace {
  if (typeof entry === 'string' || isDeferred(entry)) return outputs.text(entry, { id });
  return { ...entry, name: outputs.text(entry.name, { id }) };
}

/** Checks a number that is known later as the construct checks a plain one. */
function replicasOf(platform: string, operator: string, value: number): number {
  if (Number.isInteger(value) && value >= 0 && value <= 10) return value;
  const message = `${value} must be an integer from 0 to 10`;
  throw new InvalidPropsError(`PlatformComponent ${platform}`, [{ path: `operator ${operator}: replicas`, message }]);
}

/** @throws TypeError when `keepNamespace` is set and the platform does not create the namespace */
export function shouldKeepNamespace(name: string, { keepNamespace, createNamespace }: PlatformComponentArgs): boolean {
  if (createNamespace === false && keepNamespace !== undefined) {
    throw new TypeError(
      `PlatformComponent ${name}: keepNamespace says what becomes of a namespace that the platform creates; leave it out with createNamespace: false`,
    );
  }
  return keepNamespace ?? true;
}

/** All objects of a tree of constructs. */
export function apiObjectsIn(construct: IConstruct): readonly ApiObject[] {
  return construct.node.findAll().filter((part): part is ApiObject => ApiObject.isApiObject(part));
}
