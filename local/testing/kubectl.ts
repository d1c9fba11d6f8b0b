import { PartSource } from '../assets/obtain';
import { runTool } from '../assets/run-tool';
import { LocalControlPlaneError } from '../errors';
import type { ControlPlane } from '../plane/control-plane';

/** What kubectl printed, and its exit code. */
export interface KubectlResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** How to run kubectl. */
export interface KubectlOptions {
  /** Text for its stdin, for `-f -`. */
  readonly input?: string;
  /** Whose requests: the path of a kubeconfig. @default the administrator's */
  readonly kubeconfig?: string;
  readonly signal?: AbortSignal;
}

let builtKubectl: Promise<string> | undefined;

/**
 * Runs kubectl against a control plane: the one on PATH, or else one that is downloaded or built as the other parts are.
 * A failing exit code is a result, not an error.
 *
 * @throws LocalControlPlaneError when there is no kubectl to be had, or a signal ended it
 */
export async function kubectl(
  plane: Pick<ControlPlane, 'adminKubeconfig' | 'dataDir'>,
  args: readonly string[],
  options: KubectlOptions = {},
): Promise<KubectlResult> {
  const all = [`--kubeconfig=${options.kubeconfig ?? plane.adminKubeconfig}`, ...args];
  // kubectl remembers what it discovers by address, which another run may have had with other kinds; and a person's
  // preferences (kuberc) must not change what a test sees.
  const env = { ...process.env, KUBECACHEDIR: `${plane.dataDir}/kubectl-cache`, KUBERC: 'off' };
  const toolOptions = { env, signal: options.signal, ...(options.input !== undefined && { input: options.input }) };
  const result = (await runTool('kubectl', all, toolOptions)) ?? (await runTool(await obtained(), all, toolOptions));
  if (result?.code == null) throw new LocalControlPlaneError(`kubectl ${args.join(' ')} was ended by a signal`);
  return { stdout: result.stdout, stderr: result.stderr, code: result.code };
}

async function obtained(): Promise<string> {
  builtKubectl ??= obtain();
  return builtKubectl;
}

async function obtain(): Promise<string> {
  const source = new PartSource();
  try {
    return await source.get('kubectl');
  } finally {
    await source.close();
  }
}
