import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';
import { LocalControlPlaneError, messageOf } from '../local/assets/errors';
import { PartSource } from '../local/assets/obtain';
import { runTool } from '../local/assets/process';
import type { ControlPlane, ControlPlaneOptions } from '../local/control-plane';
import { startControlPlane } from '../local/start';

/** The control plane of a test file; reading it before `beforeAll` has run throws. */
export type TestControlPlane = ControlPlane;

/**
 * Gives a Jest file a control plane: started before its tests, stopped after them. Call it at the top of the
 * file or of a `describe`.
 *
 * @example
 * const cp = useControlPlane({ components: 'api' });
 * test('serves', async () => expect((await kubectl(cp, ['get', 'ns'])).code).toBe(0));
 */
export function useControlPlane(options: ControlPlaneOptions = {}): TestControlPlane {
  let plane: ControlPlane | undefined;
  beforeAll(async () => {
    plane = await startControlPlane(options);
  }, startTimeoutMs);
  afterAll(async () => {
    await plane?.stop();
  }, stopTimeoutMs);
  const current = (): ControlPlane => {
    if (plane !== undefined) return plane;
    throw new LocalControlPlaneError('the control plane is not started: use it inside a test or a later hook');
  };
  return {
    get url() {
      return current().url;
    },
    get version() {
      return current().version;
    },
    get dataDir() {
      return current().dataDir;
    },
    get adminKubeconfig() {
      return current().adminKubeconfig;
    },
    get nodes() {
      return current().nodes;
    },
    get faults() {
      return current().faults;
    },
    kubeconfigFor: (account, more) => current().kubeconfigFor(account, more),
    auditLog: () => current().auditLog(),
    importImage: (archive) => current().importImage(archive),
    onPartExit: (listener) => current().onPartExit(listener),
    stop: () => current().stop(),
  };
}

/** The first start on a machine may build the parts, which takes minutes. */
const startTimeoutMs = 20 * 60_000;
const stopTimeoutMs = 30_000;

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

/** How to wait. */
interface WaitOptions {
  /** Milliseconds until it gives up. @default 25_000 */
  readonly timeout?: number;
  /**
   * What the caller waits for, for the error: "the Deployment to be available".
   * @default "the check to succeed"
   */
  readonly describe?: string;
  /** Milliseconds between two checks. @default 50 */
  readonly interval?: number;
  /** Called before each check; the next check follows when its result resolves. @default the interval */
  readonly nextLook?: () => Promise<unknown>;
}

/** The result of a check that has not succeeded yet. */
type NotYet = false | null | undefined;

/**
 * Repeats a check until it returns something other than false, null or undefined, and returns that. A check
 * that throws is repeated too.
 *
 * @throws LocalControlPlaneError at the deadline, with the last result
 */
export async function waitFor<T>(
  check: () => T | NotYet | Promise<T | NotYet>,
  options: WaitOptions = {},
): Promise<Exclude<T, NotYet>> {
  const timeout = options.timeout ?? 25_000;
  const deadline = Date.now() + timeout;
  for (;;) {
    const next = options.nextLook?.();
    let seen: string;
    let cause: unknown;
    try {
      const value = await check();
      if (value !== false && value !== null && value !== undefined) return value as Exclude<T, NotYet>;
      seen = inspect(value);
    } catch (error) {
      cause = error;
      seen = `an error: ${messageOf(error)}`;
    }
    if (Date.now() >= deadline) {
      const what = options.describe ?? 'the check to succeed';
      throw new LocalControlPlaneError(`waited ${timeout} ms for ${what}; last seen: ${seen}`, { cause });
    }
    if (next === undefined) await delay(options.interval ?? 50);
    else await untilDeadline(next, deadline);
  }
}

/** Waits for a promise until a deadline, and leaves no timer behind. */
async function untilDeadline(promise: Promise<unknown>, deadline: number): Promise<void> {
  const timer = new AbortController();
  try {
    await Promise.race([promise, delay(deadline - Date.now(), undefined, { signal: timer.signal })]);
  } finally {
    timer.abort();
  }
}
