import { readFile } from 'node:fs/promises';
import { constants } from 'node:os';
import path from 'node:path';
import { kinds, provisionerKinds } from '../constructs/kinds';
import { defaultImage } from '../constructs/platform';
import { layoutBase, registryBase, type Base } from '../image/base';
import { binariesFor, readBinary } from '../image/binaries';
import { buildImage, layerOf, type Image, type LayerEntry } from '../image/image';
import { localBase, userFiles } from '../image/local-base';
import { LOCK_FILE, lockDigest, lockedDigest } from '../image/lock';
import { formatPlatform, type Blob, type Platform } from '../image/oci';
import { archivePath, pushImage, writeArchive } from '../image/publish';
import { formatReference, parseReference, type ImageReference } from '../image/reference';
import { Registry } from '../image/registry';
import { removeTemporaryFiles } from '../image/temporary-files';
import { cacheFolder } from '../local';
import { undefinedIfMissing } from '../local/assets/errors';
import { progressToStderr, size } from '../local/assets/progress';
import { version } from '../package.json';
import type { BuildArguments } from './build-arguments';
import { CliError, InterruptedError } from './errors';
import { operatorBundle, type Program } from './operator-bundle';

/** What `kindred build --output=json` prints. */
interface BuildResult {
  /** The name with the digest, if the image was pushed. */
  readonly reference?: string;
  readonly digest: string;
  readonly mediaType: string;
  readonly base: { readonly name: string; readonly digest?: string };
  readonly platforms: readonly { readonly platform: string; readonly digest: string; readonly bytes: number }[];
  readonly archive?: { readonly file: string; readonly name: string };
}

/**
 * The programs that the provisioner's scripts run on its own machine, which a base from this machine takes with it. What is missing in
 * the second list, on this machine, the image lacks too.
 */
const scriptPrograms = ['sh', 'ssh'];
const optionalScriptPrograms = (
  'awk base64 cat chmod cp cut date dd df env flock grep gzip head id ln ls mkdir mktemp mv ps rm sed setsid sha256sum ' +
  'sleep sort ssh-keygen ssh-keyscan stat tail tar timeout touch tr uname uniq wc'
).split(' ');

const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * `kindred build`: makes the image of the operator or of the provisioner, writes it into an archive, and pushes it.
 *
 * @throws CliError when the program is not built; ImageError when the image cannot be made, written or pushed
 */
export async function build(args: BuildArguments): Promise<void> {
  const onSignal = (signal: NodeJS.Signals): void => {
    removeTemporaryFiles();
    process.stderr.write(`kindred: ${new InterruptedError(signal).message}\n`);
    process.exit(128 + constants.signals[signal]);
  };
  for (const signal of endingSignals) process.once(signal, onSignal);
  try {
    await buildAndPublish(args);
  } finally {
    for (const signal of endingSignals) process.off(signal, onSignal);
  }
}

async function buildAndPublish(args: BuildArguments): Promise<void> {
  const registries = new Map<string, Registry>();
  const registryOf = (host: string): Registry => {
    const found = registries.get(host);
    if (found !== undefined) return found;
    const plainHttp = args.plainHttp.includes(host);
    const registry = new Registry(host, { plainHttp, cacheFolder: path.join(cacheFolder(), 'layers') });
    registries.set(host, registry);
    return registry;
  };
  try {
    const archiveFile = await archiveFileOf(args);
    const { base, lock } = await loadBase(args, registryOf);
    const image = await imageOn(base, args);
    await lock?.();
    const archive = archiveFile === undefined ? undefined : await archiveImage(args, archiveFile, image);
    if (archive !== undefined) progressToStderr(`${archiveFile} contains ${archive.name}`);
    if (args.push !== undefined) await push(registryOf(args.push.host), args.push, image);
    printResult(args, { base, image, archive });
  } finally {
    await Promise.all([...registries.values()].map((registry) => registry.close()));
  }
}

/** Makes the operator's image of this machine's Node.js, under its default name, and writes it into an archive. */
export async function writeLocalImage(file: string): Promise<void> {
  const args = { program: 'operator', base: { type: 'local' }, binaries: [], labels: {} } as const;
  const image = await imageOn(await localBase({ platforms: undefined, programs: [], optionalPrograms: [] }), args);
  await archiveImage({ ...args, push: undefined, tag: undefined }, file, image);
}

async function imageOn(
  base: Base,
  args: Pick<BuildArguments, 'program' | 'base' | 'binaries' | 'labels'>,
): Promise<Image> {
  return buildImage(base, {
    program: `/${args.program}.cjs`,
    labels: { ...labelsOf(args.program), ...args.labels },
    layers: await layersFor(args, base),
    createdSeconds: sourceDate(),
  });
}

/** The base, and how its digest gets into the lock file once there is an image on it. */
interface LoadedBase {
  readonly base: Base;
  readonly lock?: () => Promise<void>;
}

