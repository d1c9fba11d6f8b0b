import type { AnyKind, KindObject, KindSpec } from '../../constructs/kind/kind';
import { CronTab, DemoMicroService, Foo, HelloApp, MicroServiceDeploy, SampleResource } from '../../constructs/kinds';
import type { KubeObject, ObjectMeta } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { PlatformOperator } from '../../constructs/platform';
import type { ApiClient, ObjectRef } from '../../operator/client/api-client';
import { leaseType } from '../../operator/leader/lease';
import { OperatorAuditLog, OperatorProcess, adminClient, operatorBundle, type Program } from '../../testing';
import { useControlPlane, type TestControlPlane } from './use-control-plane';
import { kubectl, type KubectlResult } from '../../testing/kubectl';
import { waitFor, whenChanged, type Watched } from '../../testing/wait-for';
import { FaultProxy, noFault } from '../../testing/fault-proxy/fault-proxy';
import { installPlatform, type InstalledPlatform } from '../../testing/install-platform';

/** Long enough for a machine that does ten things at once; what is waited for takes a fraction of it. */
const timeoutMs = 60_000;

const NAMESPACES: ResourceType = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', scope: 'Cluster' };
const ACCOUNTS: ResourceType = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  scope: 'Namespaced',
};

/** The kinds that the operator proper runs; the provisioner's are another process's. */
export const operatorKinds: readonly AnyKind[] = [
  HelloApp,
  DemoMicroService,
  MicroServiceDeploy,
  CronTab,
  SampleResource,
  Foo,
];

/** A control plane with the platform on it, and the operator at work under its own account. */
export class TestEnv {
  client!: ApiClient;
  platform!: InstalledPlatform;
  /** The operator that was started last. */
  operator!: OperatorProcess;
  private readonly started: OperatorProcess[] = [];
  /** For how long an operator's credentials are good, in seconds: set it before a start that is to work longer than an hour. */
  tokenSeconds = 3600;
  private namespaces = 0;

  constructor(
    readonly plane: TestControlPlane,
    readonly program: Program = 'operator',
  ) {}

  /** Installs the platform; the operator is not started. */
  async install(platformOperator: PlatformOperator): Promise<void> {
    const [platform, client] = await Promise.all([
      installPlatform(this.plane, platformOperator),
      adminClient(this.plane.adminKubeconfig),
      operatorBundle(this.program),
    ]);
    this.platform = platform;
    this.client = client;
  }

  /** Starts an operator, as its Deployment does, with the heap of its pod too; resolves when its health server listens. */
  async start(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<OperatorProcess> {
    const kubeconfig = await this.kubeconfig();
    const operator = await OperatorProcess.start({
      program: this.program,
      kubeconfig,
      args: [...this.platform.args, ...args],
      env: { ...this.platform.env, ...env },
    });
    this.started.push(operator);
    this.operator = operator;
    return operator;
  }

  /** Whose requests an operator's are, and where they go; a path. */
  protected async kubeconfig(): Promise<string> {
    return this.plane.kubeconfigFor(this.platform.account, { expirationSeconds: this.tokenSeconds });
  }

  /** Ends every operator and the client. */
  async close(): Promise<void> {
    await Promise.all(this.started.filter(({ running }) => running).map((operator) => operator.kill()));
    // What did not come to be installed has none.
    await (this.client as ApiClient | undefined)?.close();
  }

  /** What operators have asked of the API server until now. */
  async auditLog(): Promise<OperatorAuditLog> {
    const { namespace, name } = this.platform.account;
    return new OperatorAuditLog(await this.plane.auditLog(), `system:serviceaccount:${namespace}:${name}`);
  }

  /** A new namespace in which pods can be created. */
  async namespace(prefix = 'e2e'): Promise<string> {
    const name = `${prefix}-${String((this.namespaces += 1))}`;
    await this.create(NAMESPACES, { name });
    const account = { namespace: name, name: 'default' };
    await this.whenChanged(`the default account of ${name}`, [{ type: ACCOUNTS, ...account }], () =>
      this.client.get(ACCOUNTS, account),
    );
    return name;
  }

  /** Creates any object. */
  create(type: ResourceType, metadata: ObjectMeta, body: object = {}): Promise<KubeObject> {
    const { apiVersion, kind } = type;
    return this.client.create(type, { apiVersion, kind, metadata, ...body }, { fieldManager: 'e2e' });
  }

  /** Creates an object of a kind. */
  async createOfKind<K extends AnyKind>(kind: K, metadata: ObjectMeta, spec?: KindSpec<K>): Promise<KindObject<K>> {
    return (await this.create(kind.type, metadata, spec === undefined ? {} : { spec })) as KindObject<K>;
  }

  /** Merges something into an object, as a user with kubectl patch. */
  patch(type: ResourceType, ref: ObjectRef, body: object): Promise<KubeObject> {
    return this.client.patch(type, ref, body, { type: 'merge', fieldManager: 'e2e' });
  }

  /** Changes the spec of an object. */
  async patchSpec<K extends AnyKind>(kind: K, ref: ObjectRef, spec: object): Promise<KindObject<K>> {
    return (await this.patch(kind.type, ref, { spec })) as KindObject<K>;
  }

  /** The object as it stands. */
  async get<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef): Promise<T> {
    const object = await this.client.get(type, ref);
    if (object === undefined) throw new Error(`there is no ${type.kind} ${ref.name}`);
    return object as T;
  }

