import type { PartName } from '../assets/parts';
import type { PartPaths } from '../assets/prepare';
import { LocalControlPlaneError } from '../errors';
import { createFakeNode, schedulable } from './fake-node';
import type { GuardedProcess } from './guarded-process';
import { kubeconfig } from './kubeconfig';
import { controllerManagerArgs, kwokArgs, schedulerArgs } from './parts-args';
import type { Pki } from './pki';
import { untilReady } from './ready';
import type { RestClient } from './rest';
import type { RunFolder } from './run-folder';
import type { RunningParts } from './running-parts';

/** What the controllers need. */
export interface ControllersOptions {
  readonly paths: PartPaths;
  readonly run: RunFolder;
  readonly parts: RunningParts;
  readonly pki: Pki;
  readonly rest: RestClient;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** The controllers that run. */
export interface Controllers {
  /** Ends the controller manager and starts a new one; resolves when it has been started, not when it is through. */
  restartManager(): Promise<void>;
}

/** Starts controller manager, scheduler and KWOK, adds the node, and waits until a pod would be scheduled. */
export async function startControllers(options: ControllersOptions): Promise<Controllers> {
  const { paths, parts, pki, rest, timeoutMs, signal } = options;
  const manager = credentialsFile(options, 'system:kube-controller-manager');
  const scheduler = credentialsFile(options, 'system:kube-scheduler');
  // KWOK has no role of its own in Kubernetes, as it stands in for kubelets and more.
  const kwok = credentialsFile(options, 'kindred-kwok', ['system:masters']);
  const startManager = (): GuardedProcess =>
    startPart(options, 'kube-controller-manager', controllerManagerArgs(manager, pki));
  let running = startManager();
  const processes = [
    running,
    startPart(options, 'kube-scheduler', schedulerArgs(scheduler)),
    startPart(options, 'kwok', kwokArgs(kwok, requirePath(paths, 'kwok-stages'))),
  ];
  await createFakeNode(rest);
  await untilReady(schedulable(rest), {
    what: 'the node and the default ServiceAccount',
    processes,
    timeoutMs,
    signal,
  });
  return {
    restartManager: async () => {
      await parts.kill(running);
      running = startManager();
    },
  };
}

function startPart({ paths, run, parts }: ControllersOptions, part: PartName, args: readonly string[]): GuardedProcess {
  const program = requirePath(paths, part);
  return parts.start({ part, program, args, cwd: run.path, logFile: run.file(`${part}.log`) });
}

function credentialsFile({ pki, rest, run }: ControllersOptions, user: string, organizations: string[] = []): string {
  const credentials = pki.authority.client({ commonName: user, organizations });
  const content = { server: rest.server, authority: pki.authority.certificate, user, credentials };
  return run.write(`components/${user.replace('system:', '')}.kubeconfig`, kubeconfig(content));
}

/** The path of a part that was asked for. */
export function requirePath(paths: PartPaths, name: PartName): string {
  const found = paths[name];
  if (found === undefined) throw new LocalControlPlaneError(`the part ${name} was not prepared`);
  return found;
}
