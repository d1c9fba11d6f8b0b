import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { LocalControlPlaneError } from './errors';
import { whileSlow, type Progress } from './progress';
import { fullDisk } from './cache';
import type { Build, Part, Platform } from './parts';
import { runTool } from './process';

/** The context of a build on this machine. */
export interface BuildContext {
  readonly platform: Platform;
  readonly onProgress: Progress;
  readonly env: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal | undefined;
}

/** There is no `go` on this machine. */
export class GoMissingError extends LocalControlPlaneError {
  override readonly name = 'GoMissingError';
}

/**
 * Builds a part with the Go toolchain, from the module that pins its version.
 *
 * @param file - the path of the result
 * @throws GoMissingError when there is no `go` on PATH
 * @throws LocalControlPlaneError when the build fails, with the last lines that it printed
 */
export async function buildPart(part: Part, file: string, context: BuildContext): Promise<void> {
  const { build } = part;
  await whileSlow(`${part.name} ${part.version}: building`, context.onProgress, () =>
    build.kind === 'program' ? buildProgram(part, build, file, context) : joinFiles(part, build, file, context),
  );
}

async function buildProgram(part: Part, build: Build & { kind: 'program' }, file: string, context: BuildContext) {
  const flags = ['-trimpath', '-mod=readonly', '-ldflags', build.ldflags, '-o', file];
  await runGo(part, ['build', ...flags, build.package], context);
}

async function joinFiles(part: Part, build: Build & { kind: 'files' }, file: string, context: BuildContext) {
  const answer = await runGo(part, ['mod', 'download', '-json', build.from], context);
  const { Dir: folder } = JSON.parse(answer) as { Dir?: string };
  if (folder === undefined) throw new LocalControlPlaneError(`go mod download gives no folder for ${build.from}.`);
  const texts = await Promise.all(build.files.map((name) => readFile(path.join(folder, name), 'utf8')));
  await writeFile(file, texts.map((text) => `${text.trimEnd()}\n`).join('---\n'), { flag: 'wx' });
}

/** Runs `go` in the module that pins the part; returns its stdout. */
async function runGo(part: Part, args: readonly string[], context: BuildContext): Promise<string> {
  const module = path.join(modulesFolder(), part.build.module);
  const { os: GOOS, arch: GOARCH } = context.platform;
  const result = await runTool('go', args, {
    cwd: module,
    env: { ...context.env, CGO_ENABLED: '0', GOOS, GOARCH },
    signal: context.signal,
  });
  if (result === undefined) throw new GoMissingError('there is no `go` on PATH');
  if (result.code === 0) return result.stdout;
  if (/no space left on device|disk quota exceeded/i.test(result.stderr)) {
    throw fullDisk('the Go build folders (go env GOCACHE GOMODCACHE GOTMPDIR)', part.name, result.stderr);
  }
  const lastLines = result.stderr.trimEnd().split('\n').slice(-12).join('\n');
  throw new LocalControlPlaneError(`\`go ${args[0] ?? ''}\` failed in ${module}:\n${lastLines}`);
}

/**
 * The directory of the Go modules: beside this code, or in the checkout when this code was bundled elsewhere.
 */
export function modulesFolder(): string {
  const candidates = [
    path.join(__dirname, '..', 'parts'),
    path.join(__dirname, '..', 'local', 'parts'),
    // In the package, where this code is in dist/library/local/assets.
    path.join(__dirname, '..', '..', '..', '..', 'local', 'parts'),
    path.join(process.cwd(), 'local', 'parts'),
  ];
  const found = candidates.find((folder) => existsSync(path.join(folder, 'etcd', 'go.mod')));
  if (found !== undefined) return found;
  throw new LocalControlPlaneError(
    `cannot build: the Go modules that pin the parts (local/parts) are in none of ${candidates.join(', ')}. ` +
      `Run this from a checkout of Kindred, or give a folder with the built parts.`,
  );
}