  /** Deletes an object and waits until it is gone. */
  async deleteAndWait(type: ResourceType, ref: ObjectRef): Promise<void> {
    await this.client.delete(type, ref);
    await this.waitUntilGone(type, ref);
  }

  /** Waits until there is no such object. */
  async waitUntilGone(type: ResourceType, ref: ObjectRef): Promise<void> {
    await this.whenChanged(`${type.kind} ${ref.name} to be gone`, [{ type, ...ref }], async () =>
      (await this.client.get(type, ref)) === undefined ? true : undefined,
    );
  }

  /** Waits until an object stands as wanted. */
  async waitUntil<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    describe: string,
    wanted: (object: T) => boolean,
  ): Promise<T> {
    let last: KubeObject | undefined;
    try {
      return await this.whenChanged(`${type.kind} ${ref.name}: ${describe}`, [{ type, ...ref }], async () => {
        last = await this.client.get(type, ref);
        return last !== undefined && wanted(last as T) ? (last as T) : undefined;
      });
    } catch (error) {
      throw new Error(`${String(error)}\nit stands as ${JSON.stringify(last, withoutManagedFields, 1)}`, {
        cause: error,
      });
    }
  }

  /** Waits for what objects of the cluster show: looks at first and after each change of the watched ones. */
  async whenChanged<T>(describe: string, watched: readonly Watched[], check: () => Promise<T | undefined>): Promise<T> {
    return whenChanged(this.client, { watched, describe, timeout: timeoutMs }, check);
  }

  /** Waits for what no watch tells, such as a metric, a log, or a permission that has come into force: looks again and again. */
  async eventually<T>(describe: string, check: () => Promise<T | undefined>, timeout = timeoutMs): Promise<T> {
    return await waitFor(check, { describe, timeout });
  }

  kubectl(args: readonly string[], input?: string): Promise<KubectlResult> {
    return kubectl(this.plane, args, input === undefined ? {} : { input });
  }
}

function withoutManagedFields(key: string, value: unknown): unknown {
  return key === 'managedFields' ? undefined : value;
}

/** An environment whose operators reach the API server through a proxy that can inject faults; all other clients, the tests too, reach it directly. */
export class FaultTestEnv extends TestEnv {
  /** Stands once it is installed. */
  proxy!: FaultProxy;
  private kinds: PlatformOperator['kinds'] = [];

