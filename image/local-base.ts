import { execFile } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../local/assets/errors';
import { findProgram } from '../local/assets/process';
import type { Base } from './base';
import { layerOf } from './image';
import type { LayerEntry } from './image';
import { ImageError, formatPlatform, goArchitecture, matchesPlatform } from './oci';
import type { Platform } from './oci';

/** Options of {@link localBase}. */
interface LocalBaseOptions {
  /** Programs of this machine to take too, by their names on PATH. @default none */
  readonly programs?: readonly string[];
  /** Those of them that may be missing. @default none */
  readonly optionalPrograms?: readonly string[];
  /** Only this machine's platform can be made. @default that one */
  readonly platforms?: readonly Platform[] | undefined;
}

const NODE = '/usr/local/bin/node';
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** Where certificates of authorities are, by distribution. The first that exists is taken. */
const certificates = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt', '/etc/ssl/cert.pem'];
/** glibc loads these for the name service when it is asked, so `ldd` does not name them. */
const nameServiceLibraries = ['libnss_files.so.2', 'libnss_dns.so.2', 'libresolv.so.2'];

/** Users of the image. OpenSSH's client wants to know the name of its user. */
export const userFiles: readonly LayerEntry[] = [
  textFile('/etc/passwd', [
    'root:x:0:0:root:/root:/sbin/nologin',
    'nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin',
    'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin',
  ]),
  textFile('/etc/group', ['root:x:0:', 'nobody:x:65534:', 'nonroot:x:65532:']),
];

/**
 * A base from this machine: its Node.js, the shared libraries that this needs, the certificates of authorities, and the
 * name service. It is for tests, and for trials without a registry: nobody updates what is in it.
 *
 * @throws ImageError when this is not Linux, another platform is wanted, or a program or library is missing
 */
export async function localBase(options: LocalBaseOptions = {}): Promise<Base> {
  const { programs = [], optionalPrograms = [], platforms = [] } = options;
  const platform: Platform = { architecture: goArchitecture(process.arch), os: process.platform };
  if (platform.os !== 'linux') {
    throw new ImageError(
      `--base=local takes Node.js and its libraries from this machine, which is ${platform.os}, not Linux`,
    );
  }
  const others = platforms.filter((wanted) => !matchesPlatform(platform, wanted));
  if (others.length > 0) {
    throw new ImageError(
      `--base=local can only make an image for the platform of this machine, ${formatPlatform(platform)}: ` +
        `for ${others.map(formatPlatform).join(', ')} give a base that has it`,
    );
  }
  const found = [...programs.map(requireProgram), ...optionalPrograms.flatMap((name) => find(name) ?? [])].map(
    // Scripts begin with this path, whether /bin is a folder of its own or not.
    (program) => [path.basename(program) === 'sh' ? '/bin/sh' : program, program] as const,
  );
  const { files, libraryFolders } = await withLibraries([[NODE, nodeFile()], ...found]);
  const entries = [...files, ...systemFiles()];
  const env = [`PATH=${PATH}`, ...(libraryFolders === '' ? [] : [`LD_LIBRARY_PATH=${libraryFolders}`])];
  const layer = await layerOf(entries);
  const config = {
    ...platform,
    config: { Env: env, Entrypoint: [NODE] },
    rootfs: { type: 'layers', diff_ids: [layer.descriptor.digest] },
    history: [
      { created: '1970-01-01T00:00:00Z', created_by: `Node.js ${process.version} of the machine that built it` },
    ],
  } as const;
  return { name: '', images: [{ platform, config, layers: [layer] }] };
}

/** @throws ImageError when it needs files beside it that its libraries do not tell of */
function nodeFile(): string {
  const { node_builtin_shareable_builtins: builtins = [] } = process.config.variables as unknown as {
    readonly node_builtin_shareable_builtins?: readonly string[];
  };
  const [outside] = builtins.filter((file) => path.isAbsolute(file));
  if (outside === undefined) return process.execPath;
  throw new ImageError(
    `${process.execPath} reads a part of itself from ${outside}, as Debian's own package does, and is not taken into an ` +
      'image. Run this command with a Node.js from nodejs.org, or give another --base.',
  );
}

