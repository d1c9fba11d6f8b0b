import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { AnyKind, KindObject, KindSpec } from '../constructs/kind/kind';
import type { KubeObject, ObjectMeta } from '../constructs/kube/kube-object';
import type { ResourceType } from '../constructs/kube/resource-type';
import type { PlatformOperator } from '../constructs/platform';
import { hasMultipleVersions } from '../constructs/operator';
import { startControlPlane, type ControlPlane } from '../local';
import { messageOf } from '../local/assets/errors';
import { CertificateAuthority } from '../local/certificates';
import { loopback } from '../local/ports';
import type { ApiClient, ObjectRef } from '../operator/client/api-client';
import { isPodArgument } from '../operator/arguments';
import type { EffectEngineFactory } from '../operator/operator-options';
import { createLogger } from '../operator/process/logger';
import { LoopbackConversion } from '../operator/webhook/loopback-conversion';
import { FaultProxy, noFault, type Fault } from './fault-proxy/fault-proxy';
import { InProcessOperator } from './in-process-operator';
import { installPlatform, NAMESPACES, type InstalledPlatform, type TestConversion } from './install-platform';
import { kubeconfigClient } from './kubeconfig-client';
import { OperatorAuditLog } from './operator-audit';
import { waitFor, whenChanged, type Watched } from './wait-for';

/** Long enough for a machine that does ten things at once; what is waited for takes a fraction of it. */
const timeoutMs = 60_000;

const ACCOUNTS: ResourceType = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  scope: 'Namespaced',
};

/** An operator that an environment runs. */
interface RunningOperator {
  stop(): Promise<unknown>;
}

/** A control plane with a platform on it, and operators at work under their own account. */
export abstract class OperatorEnvironment<Operator extends RunningOperator> {
  /** With the rights of an administrator. */
  client!: ApiClient;
  platform!: InstalledPlatform;
  /** The operator that was started last. */
  operator!: Operator;
  /** For how long an operator's credentials are good, in seconds: set it before a start that is to work longer than an hour. */
  tokenSeconds = 3600;
  private namespaces = 0;

  constructor(readonly plane: ControlPlane) {}

  /** Installs the platform; the operator is not started. @param conversion - what converts objects of kinds of several versions */
  async install(platformOperator: PlatformOperator, conversion?: TestConversion): Promise<void> {
    this.client = await kubeconfigClient(this.plane.adminKubeconfig);
    const restartControllers = async (): Promise<void> => this.plane.faults.restartControllerManager();
    this.platform = await installPlatform({ client: this.client, restartControllers, conversion }, platformOperator);
  }

  /** Whose requests an operator's are, and where they go; a path. */
  protected async kubeconfig(): Promise<string> {
    return this.plane.kubeconfigFor(this.platform.account, { expirationSeconds: this.tokenSeconds });
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
  async eventually<T>(
    describe: string,
    check: () => T | undefined | Promise<T | undefined>,
    timeout = timeoutMs,
  ): Promise<T> {
    return await waitFor(check, { describe, timeout });
  }
}

function withoutManagedFields(key: string, value: unknown): unknown {
  return key === 'managedFields' ? undefined : value;
}

/** What a {@link TestEnvironment} consists of. */
export interface TestEnvironmentOptions {
  /** At least one. */
  readonly kinds: readonly AnyKind[];
  /** Executes the effects of the kinds: `runPlans({...})` of kindred/operator. @default none: kinds that have effects are refused */
  readonly effects?: EffectEngineFactory;
  /** How the operator is installed and run: further rules, namespaces, and so on. @default as the Platform construct does it */
  readonly operator?: Partial<Omit<PlatformOperator, 'kinds'>>;
  /** Puts a proxy between the operator and the API server, by which `setFault` works. @default false */
  readonly faults?: boolean;
  /** Receives lines about the start. The first one on a machine builds or downloads the parts, which takes minutes. @default nothing is printed */
  readonly onProgress?: (line: string) => void;
}

/**
 * A Kubernetes control plane of real parts with your kinds on it, and their operator at work, for tests with any test runner.
 *
 * The API server, etcd, the controllers (so owned objects are collected) and the scheduler are real; a simulated node runs every pod. The
 * operator runs in this process, so that a debugger and a coverage tool see it, but with a token of its own ServiceAccount and the
 * permissions that were derived for it. It takes part in no leader election, so that a breakpoint and a fault may last.
 *
 * @example
 * const env = await TestEnvironment.start({ kinds: [Website] });
 * const site = await env.createOfKind(Website, { name: 'mine', namespace: await env.namespace() }, { page: 'hi' });
 * await env.waitUntil(owned.Deployment, site.metadata, 'to exist', () => true);
 * await env.stop();
 */
export class TestEnvironment extends OperatorEnvironment<InProcessOperator> {
  override tokenSeconds = 7 * 24 * 3600;
  private proxy: FaultProxy | undefined;
  private conversion: TestConversion | undefined;
  private readonly running: InProcessOperator[] = [];

  private constructor(
    plane: ControlPlane,
    private readonly options: TestEnvironmentOptions,
  ) {
    super(plane);
  }

