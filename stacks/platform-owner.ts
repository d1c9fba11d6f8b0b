import { AsyncLocalStorage } from 'node:async_hooks';
import * as pulumi from '@pulumi/pulumi';
import { describeObject } from '../constructs/kind/validate';
import type { KubeObject, OwnerReference } from '../constructs/kube/kube-object';
import type { ResourceType } from '../constructs/kube/resource-type';
import { PLATFORM_MANAGED_BY } from '../constructs/operator';
import { kubectlTarget, refOf, uidOf, type ApiClient } from '../operator/client/api-client';
import { createApiClient } from '../operator/client/http-api-client';
import { clusterAccessFromText } from '../operator/client/kubeconfig';
import { RestMapper } from '../operator/client/rest-mapper';
import { KubernetesObject } from './bridge';

const OWNER_TYPE = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' } as const;

/**
 * Name of the resource that an object belongs to. An object that the state has under another name is no
 * leftover: Pulumi would delete it by its name in the cluster, after it has created the new one.
 */
const RESOURCE_ANNOTATION = 'kindred.dev/pulumi-resource';

interface OwnableMetadata {
  readonly annotations?: Readonly<Record<string, pulumi.Input<string>>>;
}

const NAMESPACE = 'kubernetes:core/v1:Namespace';

/** What a {@link PlatformOwner} needs. */
export interface PlatformOwnerArgs {
  /** The provider of the platform's objects. */
  readonly provider: pulumi.ProviderResource;
  /** A minimal kubeconfig of the same cluster. Without one, leftovers are not looked for. */
  readonly kubeconfig: pulumi.Output<string> | undefined;
  /** How long a leftover may take until it is gone, in seconds. */
  readonly timeoutSeconds: number;
  readonly parent: pulumi.Resource;
  readonly retainOnDelete: boolean | undefined;
}

/**
 * Marks what a platform creates as its own, with an owner reference that each object has from the moment of
 * its creation. The owner is a ClusterRole without rules, whose name is a random one of the stack.
 *
 * A run that is killed between the creation of an object and the next write of the state leaves an object that
 * the state does not have. Because of the owner reference:
 * - the next `up` recognizes the object, deletes it and creates it again, where Pulumi would fail because it
 *   exists. An object without the reference is somebody else's: `up` fails and does not touch it;
 * - `destroy`, which runs no program, deletes the owner last, and Kubernetes' garbage collector then deletes
 *   what the state does not have.
 *
 * Objects that are retained on delete have no owner, since they must outlive it; nor have namespaces, since
 * what others have put into one would go with it.
 *
 * Caveat: an owner whose own creation was cut, in a stack that is then destroyed, stays. It permits nothing.
 */
export class PlatformOwner {
  private readonly role: KubernetesObject;
  private readonly chosen = new WeakMap<pulumi.Resource, boolean>();
  private readonly leftovers: LeftoverOptions | undefined;

  constructor(name: string, args: PlatformOwnerArgs) {
    const { provider, kubeconfig, timeoutSeconds, parent, retainOnDelete } = args;
    // Of a stash only the ID is used: Pulumi chooses it at random, and the state has it before the first
    // object exists.
    const { id } = new pulumi.Stash(`${name}-owner-id`, { input: '' }, { parent });
    this.leftovers =
      kubeconfig === undefined ? undefined : { kubeconfig, timeoutSeconds, platform: name, unknown: false };
    this.role = new KubernetesObject(
      `${name}-owner`,
      OWNER_TYPE,
      {
        ...OWNER_TYPE,
        metadata: {
          name: pulumi.interpolate`${name}-owner-${id}`,
          labels: { 'app.kubernetes.io/part-of': 'kindred', 'app.kubernetes.io/managed-by': PLATFORM_MANAGED_BY },
          annotations: {
            'kubernetes.io/description':
              'Owns the objects of a Pulumi stack and permits nothing. Deleting it deletes these objects.',
          },
        },
      },
      // If it is replaced, because of its provider for example, its name stays: the new one must not be deleted in
      // place of the old one.
      {
        ...this.hooks(true),
        provider,
        parent,
        deleteBeforeReplace: true,
        ...(retainOnDelete === undefined ? {} : { retainOnDelete }),
      },
    );
  }

