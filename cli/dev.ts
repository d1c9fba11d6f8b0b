import path from 'node:path';
import type { AnyKind } from '../constructs/kind/kind';
import type { KubeObject } from '../constructs/kube/kube-object';
import { groupOf } from '../constructs/kube/resource-type';
import { hasMultipleVersions } from '../constructs/operator';
import { serverImage, type ControlPlane } from '../local';
import { duration, progressToTerminal, whileSlow } from '../local/assets/progress';
import { CertificateAuthority } from '../local/certificates';
import { requireFree } from '../local/ports';
import type { ApiClient } from '../operator/client/api-client';
import { RestMapper } from '../operator/client/rest-mapper';
import type { DevArguments } from './dev-arguments';
import { LocalCluster, installOn, type DevCluster } from './dev-cluster';
import { DevOperators, programsOf, type DevSession } from './dev-operators';
import { LiveTable, awaitedRows, waitUntilReady, type RowSource } from './object-watcher';
import { CliError } from './errors';
import { printJson } from './flags';
import { ExistingCluster } from './existing-cluster';
import { localPlatform, localSamples, type LocalPlatform } from './local-platform';
import { applyObjects, readObjects, type SourcedObject } from './objects';
import type { OperatorProcess } from './operator-process';
import { preparePods, waitForDeployment } from './pods';
import { programName, type Project } from './project';
import { defaultImageOf } from './project-platform';
import { findPulumi, installByPulumi } from './pulumi';
import { Reload } from './reload';
import { CleanupStack, SignalHandler, untilAborted } from './shutdown';
import { unrenderedNotices } from './unrendered-types';
import { createView } from './view';

/**
 * `kindred dev`: control plane, platform, operator, objects.
 *
 * Guarantees: nothing that it started outlives it, and its data directory is removed, however it ends.
 *
 * @throws CliError, LocalControlPlaneError for what the user can correct; InterruptedError when the user
 *   ended it before all objects were Ready
 */
export async function dev(args: DevArguments, project: Project): Promise<void> {
  if (args.metricsPort !== 0) await requireFree(args.metricsPort);
  if (args.inspect !== undefined) await requireFree(args.inspect, 'Name another one: --inspect=PORT');
  const own = await readObjects(args.files);
  const authority = new CertificateAuthority('kindred-dev');
  const platform = localPlatform(project, { ...args, samplesNamespace: args.namespace, authority });
  // What does not compile is said before anything is started.
  const programs = args.pods
    ? []
    : await whileSlow('Compiling the operators', progressToTerminal, () => programsOf(platform));
  const interruption = new SignalHandler();
  const undo = new CleanupStack();
  const view = createView(args.output === 'json' ? process.stderr : process.stdout);
  try {
    await run({ args, platform, authority, programs, view, undo, signal: interruption.signal }, own);
  } catch (error) {
    // An interruption causes all kinds of errors, none of which matters.
    throw interruption.signal.aborted ? interruption.signal.reason : error;
  } finally {
    view.end();
    if (interruption.signal.aborted) {
      const what = args.context === undefined ? 'first the operator, then the control plane' : 'the operator';
      view.print(`Stopping: ${what}. Ctrl-C ends it at once.`);
    }
    await undo.run();
    interruption.dispose();
  }
}