function systemFiles(): readonly LayerEntry[] {
  const authorities = certificates.find((file) => existsSync(file));
  const [target = ''] = certificates;
  return [
    ...userFiles,
    textFile('/etc/nsswitch.conf', ['passwd: files', 'group: files', 'hosts: files dns']),
    ...(authorities === undefined ? [] : [file(target, 0o644, readFileSync(authorities))]),
    { type: 'directory', path: '/home/nonroot', mode: 0o755 },
    { type: 'directory', path: '/tmp', mode: 0o1777 },
  ];
}

/** Files of the image, and LD_LIBRARY_PATH if they need it. */
interface ProgramFiles {
  readonly files: readonly LayerEntry[];
  readonly libraryFolders: string;
}

/** Programs, by their paths in the image and on this machine, with all shared libraries that they need. */
async function withLibraries(programs: readonly (readonly [target: string, source: string])[]): Promise<ProgramFiles> {
  const files = new Map<string, LayerEntry>();
  const libraries = new Set<string>();
  for (const [target, source] of programs) {
    files.set(target, file(target, 0o755, readFileSync(realpathSync(source))));
    for (const library of await librariesOf(source)) libraries.add(library);
  }
  for (const library of [...libraries, ...nameService(libraries)]) {
    files.set(library, file(library, 0o755, readFileSync(realpathSync(library))));
  }
  const folders = [
    ...new Set([...files.keys()].filter((name) => libraries.has(name)).map((name) => path.dirname(name))),
  ];
  // The loader looks into the others by itself.
  const special = folders.filter((folder) => !/^(\/usr)?\/lib(64|32)?(\/[^/]+-linux-(gnu|musl)\w*)?$/.test(folder));
  return { files: [...files.values()], libraryFolders: special.toSorted().join(':') };
}

function nameService(libraries: ReadonlySet<string>): readonly string[] {
  const libc = [...libraries].find((library) => path.basename(library) === 'libc.so.6');
  if (libc === undefined) return [];
  return nameServiceLibraries.map((name) => path.join(path.dirname(libc), name)).filter((name) => existsSync(name));
}

/** The shared libraries of a program, its loader among them: none for a static program or a script. */
async function librariesOf(program: string): Promise<readonly string[]> {
  if (!isElf(program)) return [];
  const { stdout, stderr, failed } = await promisify(execFile)('ldd', [realpathSync(program)], {
    env: { ...process.env, LC_ALL: 'C' },
  })
    .then((output) => ({ ...output, failed: false }))
    .catch((error: unknown) => {
      const { stdout: out = '', stderr: words = messageOf(error) } = error as { stdout?: string; stderr?: string };
      return { stdout: out, stderr: words, failed: true };
    });
  if (/not a dynamic executable|statically linked/.test(stdout + stderr)) return [];
  const missing = /^\s*(\S+) => not found/m.exec(stdout)?.[1];
  if (failed || missing !== undefined) {
    throw new ImageError(`the libraries of ${program} cannot be found: ${missing ?? stderr.trim()}`);
  }
  return [...stdout.matchAll(/^\s*(?:\S+ => )?(\/\S+) \(0x/gm)].map(([, library = '']) => library);
}

function isElf(program: string): boolean {
  return readFileSync(realpathSync(program)).subarray(0, 4).equals(Buffer.from('\x7fELF', 'latin1'));
}

function find(name: string): string | undefined {
  return findProgram(name, [PATH, process.env['PATH'] ?? ''].join(':'));
}

/** The path of a program that must be there. */
function requireProgram(name: string): string {
  const found = find(name);
  if (found !== undefined) return found;
  throw new ImageError(`the image needs the program ${name}, and this machine has none on its PATH. Install it first.`);
}

function file(at: string, mode: number, content: Uint8Array): LayerEntry {
  return { type: 'file', path: at, mode, content };
}

function textFile(at: string, lines: readonly string[]): LayerEntry {
  return file(at, 0o644, Buffer.from(`${lines.join('\n')}\n`));
}