  /**
   * Chooses the objects below a resource to be the owner's.
   *
   * @param blockOwnerDeletion whether `destroy` waits until what the state does not have of them is gone, too
   */
  choose(blockOwnerDeletion: boolean): pulumi.ResourceTransformation {
    return ({ resource }) => {
      this.chosen.set(resource, blockOwnerDeletion);
      return undefined;
    };
  }

  /**
   * Makes the chosen objects the owner's. It has to run after the transformations of users, which may say that
   * an object is retained.
   */
  readonly transformation: pulumi.ResourceTransformation = ({ resource, type, name, props, opts }) => {
    const blockOwnerDeletion = this.chosen.get(resource);
    const { retainOnDelete } = opts as pulumi.CustomResourceOptions;
    if (blockOwnerDeletion === undefined || !(resource instanceof KubernetesObject)) return undefined;
    if (retainOnDelete === true || type === NAMESPACE) return undefined;
    const ownerReferences = this.role.metadata.apply((role) => [
      { ...OWNER_TYPE, name: role.name, uid: role.uid, blockOwnerDeletion },
    ]);
    const own = (metadata: OwnableMetadata): object => ({
      ...metadata,
      annotations: { ...metadata.annotations, [RESOURCE_ANNOTATION]: name },
      ownerReferences,
    });
    const { metadata } = props as { readonly metadata: OwnableMetadata };
    const owned = pulumi.Output.isInstance<OwnableMetadata>(metadata) ? metadata.apply(own) : own(metadata);
    return {
      props: { ...props, metadata: owned },
      opts: {
        ...opts,
        ...this.hooks(false),
        // A replacement must not take the old object for a leftover.
        deleteBeforeReplace: true,
        // The garbage collector deletes the object with the old owner.
        replaceWith: [this.role],
      },
    };
  };

  private hooks(isOwner: boolean): Pick<pulumi.CustomResourceOptions, 'hooks'> {
    const { leftovers } = this;
    if (leftovers === undefined || !hasHooks()) return {};
    // The engine calls hooks outside of the program's context, to which the log belongs in an inline program.
    const inContext = AsyncLocalStorage.snapshot();
    return { hooks: { beforeCreate: [(hook) => inContext(removeLeftover, hook, isOwner, leftovers)] } };
  }
}

/** Whether the program runs under an engine that calls hooks: Pulumi's mocks say so, and fail when one is registered. */
function hasHooks(): boolean {
  const monitor = pulumi.runtime.getMonitor() as object | undefined;
  return monitor !== undefined && 'registerResourceHook' in monitor;
}

/** How leftovers are found. */
interface LeftoverOptions {
  readonly kubeconfig: pulumi.Output<string>;
  readonly timeoutSeconds: number;
  /** Name of the platform, for messages. */
  readonly platform: string;
  /** Set when the cluster did not say what there is: it is not asked again for each of dozens of objects. */
  unknown: boolean;
}

/**
 * Runs before an object is created, not in a preview. It deletes an object of that name which this stack has
 * created, and waits until it is gone.
 *
 * If the cluster does not say whether there is one, it only warns: the creation fails anyway if there is.
 *
 * @param isOwner whether the object is the owner itself, whose name nobody else knows
 * @throws Error if the object is somebody else's, or is still there after the time
 */
