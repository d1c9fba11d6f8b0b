import { readFile } from 'node:fs/promises';
import { constants } from 'node:os';
import path from 'node:path';
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
import { progressToStderr, progressToTerminal, size, whileSlow } from '../local/assets/progress';
import { imageMap } from './bundle/image-map';
import { DEFAULT_BASE, baseOf, type BaseArgument, type BuildArguments } from './build-arguments';
import { CliError, InterruptedError, UsageError } from './errors';
import { printJson } from './flags';
import { bundleOperator } from './operator-bundle';
import { kindredFolder, programName, type Project, type ProjectOperator } from './project';
import { defaultImageOf, requiredOperator } from './project-platform';

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

/** What an image is made of. */
interface ImageOptions {
  readonly project: Project;
  readonly operator: ProjectOperator;
  readonly base: BaseArgument;
  readonly binaries: BuildArguments['binaries'];
  readonly labels: BuildArguments['labels'];
}

const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * `kindred build`: bundles an operator of the project, makes its image, writes it into an archive, and pushes it.
 *
 * @throws CliError when a source does not compile; ImageError when the image cannot be made, written or pushed
 */
export async function build(args: BuildArguments, project: Project): Promise<void> {
  const onSignal = (signal: NodeJS.Signals): void => {
    removeTemporaryFiles();
    process.stderr.write(`kindred: ${new InterruptedError(signal).message}\n`);
    process.exit(128 + constants.signals[signal]);
  };
  for (const signal of endingSignals) process.once(signal, onSignal);
  try {
    await buildAndPublish(args, project);
  } finally {
    for (const signal of endingSignals) process.off(signal, onSignal);
  }
}

const slow = <T>(what: string, work: () => Promise<T>): Promise<T> => whileSlow(what, progressToTerminal, work);

async function buildAndPublish(args: BuildArguments, project: Project): Promise<void> {
  const operator = requiredOperator(project, args.operator);
  const base = args.base ?? baseOf(operator.image.base ?? DEFAULT_BASE);
  if (args.updateBase && (base.type !== 'registry' || base.reference.digest !== undefined))
    throw new UsageError('--update-base is only for a base with a tag in a registry: leave it out');
  const options: ImageOptions = { project, operator, base, binaries: args.binaries, labels: args.labels };
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
    const archiveFile = await archiveFileOf(args, programName(project, operator));
    const loaded = await slow('Loading the base', () => loadBase(options, args, registryOf));
    const image = await slow('Making the layers', () => imageOn(loaded.base, options));
    await loaded.lock?.();
    const name = withTag(args.tag ?? args.push ?? parseReference(defaultImageOf(project, operator)));
    const archive =
      archiveFile === undefined
        ? undefined
        : await slow(`Writing ${archiveFile}`, () => archiveImage(archiveFile, image, name));
    if (archive !== undefined) progressToStderr(`${archiveFile} contains ${archive.name}`);
    const { push: to } = args;
    if (to !== undefined) await slow(`Pushing ${formatReference(to)}`, () => push(registryOf(to.host), to, image));
    printResult(args, { given: base, base: loaded.base, image, archive });
  } finally {
    await Promise.all([...registries.values()].map((registry) => registry.close()));
  }
}

/** Makes an operator's image of this machine's Node.js, under its default name, and writes it into an archive. */
export async function writeLocalImage(file: string, project: Project, operator: ProjectOperator): Promise<void> {
  const options = { project, operator, base: { type: 'local' }, binaries: [], labels: {} } as const;
  const image = await imageOn(await localBase({ platforms: undefined, ...operator.image }), options);
  await archiveImage(file, image, withTag(parseReference(defaultImageOf(project, operator))));
}

async function imageOn(base: Base, options: ImageOptions): Promise<Image> {
  const { project, operator, labels } = options;
  return buildImage(base, {
    program: `/${programName(project, operator)}.cjs`,
    labels: { ...labelsOf(project, operator), ...labels },
    layers: await layersFor(options, base),
    createdSeconds: sourceDate(),
  });
}

/** The base, and how its digest gets into the lock file once there is an image on it. */
interface LoadedBase {
  readonly base: Base;
  readonly lock?: () => Promise<void>;
}

async function loadBase(
  { base, operator }: ImageOptions,
  { platforms, updateBase }: BuildArguments,
  registryOf: (host: string) => Registry,
): Promise<LoadedBase> {
  if (base.type === 'oci') return { base: await layoutBase(base.folder, platforms) };
  if (base.type === 'local') {
    const { programs = [], optionalPrograms = [] } = operator.image;
    return { base: await localBase({ platforms, programs, optionalPrograms }) };
  }
  const { reference } = base;
  const registry = registryOf(reference.host);
  if (reference.digest !== undefined) return { base: await registryBase(registry, reference, platforms) };
  const tagged = withTag(reference);
  const name = formatReference(tagged);
  const locked = updateBase ? undefined : await lockedDigest(LOCK_FILE, name);
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
  { binaries, project, operator, base }: ImageOptions,
  { images }: Base,
): Promise<(platform: Platform) => readonly Blob[]> {
  const bundle = await bundleOperator(project, operator);
  const program = programName(project, operator);
  const notices = await readFile(`${bundle}.LEGAL.txt`).catch(undefinedIfMissing);
  const map = imageMap(await readFile(`${bundle}.map`, 'utf8'), { bundle, root: project.root, kindred: kindredFolder });
  const top = await layerOf([
    textFile(`/${program}.cjs`, await readFile(bundle)),
    textFile(`/${program}.cjs.map`, Buffer.from(map)),
    ...(notices === undefined ? [] : [textFile(`/${program}.cjs.LEGAL.txt`, notices)]),
  ]);
  const read = await Promise.all(binaries.map(readBinary));
  // OpenSSH's client refuses to run as a user without a name.
  const users = operator.image.programs?.includes('ssh') === true && base.type !== 'local' ? userFiles : [];
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

function labelsOf(project: Project, operator: ProjectOperator): Readonly<Record<string, string>> {
  const names = operator.kinds.map(({ crdName }) => crdName).toSorted();
  return {
    'org.opencontainers.image.title': `${project.name} ${programName(project, operator)}`,
    'org.opencontainers.image.description': `Reconciles ${names.join(', ')}.`,
    ...(project.license === undefined ? {} : { 'org.opencontainers.image.licenses': project.license }),
    'org.opencontainers.image.version': project.version,
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
async function archiveFileOf({ archive, push: pushed }: BuildArguments, program: string): Promise<string | undefined> {
  const file = archive ?? (pushed === undefined ? path.join('dist', `${program}.tar`) : undefined);
  return file === undefined ? undefined : archivePath(file);
}

async function archiveImage(
  file: string,
  image: Image,
  name: ImageReference,
): Promise<NonNullable<BuildResult['archive']>> {
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
  { push: pushed, output }: BuildArguments,
  {
    given,
    base,
    image,
    archive,
  }: {
    readonly given: BaseArgument;
    readonly base: Base;
    readonly image: Image;
    readonly archive: BuildResult['archive'];
  },
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
  if (output === 'json') printJson(result);
  else process.stdout.write(`${reference ?? digest}\n`);
}

function withTag(reference: ImageReference): ImageReference {
  return { ...reference, tag: reference.tag ?? 'latest' };
}
