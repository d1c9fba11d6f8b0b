import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { kinds } from '../constructs/kinds';
import type { KubeObject } from '../constructs/kube/kube-object';
import { typeKey } from '../constructs/kube/resource-type';
import { DEFAULT_NAMESPACE } from '../constructs/platform';
import { serverImage, startControlPlane, type ControlPlane } from '../local';
import { duration } from '../local/assets/progress';
import { describeExit } from '../local/guarded-process';
import { requireFree } from '../local/ports';
import type { ApiClient } from '../operator/client/api-client';
import { createApiClient } from '../operator/client/http-api-client';
import { loadClusterAccess } from '../operator/client/kubeconfig';
import { RestMapper } from '../operator/client/rest-mapper';
import type { StartArguments } from './start-arguments';
import { ObjectWatcher, waitUntilReady } from './object-watcher';
import { CliError, InterruptedError } from './errors';
import { installPlatform } from './install-platform';
import { localPlatform, provisionerSamples, samplesOf, type LocalOperator, type LocalPlatform } from './local-platform';
import { applyObjects, readObjects, type SourcedObject } from './objects';
import { operatorBundle } from './operator-bundle';
import { OperatorProcess } from './operator-process';
import { preparePods, waitForDeployment } from './pods';
import { checkoutFolder, findPulumi, installByPulumi } from './pulumi';
import { SignalHandler, CleanupStack } from './shutdown';
import { createView, type View } from './view';

/** The state of one `kindred start`. */
interface Session {
  readonly args: StartArguments;
  readonly platform: LocalPlatform;
  readonly view: View;
  readonly undo: CleanupStack;
  readonly signal: AbortSignal;
}

/**
 * `kindred start`: control plane, platform, operator, objects.
 *
 * Guarantees: nothing that it started outlives it, and its data directory is removed, however it ends.
 *
 * @throws CliError, LocalControlPlaneError for what the user can correct; InterruptedError when the user
 *   ended it before all objects were Ready
 */
export async function start(args: StartArguments): Promise<void> {
  operatorBundle();
  if (args.provisioner) operatorBundle('provisioner');
  if (args.metricsPort !== 0) await requireFree(args.metricsPort);
  const own = await readObjects(args.files);
  const platform = localPlatform(args.namespace, args);
  const interruption = new SignalHandler();
  const undo = new CleanupStack();
  const view = createView(process.stdout);
  const samples = args.samples ? samplesOf(kinds, args.namespace) : [];
  try {
    await run({ args, platform, view, undo, signal: interruption.signal }, own, samples);
  } catch (error) {
    // An interruption causes all kinds of errors, none of which matters.
    throw interruption.signal.aborted ? interruption.signal.reason : error;
  } finally {
    view.end();
    if (interruption.signal.aborted)
      view.print('Stopping: first the operator, then the control plane. Ctrl-C ends it at once.');
    await undo.run();
    interruption.dispose();
  }
}

async function run(session: Session, own: readonly SourcedObject[], samples: readonly SourcedObject[]): Promise<void> {
  const { args, view, undo, platform, signal } = session;
  const plane = await startPlane(session);
  const failed = rejectOnPartExit(plane);
  const client = createApiClient(loadClusterAccess({ path: plane.adminKubeconfig }));
  undo.add('close connections', () => client.close());
  if (args.pods) await Promise.race([preparePods(plane, client, signal), failed]);
  await Promise.race([install(session, plane, client), failed]);
  if (args.pods) await Promise.race([waitForOperatorPods(session, client), failed]);
  const processes = args.pods ? [] : await startOperators(session, plane);
  const [operator, provisioner] = processes;
  const trouble = Promise.race([failed, ...processes.map(({ unexpectedExit }) => unexpectedExit)]);
  trouble.catch(() => undefined);

  const board = new ObjectWatcher(client, platform.kinds);
  undo.add('end watches', () => board.stop());
  await Promise.race([board.start(), trouble, rejectOnAbort(signal)]);
  board.onChange((rows) => view.show(rows));
  const showsProvisioner = args.provisioner && args.samples;
  const more = showsProvisioner ? provisionerSamples(await readFile(plane.adminKubeconfig, 'utf8')) : [];
  const applied = await Promise.race([applyAll(session, client, [own, [...samples, ...more]]), trouble]);
  await Promise.race([untilReady(session, board, applied), trouble]);
  view.show(board.rows());
  if (args.once) return;
  const { namespace, pods } = args;
  view.print(
    nextSteps({
      ...{ kubeconfig: plane.adminKubeconfig, namespace, samples: args.samples, pods },
      operator,
      provisioner: provisioner?.logFile,
    }),
  );
  await Promise.race([rejectOnAbort(signal).catch(() => undefined), trouble]);
}

async function startPlane({ args, view, undo, signal }: Session): Promise<ControlPlane> {
  const plane = await startControlPlane({
    components: 'full',
    nodes: args.pods ? 1 : 0,
    ...(args.port === undefined ? {} : { port: args.port }),
    onProgress: (line) => view.print(line),
    signal,
  });
  undo.add('stop the control plane', () => plane.stop());
  return plane;
}