  override async install(platformOperator: PlatformOperator): Promise<void> {
    this.kinds = platformOperator.kinds;
    // First, and by itself: what listens and is known to nobody would keep the process alive when the other fails.
    this.proxy = await FaultProxy.start(this.plane.adminKubeconfig);
    await super.install(platformOperator);
  }

  override async close(): Promise<void> {
    try {
      await super.close();
    } finally {
      await (this.proxy as FaultProxy | undefined)?.close();
    }
  }

  protected override async kubeconfig(): Promise<string> {
    return this.proxy.kubeconfig(await super.kubeconfig());
  }

  /**
   * Ends the faults; requests that are held, or watches that are silent, end with their connections. That an operator gets over silence by
   * itself does not show then: where it is to, the proxy is set to passing only.
   */
  clearFaults(): void {
    this.proxy.fault = noFault;
    this.proxy.dropConnections();
  }

  /**
   * Stops the API server, and restarts the controllers once it serves every kind of this environment again.
   *
   * With leader election a controller manager that is cut off for long ends, and another begins anew. This one has none: its ReplicaSets would
   * wait five minutes for pods whose creation was cut off, its watches would come back when its own backoff is over, and its garbage collector may
   * have missed what happened until then. Source: kubernetes, ExpectationsTimeout in pkg/controller/controller_utils.go.
   *
   * @param away - resolves when the API server is back
   */
  async outage(away: () => Promise<void>): Promise<void> {
    await away();
    // A server that has just started refuses our kinds for a moment, though it says that it is ready.
    await this.eventually('every kind of this environment to be served again', async () => {
      await Promise.all(this.kinds.map(({ type }) => this.client.list(type)));
      return true;
    });
    await this.plane.faults.restartControllerManager();
  }

  /**
   * Deletes the Lease of an operator that was killed, so that the next one need not wait for it to run out. What running out takes is
   * tested by itself.
   */
  async releaseLease(): Promise<void> {
    await this.client.delete(leaseType, this.platform.account);
  }

  /** Kills the operator that was started last and starts another, which leads at once. */
  async crashAndRestart(): Promise<OperatorProcess> {
    await this.operator.kill();
    await this.releaseLease();
    const next = await this.start();
    await next.waitUntilReconciling();
    return next;
  }
}

/** What a test file's environment consists of. */
interface TestEnvOptions {
  /** @default the six kinds */
  readonly kinds?: readonly AnyKind[];
  /** The platform's operator as a whole. @default one of the kinds */
  readonly platformOperator?: PlatformOperator;
  /** The bundle that is run as that operator. @default 'operator' */
  readonly program?: Program;
  /** Done before the platform is installed: namespaces that it expects, say. @default nothing */
  readonly prepare?: (env: TestEnv) => Promise<void>;
  /** @default true */
  readonly operator?: boolean;
  /** More flags for kube-apiserver. @default none */
  readonly apiServerArgs?: readonly string[];
  /** How many nodes run containers: see `ControlPlaneOptions.nodes`. @default 0 */
  readonly nodes?: number;
  /** Put a proxy that can inject faults between the operators and the API server. @default false */
  readonly proxy?: boolean;
}

/** Gives a test file an environment of its own; call it at the top of the file. */
export function useTestEnv(options: TestEnvOptions & { readonly proxy: true }): FaultTestEnv;
export function useTestEnv(options?: TestEnvOptions): TestEnv;
export function useTestEnv(options: TestEnvOptions = {}): TestEnv {
  const plane = useControlPlane({
    components: 'full',
    nodes: options.nodes ?? 0,
    extraApiServerArgs: options.apiServerArgs ?? [],
  });
  const env = new (options.proxy === true ? FaultTestEnv : TestEnv)(plane, options.program);
  beforeAll(async () => {
    const kinds = options.kinds ?? operatorKinds;
    await options.prepare?.(env);
    await env.install(options.platformOperator ?? { name: 'operator', image: 'none', kinds });
    if (options.operator === false) return;
    await env.start();
    await env.operator.waitUntilReconciling();
  }, 180_000);
  afterAll(async () => {
    await env.close();
  });
  return env;
}
