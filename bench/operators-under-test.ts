import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nodeOptions } from '../constructs/operator/node-options';
import { operatorDefaults } from '../constructs/operator/operator-props';
import { cacheFolder } from '../local';
import { withLock } from '../local/assets/lock';
import { runTool } from '../local/assets/process';
import { freePort } from '../local/ports';
import type { Program } from './measured-process';
import type { OperatorName } from './results';

/** An operator that the benchmark measures. */
export interface OperatorUnderTest {
  readonly name: OperatorName;
  /** The account of its requests, as in the audit log. */
  readonly user: string;
  /** How to start it for this many objects. */
  program(objects: number): Promise<Program>;
}

/**
 * Objects for which an operator's pod has the default memory limit; it gets as much again for each further so
 * many.
 */
const objectsInPodMemory = 5000;

/** Workers of each twin: more make it no faster. */
export const peerWorkers = 16;

/** The operator as its pod starts it. */
export function kindred(of: {
  readonly user: string;
  readonly bundle: string;
  readonly args: readonly string[];
}): OperatorUnderTest {
  const own = ['--metrics-port=0', '--metrics-host=127.0.0.1'];
  const program = (objects: number): Program => ({
    command: process.execPath,
    args: [of.bundle, ...of.args, ...own],
    env: podEnv(objects),
    reconcilingLine: 'reconciling',
    expectedErrors: [],
    metricsPort: async (log) => Number((await log.line('serving /healthz, /readyz and /metrics')).port),
  });
  return { name: 'kindred', user: of.user, program: (objects) => Promise.resolve(program(objects)) };
}

/** The environment of our operator's pod for this many objects. */
export function podEnv(objects: number): { readonly NODE_OPTIONS: string } {
  return { NODE_OPTIONS: nodeOptions(operatorDefaults.memoryLimitMiB * Math.ceil(objects / objectsInPodMemory)) };
}

/** A twin on controller-runtime. */
export function twin(
  name: 'tuned' | 'plain',
  of: { readonly user: string; readonly file: string; readonly kubeconfig: string },
): OperatorUnderTest {
  return {
    name,
    user: of.user,
    program: async () => {
      const port = await freePort();
      const places = [`--kubeconfig=${of.kubeconfig}`, `--metrics=127.0.0.1:${String(port)}`];
      return {
        command: of.file,
        env: {},
        args: [`--twin=${name}`, `--workers=${String(peerWorkers)}`, ...places],
        reconcilingLine: 'Starting workers',
        // It logs as errors that it releases its Lease when it is stopped, and that the stop interrupted a
        // renewal.
        expectedErrors: ['error received after stop sequence was engaged', 'Error retrieving lease lock'],
        metricsPort: () => Promise.resolve(port),
      };
    },
  };
}

/** The file of a program, or why it is missing, in one line. */
type PeerProgram = { readonly file: string } | { readonly missing: string };

/**
 * The twins on controller-runtime: from the cache, or built with Go. In the cache they are named by the hash
 * of their sources and the compiler's version.
 */
export async function twins(root: string, signal: AbortSignal): Promise<PeerProgram> {
  const sources = join(root, 'bench', 'peers', 'controller-runtime');
  return buildWithGo('controller-runtime', signal, {
    hash: await hashOf(sources),
    make: (draft) => ({
      cwd: sources,
      args: ['build', '-trimpath', '-mod=readonly', '-ldflags', '-s -w', '-o', join(draft, 'program'), '.'],
      env: {},
    }),
    fileName: 'program',
  });
}

/** The newest kustomize that Go builds in the version that the other parts need. */
const kustomizeVersion = 'v5.8.1';

/** kustomize: from the cache, or installed with Go. */
export function kustomize(signal: AbortSignal): Promise<PeerProgram> {
  return buildWithGo('kustomize', signal, {
    hash: kustomizeVersion,
    make: (draft) => ({
      cwd: draft,
      args: ['install', `sigs.k8s.io/kustomize/kustomize/v5@${kustomizeVersion}`],
      env: { GOBIN: draft },
    }),
    fileName: 'kustomize',
  });
}

interface Recipe {
  /** Hash of the sources. */
  readonly hash: string;
  readonly make: (draft: string) => {
    readonly cwd: string;
    readonly args: readonly string[];
    readonly env: NodeJS.ProcessEnv;
  };
  readonly fileName: string;
}

async function buildWithGo(name: string, signal: AbortSignal, { hash, make, fileName }: Recipe): Promise<PeerProgram> {
  const version = await runTool('go', ['version'], { env: process.env, signal });
  if (version === undefined) return { missing: `${name}: there is no \`go\` on PATH to build it` };
  const key = createHash('sha256').update(`${hash}\n${version.stdout}`).digest('hex').slice(0, 16);
  const folder = join(cacheFolder(), 'bench', name, key);
  const file = join(folder, fileName);
  const onProgress = (line: string): void => console.error(`bench: ${line}`);
  return withLock(`${folder}.lock`, { purpose: name, onProgress, signal }, async () => {
    if (existsSync(file)) return { file };
    onProgress(`building ${name} (once, some minutes)`);
    const draft = `${folder}.draft`;
    await rm(draft, { recursive: true, force: true });
    await mkdir(draft, { recursive: true });
    const { cwd, args, env } = make(draft);
    const options = { cwd, env: { ...process.env, CGO_ENABLED: '0', ...env }, signal };
    const result = await runTool('go', args, options);
    if (result?.code !== 0) return { missing: `${name}: \`go ${args[0] ?? ''}\` failed: ${lastLine(result?.stderr)}` };
    await mkdir(dirname(folder), { recursive: true });
    await rename(draft, folder); // atomically
    return { file };
  });
}

function lastLine(text = ''): string {
  return text.trimEnd().split('\n').at(-1) ?? '';
}

async function hashOf(folder: string): Promise<string> {
  const hash = createHash('sha256');
  const names = (await readdir(folder)).filter((name) => /\.(go|mod|sum)$/.test(name)).sort();
  for (const name of names) hash.update(`${name}\n`).update(await readFile(join(folder, name)));
  return hash.digest('hex');
}