  /**
   * Starts it; resolves when the operator reconciles.
   *
   * @throws LocalControlPlaneError when a part of the control plane cannot be obtained or does not start; InvalidPropsError for
   *   settings of the operator that are not valid; StartupError for kinds that it cannot run. Nothing is left running then.
   */
  static async start(options: TestEnvironmentOptions): Promise<TestEnvironment> {
    const { kinds, onProgress = () => undefined } = options;
    const plane = await startControlPlane({ components: 'full', onProgress });
    const env = new TestEnvironment(plane, options);
    try {
      if (options.faults === true) env.proxy = await FaultProxy.start(plane.adminKubeconfig);
      if (kinds.some(hasMultipleVersions)) env.conversion = await env.startConversion();
      await env.install({ name: 'operator', image: 'none', ...options.operator, kinds }, env.conversion);
      await env.startOperator();
      return env;
    } catch (error) {
      await env.stop();
      throw error;
    }
  }

  /** Not in the operator: it can be stopped, and what is stored in another version must be readable then too. */
  private async startConversion(): Promise<TestConversion> {
    const authority = new CertificateAuthority('kindred-testing');
    // In the operator's log, where it would be in a cluster.
    const write = (line: string): void => {
      const operator = this.operator as InProcessOperator | undefined;
      if (operator === undefined) this.options.onProgress?.(line.trimEnd());
      else operator.log.push(line);
    };
    const webhook = await LoopbackConversion.start({
      kinds: this.options.kinds,
      certificate: authority.server('kindred-webhook', [loopback]),
      folder: path.join(this.plane.dataDir, 'conversion'),
      logger: createLogger({ destination: { write } }),
    });
    return { authority, webhook };
  }

  /** Where files lie that objects of kinds with effects may name. A test writes them; they are removed by `stop`. */
  get configDir(): string {
    return path.join(this.plane.dataDir, 'operator-config');
  }

  /** Starts an operator after `operator.stop()`; resolves when it reconciles. */
  async startOperator(args: readonly string[] = []): Promise<InProcessOperator> {
    const { kinds, effects } = this.options;
    const { account, args: platformArgs } = this.platform;
    const own = platformArgs.filter((arg) => !isPodArgument(arg));
    if (effects !== undefined) {
      await mkdir(this.configDir, { recursive: true, mode: 0o700 });
      // Steps under way that do not end must not keep a test from ending.
      own.push(`--config-dir=${this.configDir}`, '--drain-seconds=5');
    }
    this.operator = await InProcessOperator.start({
      ...{ kinds, effects, namespace: account.namespace, kubeconfig: await this.kubeconfig() },
      args: [...own, ...args],
    });
    this.running.push(this.operator);
    return this.operator;
  }

  protected override async kubeconfig(): Promise<string> {
    const direct = await super.kubeconfig();
    return this.proxy === undefined ? direct : this.proxy.kubeconfig(direct);
  }

  /**
   * What befalls the operator's requests from now on: one of `faults`, or a function of yours. The test's own requests are not affected.
   *
   * @throws Error without the option `faults`
   */
  setFault(fault: Fault): void {
    if (this.proxy === undefined) throw new Error('there is no proxy: start the environment with `faults: true`');
    this.proxy.fault = fault;
  }

  /** Ends the fault. Requests that are held, and watches that are silent, end with their connections. */
  clearFault(): void {
    this.setFault(noFault);
    this.proxy?.dropConnections();
  }

  /**
   * What the audit log of the API server proves of the operator's permissions until now: requests that were refused, and resources that
   * it may change and has not. Both should be empty when tests have exercised all that the kinds do.
   */
  async permissions(): Promise<{ readonly refused: readonly string[]; readonly unused: readonly string[] }> {
    const log = await this.auditLog();
    return { refused: log.refusals(), unused: log.unchangedResources(this.platform.rules) };
  }

  override async whenChanged<T>(
    describe: string,
    watched: readonly Watched[],
    check: () => Promise<T | undefined>,
  ): Promise<T> {
    return this.explained(super.whenChanged(describe, watched, check));
  }

  override async eventually<T>(
    describe: string,
    check: () => T | undefined | Promise<T | undefined>,
    timeout?: number,
  ): Promise<T> {
    return this.explained(super.eventually(describe, check, timeout));
  }

  private async explained<T>(waiting: Promise<T>): Promise<T> {
    try {
      return await waiting;
    } catch (error) {
      const { failure } = this.operator;
      if (failure === undefined) throw error;
      throw new Error(`${messageOf(error)}\n${failure}`, { cause: error });
    }
  }

  /** Ends operators and control plane, and removes what they have written. @throws what an operator has ended with by itself */
  async stop(): Promise<void> {
    if (this.proxy !== undefined) this.clearFault();
    this.plane.faults.resumeApiServer();
    const ended = await Promise.allSettled(this.running.map((operator) => operator.stop()));
    try {
      await (this.client as ApiClient | undefined)?.close();
      await this.proxy?.close();
      await this.plane.stop();
    } finally {
      await this.conversion?.webhook.stop();
    }
    const failed = ended.find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}