async function install(session: Session, plane: ControlPlane, client: ApiClient): Promise<void> {
  const { args, platform, view, signal } = session;
  const why = args.installer === 'apply' ? undefined : await installWithPulumi(session, plane);
  if (why === INSTALLED) return;
  const started = Date.now();
  const { objects, namespace } = platform;
  const { applied } = await installPlatform({ client, objects, namespace, signal });
  const crds = applied.filter(({ kind }) => kind === 'CustomResourceDefinition').length;
  const took = duration(Date.now() - started);
  view.print(
    `The platform is installed by server-side apply${why === undefined ? '' : `, since ${why}`}: ` +
      `${applied.length} objects in ${took}, among them ${crds} CRDs, RBAC, and guardrails`,
  );
}

const INSTALLED = Symbol('installed');

/** @returns `INSTALLED`, or why Pulumi could not install it, if another installer may try */
async function installWithPulumi(
  { args, platform, view, signal }: Session,
  { dataDir, adminKubeconfig: kubeconfig }: ControlPlane,
): Promise<string | typeof INSTALLED> {
  const started = Date.now();
  const checkout = checkoutFolder();
  const pulumi = await findPulumi(checkout, signal);
  if ('why' in pulumi) {
    if (args.installer === 'auto') return pulumi.why;
    throw new CliError(`Pulumi cannot install the platform: ${pulumi.why}. Install it, or take --installer=apply.`);
  }
  const folder = path.join(dataDir, 'pulumi');
  let made: number;
  try {
    made = await installByPulumi({ pulumi, checkout, folder, kubeconfig, config: platform.stackConfig, signal });
  } catch (error) {
    if (args.installer !== 'auto' || !(error instanceof CliError)) throw error;
    // The objects that it created stay as they are when they are applied again.
    view.print(error.message);
    return `Pulumi ${pulumi.version} failed`;
  }
  const took = duration(Date.now() - started);
  view.print(
    `The platform is installed by Pulumi ${pulumi.version}: ${made} resources in ${took}, from stacks/index.ts`,
  );
  return INSTALLED;
}

async function waitForOperatorPods({ platform, view, signal }: Session, client: ApiClient): Promise<void> {
  for (const { program, serviceAccount } of platform.operators) {
    // Its Deployment has the same name as its ServiceAccount.
    const count = await waitForDeployment(client, serviceAccount, { signal });
    view.print(
      `The ${program} runs as its Deployment, in ${count} pods on a node of this machine; its image is made of this machine's Node.js.\n` +
        `The containers of all other pods are a small HTTP server, ${serverImage}, instead of their own images.`,
    );
  }
}

async function startOperators(session: Session, plane: ControlPlane): Promise<readonly OperatorProcess[]> {
  const { args, platform, view } = session;
  const [first, second] = platform.operators;
  if (first === undefined) throw new Error('the platform has no operator');
  const port = args.metricsPort === 0 ? undefined : args.metricsPort;
  const logFile = args.logFile ?? path.join(plane.dataDir, 'operator.log');
  const operator = await startOperator(session, plane, first, { port, logFile });
  if (second === undefined) return [operator];
  const folder = path.join(plane.dataDir, 'provisioner');
  const [configDir, keyDir] = [path.join(folder, 'config'), path.join(folder, 'keys')];
  for (const each of [configDir, keyDir]) await mkdir(each, { recursive: true, mode: 0o700 });
  // These directories are mounted in its pod.
  const own = [
    ...second.args.filter((arg) => !/^--(key|config)-dir=/.test(arg)),
    `--key-dir=${keyDir}`,
    `--config-dir=${configDir}`,
  ];
  const provisioner = await startOperator(
    session,
    plane,
    { ...second, args: own },
    {
      port: undefined,
      logFile: path.join(plane.dataDir, 'provisioner.log'),
    },
  );
  view.print(
    'The provisioner reaches machines by SSH from here, and there are none: a Cluster whose machines do not answer says so in Ready, and so\n' +
      `does one whose distribution is rke without a program "rke" on PATH. Files for configPath of a Cluster or Kubeconfig: ${configDir}`,
  );
  return [operator, provisioner];
}

/** Lifetime of the operators' tokens, in seconds. It is longer than a session, since nobody renews them. */
const tokenSeconds = 7 * 24 * 3600;