async function removeLeftover(
  { newInputs }: pulumi.ResourceHookArgs,
  isOwner: boolean,
  options: LeftoverOptions,
): Promise<void> {
  if (options.unknown) return;
  const { platform, timeoutSeconds } = options;
  const wanted = (await valueOf(pulumi.output(newInputs))) as KubeObject;
  const what = describeObject(wanted);
  const kubeconfig = await valueOf(options.kubeconfig);
  const connected = await connect(kubeconfig, wanted).catch((error: unknown) => {
    options.unknown = true;
    void pulumi.log.warn(
      `PlatformComponent ${platform}: it is not known whether an interrupted run has left objects, since the cluster did not say so to this ` +
        `machine: ${reasonOf(error)}`,
    );
  });
  if (connected === undefined) return;
  const { client, type, live } = connected;
  try {
    if (type === undefined || live === undefined) return;
    // One that is being deleted goes by itself, whoever it belongs to.
    if (live.metadata.deletionTimestamp !== undefined) {
      await waitUntilGone(client, type, live, timeoutSeconds);
      return;
    }
    if (!isOwner) assertLeftover(wanted, live, type);
    void pulumi.log.info(
      `PlatformComponent ${platform}: ${what} is from a run that was interrupted. It is deleted and created again`,
    );
    // Nothing depends on an owner whose creation was cut; should something, it is not deleted with it.
    const propagation = isOwner ? 'Orphan' : 'Foreground';
    await client.delete(type, refOf(live), { uid: uidOf(live), propagation });
    await waitUntilGone(client, type, live, timeoutSeconds);
  } finally {
    await client.close();
  }
}

/** How long the cluster may take to answer a request, in milliseconds. */
const REQUEST_TIMEOUT_MS = 15_000;

/** A client, which the caller closes, and the object as it is in the cluster. */
async function connect(
  kubeconfig: string,
  wanted: KubeObject,
): Promise<{ readonly client: ApiClient; readonly type?: ResourceType; readonly live?: KubeObject }> {
  const access = clusterAccessFromText(kubeconfig, 'the kubeconfig');
  const client = createApiClient(access, { timeoutMs: REQUEST_TIMEOUT_MS });
  try {
    const type = await new RestMapper(client).find(wanted);
    const live = type === undefined ? undefined : await client.get(type, refOf(wanted));
    return { client, ...(type === undefined ? {} : { type }), ...(live === undefined ? {} : { live }) };
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** @throws Error if the object is not one that this stack has created for the same resource */
function assertLeftover(wanted: KubeObject, live: KubeObject, type: ResourceType): void {
  const owners = (object: KubeObject): readonly OwnerReference[] => object.metadata.ownerReferences ?? [];
  const what = describeObject(live);
  if (!owners(wanted).some(({ uid }) => owners(live).some((owner) => owner.uid === uid))) {
    throw new Error(
      `${what} exists already, and this stack did not create it. If nothing needs it, ` +
        `\`kubectl delete ${kubectlTarget(type, refOf(live))}\`, and run \`pulumi up\` again`,
    );
  }
  const resource = live.metadata.annotations?.[RESOURCE_ANNOTATION];
  if (resource !== wanted.metadata.annotations?.[RESOURCE_ANNOTATION]) {
    throw new Error(
      `${what} exists already, as the resource ${String(resource)} of this stack. If that resource has another name now, give it its former name as an alias`,
    );
  }
}

/** Why a request failed, without the URL of the server, which may contain credentials. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replaceAll(/\b(https?:\/\/)[^\s/@]*@/g, '$1');
}

/** How often it is looked whether an object is gone, in milliseconds. */
const GONE_INTERVAL_MS = 250;

async function waitUntilGone(
  client: ApiClient,
  type: ResourceType,
  object: KubeObject,
  timeoutSeconds: number,
): Promise<void> {
  const deadline = Date.now() + timeoutSeconds * 1000;
  while ((await client.get(type, refOf(object)))?.metadata.uid === uidOf(object)) {
    if (Date.now() > deadline) {
      throw new Error(
        `${describeObject(object)} is being deleted, and still there after ${timeoutSeconds} s: ` +
          `\`kubectl describe ${kubectlTarget(type, refOf(object))}\` shows what it waits for`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, GONE_INTERVAL_MS));
  }
}

/** The value of an Output that is known: hooks run only once everything is. */
function valueOf<T>(output: pulumi.Output<T>): Promise<T> {
  return new Promise((resolve) => void output.apply(resolve));
}
