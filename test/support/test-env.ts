import type { AnyKind } from '../../constructs/kind/kind';
import { CronTab, DemoMicroService, Foo, HelloApp, MicroServiceDeploy, SampleResource } from '../../constructs/kinds';
import type { PlatformOperator } from '../../constructs/platform';
import type { ApiClient } from '../../operator/client/api-client';
import { leaseType } from '../../operator/leader/lease';
import { OperatorProcess, operatorBundle, type Program } from '../../testing';
import { OperatorEnvironment } from '../../testing/environment';
import { FaultProxy, noFault } from '../../testing/fault-proxy/fault-proxy';
import { kubectl, type KubectlResult } from '../../testing/kubectl';
import { useControlPlane, type TestControlPlane } from './use-control-plane';

/** The kinds that the operator proper runs; the provisioner's are another process's. */
export const operatorKinds: readonly AnyKind[] = [
  HelloApp,
  DemoMicroService,
  MicroServiceDeploy,
  CronTab,
  SampleResource,
  Foo,
];

/** An environment whose operators are Kindred's bundles, each a process of its own. */
export class TestEnv extends OperatorEnvironment<OperatorProcess> {
  private readonly started: OperatorProcess[] = [];

  constructor(
    plane: TestControlPlane,
    readonly program: Program = 'operator',
  ) {
    super(plane);
  }

  override async install(platformOperator: PlatformOperator): Promise<void> {
    await Promise.all([super.install(platformOperator), operatorBundle(this.program)]);
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

  /** Ends every operator and the client. */
  async close(): Promise<void> {
    await Promise.all(this.started.filter(({ running }) => running).map((operator) => operator.kill()));
    // What did not come to be installed has none.
    await (this.client as ApiClient | undefined)?.close();
  }

  kubectl(args: readonly string[], input?: string): Promise<KubectlResult> {
    return kubectl(this.plane, args, input === undefined ? {} : { input });
  }
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