async function startOperator(
  { args, view, undo, signal }: Session,
  plane: ControlPlane,
  { program, serviceAccount, args: own }: LocalOperator,
  { port, logFile }: { readonly port: number | undefined; readonly logFile: string },
): Promise<OperatorProcess> {
  const kubeconfig = await plane.kubeconfigFor(serviceAccount, { expirationSeconds: tokenSeconds });
  const operator = await OperatorProcess.start({
    program,
    args: [...own, `--kubeconfig=${kubeconfig}`, `--log-level=${args.logLevel}`],
    ...(port === undefined ? {} : { port }),
    logFile,
    folder: plane.dataDir,
    signal,
  });
  undo.add(`stop the ${program}`, () => operator.stop());
  const account = `${serviceAccount.namespace}/${serviceAccount.name}`;
  view.print(
    `The ${program} runs as a process of this machine under the ServiceAccount ${account} and its RBAC alone;\n` +
      `its Deployment is installed with 0 replicas, since pods are only pretended here. Log: ${operator.logFile}`,
  );
  return operator;
}

/**
 * Applies one group after the other. If a group fails, the next ones are not applied.
 *
 * @returns the objects whose readiness counts: those of the kinds that the operator runs
 */
async function applyAll(
  { args, platform, signal }: Session,
  client: ApiClient,
  groups: readonly (readonly SourcedObject[])[],
): Promise<readonly KubeObject[]> {
  const types = new RestMapper(
    client,
    platform.kinds.map(({ type }) => type),
  );
  const applied: KubeObject[] = [];
  for (const objects of groups) {
    applied.push(...(await applyObjects(objects, { client, types, namespace: args.namespace, signal })));
  }
  const run = new Set(platform.kinds.map(typeKey));
  return applied.filter((object) => run.has(typeKey(object)));
}

async function untilReady(
  { args, view, signal }: Session,
  board: ObjectWatcher,
  awaited: readonly KubeObject[],
): Promise<void> {
  const started = Date.now();
  try {
    await waitUntilReady(board, awaited, { timeoutSeconds: args.timeoutSeconds, signal });
    view.show(board.rows());
    view.print(`All ${awaited.length} objects are Ready, ${duration(Date.now() - started)} after they were applied.`);
  } catch (error) {
    if (args.once || !(error instanceof CliError)) throw error;
    // The user can look into it while the control plane runs.
    view.print(error.message);
  }
}

/** Rejects when a part of the control plane ends unexpectedly. */
function rejectOnPartExit(plane: ControlPlane): Promise<never> {
  const failure = new Promise<never>((_, reject) => {
    plane.onPartExit((exit) => {
      const log = path.join(plane.dataDir, `${exit.part}.log`);
      reject(
        new CliError(`the control plane broke down: ${describeExit(exit, log)}\nRun it again; report it if it recurs.`),
      );
    });
  });
  failure.catch(() => undefined);
  return failure;
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  const result = new Promise<never>((_, reject) => {
    const end = (): void => reject(signal.reason instanceof Error ? signal.reason : new InterruptedError('SIGTERM'));
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
  result.catch(() => undefined);
  return result;
}

/** Values for the text of {@link nextSteps}. */
interface NextStepsOptions {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly samples: boolean;
  /** Whether pods are real ones. */
  readonly pods: boolean;
  /** The operator, unless it runs in pods. */
  readonly operator: Pick<OperatorProcess, 'port' | 'logFile'> | undefined;
  /** Log of the provisioner. @default it does not run */
  readonly provisioner?: string | undefined;
}

/** Hints for the user once everything is Ready. */
function nextSteps({ kubeconfig, namespace, samples, pods, operator, provisioner }: NextStepsOptions): string {
  const n = `kubectl -n ${namespace}`;
  const tries = [
    [`kubectl get kindred -A`, 'every object of every kind'],
    ...(samples
      ? [
          [`${n} scale helloapp/helloapp-sample --replicas=3`, 'the Deployment follows'],
          [`${n} edit foo/example-foo`, 'another deploymentName replaces the Deployment'],
          [`${n} delete deployment helloapp-sample`, 'it comes back'],
          [`${n} get events.events.k8s.io`, 'what the operator has recorded'],
        ]
      : []),
    ...(samples && pods
      ? [[`${n} exec deploy/helloapp-sample -- /pod get http://127.0.0.1:8080/`, 'a pod answers'] as const]
      : []),
    [`kubectl -n ${DEFAULT_NAMESPACE} get lease,deployment`, 'the operator'],
  ];
  const width = Math.max(...tries.map(([command = '']) => command.length));
  return [
    '',
    'The control plane stays until Ctrl-C. In another terminal:',
    '',
    `  export KUBECONFIG=${kubeconfig}`,
    ...tries.map(([command = '', what = '']) => `  ${command.padEnd(width)}  # ${what}`),
    '',
    ...(operator === undefined
      ? [
          `Metrics of the operator: kubectl -n ${DEFAULT_NAMESPACE} port-forward service/kindred-operator-metrics 8080`,
          `Log of the operator:     kubectl -n ${DEFAULT_NAMESPACE} logs -f -l app.kubernetes.io/instance=kindred-operator`,
        ]
      : [
          `Metrics of the operator: http://127.0.0.1:${operator.port}/metrics`,
          `Log of the operator:     ${operator.logFile}`,
        ]),
    ...(provisioner === undefined ? [] : [`Log of the provisioner:  ${provisioner}`]),
    '',
  ].join('\n');
}
