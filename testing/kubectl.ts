import { LocalControlPlaneError } from '../local/assets/errors';
import { PartSource } from '../local/assets/obtain';
import { runTool } from '../local/assets/process';
import type { ControlPlane } from '../local/control-plane';

/** What kubectl printed, and its exit code. */
export interface KubectlResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** How to run kubectl. */
interface KubectlOptions {
  /** Text for its stdin, for `-f -`. */
  readonly input?: string;
  /** The path of the kubeconfig to use. @default the administrator's */
  readonly kubeconfig?: string;
  readonly signal?: AbortSignal;
}

let builtKubectl: Promise<string> | undefined;

/**
 * Runs kubectl against a control plane: the one on PATH, or else one that is downloaded or built like the
 * other parts. A non-zero exit code is a result, not an error.
 *
 * @throws LocalControlPlaneError when there is no kubectl, or a signal ended it
 */
export async function kubectl(
  plane: Pick<ControlPlane, 'adminKubeconfig' | 'dataDir'>,
  args: readonly string[],
  options: KubectlOptions = {},
): Promise<KubectlResult> {
  const all = [`--kubeconfig=${options.kubeconfig ?? plane.adminKubeconfig}`, ...args];
  // kubectl caches discovery by address, which another run with other kinds may have used; and the user's
  // preferences (kuberc) must not affect a test.
  const env = { ...process.env, KUBECACHEDIR: `${plane.dataDir}/kubectl-cache`, KUBERC: 'off' };
  const toolOptions = { env, signal: options.signal, ...(options.input !== undefined && { input: options.input }) };
  const result = (await runTool('kubectl', all, toolOptions)) ?? (await runTool(await obtained(), all, toolOptions));
  if (result?.code == null) throw new LocalControlPlaneError(`kubectl ${args.join(' ')} was ended by a signal`);
  return { stdout: result.stdout, stderr: result.stderr, code: result.code };
}

/**
 * Runs kubectl against a control plane.
 *
 * @param input - text for its stdin
 * @returns its stdout
 * @throws LocalControlPlaneError with what it said on stderr, when it fails
 */
export async function kubectlOrThrow(
  plane: Pick<ControlPlane, 'adminKubeconfig' | 'dataDir'>,
  args: readonly string[],
  input?: string,
): Promise<string> {
  const { code, stdout, stderr } = await kubectl(plane, args, input === undefined ? {} : { input });
  if (code === 0) return stdout;
  throw new LocalControlPlaneError(`kubectl ${args.join(' ')}: ${stderr}`);
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