async function loadBase(args: BuildArguments, registryOf: (host: string) => Registry): Promise<LoadedBase> {
  const { base, platforms, program } = args;
  if (base.type === 'oci') return { base: await layoutBase(base.folder, platforms) };
  if (base.type === 'local') {
    const programs = program === 'provisioner' ? scriptPrograms : [];
    const optionalPrograms = program === 'provisioner' ? optionalScriptPrograms : [];
    return { base: await localBase({ platforms, programs, optionalPrograms }) };
  }
  const { reference } = base;
  const registry = registryOf(reference.host);
  if (reference.digest !== undefined) return { base: await registryBase(registry, reference, platforms) };
  const tagged = withTag(reference);
  const name = formatReference(tagged);
  const locked = args.updateBase ? undefined : await lockedDigest(LOCK_FILE, name);
  const loaded = await registryBase(registry, { ...tagged, digest: locked }, platforms);
  const { digest } = loaded;
  if (locked !== undefined || digest === undefined) return { base: loaded };
  const lock = async (): Promise<void> => {
    await lockDigest(LOCK_FILE, name, digest);
    progressToStderr(`${name} has the digest ${digest}, which ${LOCK_FILE} keeps for later builds. Commit that file.`);
  };
  return { base: loaded, lock };
}

/** The layers on the base. The programs come before the bundle, because they change less often. */
async function layersFor(
  { binaries, program, base }: Pick<BuildArguments, 'program' | 'base' | 'binaries'>,
  { images }: Base,
): Promise<(platform: Platform) => readonly Blob[]> {
  const bundle = operatorBundle(program);
  const notices = await readFile(`${bundle}.LEGAL.txt`).catch(undefinedIfMissing);
  const top = await layerOf([
    textFile(`/${program}.cjs`, await readFile(bundle)),
    ...(notices === undefined ? [] : [textFile(`/${program}.cjs.LEGAL.txt`, notices)]),
  ]);
  const read = await Promise.all(binaries.map(readBinary));
  // OpenSSH's client refuses to run as a user without a name.
  const users = program === 'provisioner' && base.type !== 'local' ? userFiles : [];
  const layers = new Map<string, readonly Blob[]>();
  for (const { platform } of images) {
    const added = [...users, ...binariesFor(platform, read)];
    layers.set(formatPlatform(platform), added.length === 0 ? [top] : [await layerOf(added), top]);
  }
  return (platform) => layers.get(formatPlatform(platform)) ?? [top];
}

function textFile(at: string, content: Uint8Array): LayerEntry {
  return { type: 'file', path: at, mode: 0o444, content };
}

function labelsOf(program: Program): Readonly<Record<string, string>> {
  const reconciled = program === 'operator' ? kinds : provisionerKinds;
  const names = reconciled.map(({ crdName }) => crdName).toSorted();
  return {
    'org.opencontainers.image.title': `kindred ${program}`,
    'org.opencontainers.image.description': `Reconciles ${names.join(', ')}.`,
    'org.opencontainers.image.licenses': 'Apache-2.0',
    'org.opencontainers.image.version': version,
  };
}

/** `SOURCE_DATE_EPOCH`, the time that reproducible builds agree on, in seconds since 1970. @throws CliError if it is no number */
function sourceDate(): number {
  const value = process.env['SOURCE_DATE_EPOCH'] ?? '';
  if (value === '') return 0;
  if (/^\d{1,11}$/.test(value)) return Number(value);
  throw new CliError(`SOURCE_DATE_EPOCH=${value}: it must be a whole number of seconds since 1970, or not set`);
}

/** The archive that is asked for, or the default one if nothing is pushed. */
async function archiveFileOf({ archive, push: pushed, program }: BuildArguments): Promise<string | undefined> {
  const file = archive ?? (pushed === undefined ? path.join('dist', `${program}.tar`) : undefined);
  return file === undefined ? undefined : archivePath(file);
}

async function archiveImage(
  { push: pushed, tag, program }: Pick<BuildArguments, 'push' | 'tag' | 'program'>,
  file: string,
  image: Image,
): Promise<NonNullable<BuildResult['archive']>> {
  const name = withTag(tag ?? pushed ?? parseReference(defaultImage(program, version)));
  await writeArchive(file, image, name);
  return { file: path.resolve(file), name: formatReference(name) };
}

async function push(registry: Registry, reference: ImageReference, image: Image): Promise<void> {
  const { uploaded, uploadedBytes, mounted, present } = await pushImage(registry, reference, image);
  progressToStderr(
    `${formatReference(reference)}: ${uploaded} blobs uploaded (${size(uploadedBytes)}), ${mounted} taken from another ` +
      `repository, ${present} present before`,
  );
}

/** Prints the digest, with the name if the image was pushed. Progress is on stderr, so that a script can read this. */
function printResult(
  { base: given, push: pushed, output }: BuildArguments,
  { base, image, archive }: { readonly base: Base; readonly image: Image; readonly archive: BuildResult['archive'] },
): void {
  const { digest, mediaType } = image.root.descriptor;
  const reference = pushed === undefined ? undefined : formatReference({ ...pushed, digest });
  const baseName = given.type === 'registry' ? base.name : given.type === 'oci' ? `oci:${given.folder}` : 'local';
  const result: BuildResult = {
    ...(reference === undefined ? {} : { reference }),
    digest,
    mediaType,
    base: { name: baseName, ...(base.digest === undefined ? {} : { digest: base.digest }) },
    platforms: image.images.map(({ platform, manifest, layers }) => ({
      platform: formatPlatform(platform),
      digest: manifest.descriptor.digest,
      bytes: layers.reduce((sum, { descriptor }) => sum + descriptor.size, 0),
    })),
    ...(archive === undefined ? {} : { archive }),
  };
  process.stdout.write(`${output === 'json' ? JSON.stringify(result, undefined, 2) : (reference ?? digest)}\n`);
}

function withTag(reference: ImageReference): ImageReference {
  return { ...reference, tag: reference.tag ?? 'latest' };
}