async function run(session: DevSession, own: readonly SourcedObject[]): Promise<void> {
  const { args, programs, view, undo, platform, signal } = session;
  const cluster = await openCluster(session);
  const { client, failed, kubeconfig } = cluster;
  const slow = (what: string, work: Promise<unknown>): Promise<unknown> =>
    whileSlow(
      what,
      (line) => view.print(line),
      () => Promise.race([work, failed]),
    );
  if (args.pods && cluster instanceof LocalCluster)
    await slow(
      "Making the operators' images for the node",
      preparePods(platform, { plane: cluster.plane, client, signal }),
    );
  await slow('Installing the platform', install(session, cluster));
  for (const notice of unrenderedNotices(platform.kinds)) view.print(notice);
  if (args.pods) await slow("Waiting for the operators' pods", waitForOperatorPods(session, client));
  const operators = new DevOperators({ args, cluster, view, signal });
  undo.add('stop the operators', () => operators.stop());
  if (!args.pods) await slow('Starting the operators', operators.start(platform, programs));
  const trouble = Promise.race([failed, operators.trouble]);
  trouble.catch(() => undefined);

  const table = new LiveTable(client, view);
  undo.add('end watches', () => table.stop());
  await Promise.race([table.watch(platform.kinds, signal), trouble]);
  const samples = args.samples ? localSamples(platform, kubeconfig) : [];
  const applied = await Promise.race([applyAll(session, client, [own, samples]), trouble]);
  const reload = args.pods || args.once ? undefined : new Reload({ ...session, cluster, operators, table });
  if (reload !== undefined) undo.add('end watching the sources', () => reload.stop());
  // What keeps an object from getting Ready may be what is mended and saved meanwhile.
  const running = Promise.race([trouble, ...(reload === undefined ? [] : [reload.run()])]);
  running.catch(() => undefined);
  const over = new AbortController();
  try {
    const waiting = { ...session, signal: AbortSignal.any([signal, over.signal]) };
    await Promise.race([untilReady(waiting, table, applied), running]);
  } finally {
    over.abort();
    if (args.output === 'json') printJson({ objects: awaitedRows(applied, table.rows()) });
  }
  table.show();
  if (args.once) return;
  view.print(nextSteps(session, cluster, operators.processes));
  await untilAborted(running, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/** The cluster that the arguments name. In one that exists nothing is changed before it is known that all can be done. */
async function openCluster(session: DevSession): Promise<DevCluster> {
  const { args, platform, view, undo, signal } = session;
  if (args.context === undefined) {
    const local = await LocalCluster.start(session);
    undo.add('stop the control plane', () => local.stop());
    return local;
  }
  const { context, yes } = args;
  const existing = await ExistingCluster.find({ context, yes, print: (line) => view.print(line) }, signal);
  undo.add('close connections', () => existing.stop());
  await existing.assertInstallable(platform, signal);
  await Promise.race([existing.takeLeases(platform, { which: 'existing', signal }), existing.failed]);
  return existing;
}

async function install(session: DevSession, cluster: DevCluster): Promise<void> {
  const { args, platform, view, signal } = session;
  const why =
    args.installer === 'apply' || !(cluster instanceof LocalCluster)
      ? undefined
      : await installWithPulumi(session, cluster.plane);
  if (why === INSTALLED) return;
  const started = Date.now();
  const applied = await installOn(cluster, platform, { view, signal });
  // Before an operator without a Lease is started, too: see --inspect.
  if (cluster instanceof ExistingCluster) await cluster.takeLeases(platform, { which: 'all', signal });
  const crds = applied.filter(({ kind }) => kind === 'CustomResourceDefinition').length;
  const took = duration(Date.now() - started);
  view.print(
    `The platform is installed by server-side apply${why === undefined ? '' : `, since ${why}`}: ` +
      `${applied.length} objects in ${took}, among them ${crds} CRDs, and RBAC`,
  );
}

const INSTALLED = Symbol('installed');

/** @returns `INSTALLED`, or why Pulumi could not install it, if another installer may try */
async function installWithPulumi(
  { args, platform, view, signal }: DevSession,
  { dataDir, adminKubeconfig: kubeconfig }: ControlPlane,
): Promise<string | typeof INSTALLED> {
  const started = Date.now();
  const { project, kinds } = platform;
  const several = kinds.find(hasMultipleVersions);
  const pulumi =
    several === undefined
      ? await findPulumi(project, signal)
      : { why: `the stack has no certificate for the conversions of ${several.kind}` };
  if ('why' in pulumi) {
    if (args.installer === 'auto') return pulumi.why;
    throw new CliError(`Pulumi cannot install the platform: ${pulumi.why}. Install it, or take --installer=apply.`);
  }
  const folder = path.join(dataDir, 'pulumi');
  let made: number;
  try {
    const config = stackConfig(platform, args);
    made = await installByPulumi({ pulumi, checkout: project.root, folder, kubeconfig, config, signal });
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

/** The configuration under which the project's Pulumi stack installs the same: the keys of Kindred's own stack. */
function stackConfig(
  { project, operators, samplesNamespace }: LocalPlatform,
  { pods }: DevArguments,
): Readonly<Record<string, unknown>> {
  const optional = operators.filter(({ operator }) => operator.optional).map(({ operator }) => operator);
  return {
    ...(pods ? {} : { replicas: 0 }),
    guardedNamespaces: [{ name: samplesNamespace, create: true }],
    ...Object.fromEntries(
      optional.flatMap((operator): readonly (readonly [string, unknown])[] => [
        [operator.name, true],
        [`${operator.name}Image`, defaultImageOf(project, operator)],
      ]),
    ),
  };
}

async function waitForOperatorPods({ platform, view, signal }: DevSession, client: ApiClient): Promise<void> {
  for (const { operator, serviceAccount } of platform.operators) {
    // Its Deployment has the same name as its ServiceAccount.
    const count = await waitForDeployment(client, serviceAccount, { signal });
    view.print(
      `The ${programName(platform.project, operator)} runs as its Deployment, in ${count} pods on a node of this machine; its image is made of this machine's Node.js.\n` +
        `The containers of all other pods are a small HTTP server, ${serverImage}, instead of their own images.`,
    );
  }
}

/**
 * Applies one group after the other. If a group fails, the next ones are not applied.
 *
 * @returns the objects whose readiness counts: those of the kinds that the operator runs
 */
async function applyAll(
  { platform, signal }: DevSession,
  client: ApiClient,
  groups: readonly (readonly SourcedObject[])[],
): Promise<readonly KubeObject[]> {
  const types = new RestMapper(
    client,
    platform.kinds.map(({ type }) => type),
  );
  const applied: KubeObject[] = [];
  for (const objects of groups) {
    applied.push(...(await applyObjects(objects, { client, types, namespace: platform.samplesNamespace, signal })));
  }
  // In whatever version they are written.
  return applied.filter((object) =>
    platform.kinds.some(({ kind, group }) => kind === object.kind && group === groupOf(object)),
  );
}

async function untilReady(
  { args, view, signal }: DevSession,
  board: RowSource,
  awaited: readonly KubeObject[],
): Promise<void> {
  const started = Date.now();
  try {
    await whileSlow(
      `Waiting until every object is Ready (${awaited.length})`,
      (line) => view.print(line),
      () => waitUntilReady(board, awaited, { timeoutSeconds: args.timeoutSeconds, signal }),
    );
    view.show(board.rows());
    view.print(`All ${awaited.length} objects are Ready, ${duration(Date.now() - started)} after they were applied.`);
  } catch (error) {
    if (args.once || !(error instanceof CliError)) throw error;
    // The user can look into it while the control plane runs.
    view.print(error.message);
  }
}

/** Hints for the user once everything is Ready. */
function nextSteps(
  { args, platform }: DevSession,
  { kubectl, lifetime }: DevCluster,
  processes: readonly OperatorProcess[],
): string {
  const { namespace, samplesNamespace, operators, kinds } = platform;
  const n = `${kubectl.command} -n ${samplesNamespace}`;
  const categories = [...new Set(kinds.flatMap((kind) => kind.categories))];
  const [first] = operators;
  const name = first?.serviceAccount.name ?? '';
  const tries = [
    ...categories.map((category) => [`${kubectl.command} get ${category} -A`, 'every object of every kind'] as const),
    ...(args.samples ? sampleHints(platform, n) : []),
    ...(args.pods ? [[`${n} get pods`, 'real ones, with a small server in place of their images'] as const] : []),
    [`${kubectl.command} -n ${namespace} get lease,deployment`, 'the operator'] as const,
  ];
  const width = Math.max(...tries.map(([command]) => command.length));
  return [
    '',
    ...(args.pods ? [] : ['Save a file of the project, and it is loaded anew.']),
    lifetime,
    '',
    ...(kubectl.before === undefined ? [] : [`  ${kubectl.before}`]),
    ...tries.map(([command, what]) => `  ${command.padEnd(width)}  # ${what}`),
    '',
    ...processes.flatMap(({ name: which, port, logFile }, i) => [
      ...(i === 0 ? [`Metrics of the ${which}: http://127.0.0.1:${port}/metrics`] : []),
      `Log of the ${which}: ${logFile}`,
    ]),
    ...(processes.length === 0
      ? [
          `Metrics of the operator: kubectl -n ${namespace} port-forward service/${name}-metrics 8080`,
          `Log of the operator: kubectl -n ${namespace} logs -f -l app.kubernetes.io/instance=${name}`,
        ]
      : []),
    '',
  ].join('\n');
}

/** What to try on a sample. */
function sampleHints({ sampledKinds }: LocalPlatform, n: string): readonly (readonly [string, string])[] {
  const sampled = sampledKinds.filter(({ samples }) => samples.length > 0);
  const refOf = ({ singular, samples }: AnyKind): string => `${singular}/${samples[0]?.name ?? ''}`;
  const scaled = sampled.find(({ scale }) => scale !== undefined);
  const edited = sampled.find((kind) => kind !== scaled) ?? sampled[0];
  return [
    ...(scaled === undefined ? [] : [[`${n} scale ${refOf(scaled)} --replicas=3`, 'its children follow'] as const]),
    ...(edited === undefined ? [] : [[`${n} edit ${refOf(edited)}`, 'its children follow'] as const]),
    [`${n} get events.events.k8s.io`, 'what the operator has recorded'],
  ];
}
