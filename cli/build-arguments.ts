import { Command, Option } from '@commander-js/extra-typings';
import type { BinarySource } from '../image/binaries';
import { isDigest, parsePlatform, type Platform } from '../image/oci';
import { parseReference, type ImageReference } from '../image/reference';
import { UsageError } from './errors';
import { collect, flagError, folder, outputOption, type TakeArguments } from './flags';

/** What an image is built on. */
export type BaseArgument =
  | { readonly type: 'registry'; readonly reference: ImageReference }
  | { readonly type: 'oci'; readonly folder: string }
  | { readonly type: 'local' };

/** The parsed arguments of `kindred build`. */
export interface BuildArguments {
  readonly command: 'build';
  /** The operator's name; undefined: the only one that is not optional. */
  readonly operator: string | undefined;
  /** Undefined: that of the operator in package.json, else {@link DEFAULT_BASE}. */
  readonly base: BaseArgument | undefined;
  /** Undefined: linux/amd64 and linux/arm64, as far as the base has them. */
  readonly platforms: readonly Platform[] | undefined;
  readonly push: ImageReference | undefined;
  /** The file to write; undefined: `dist/operator.tar`, or of several operators `dist/<name>.tar`, if nothing is pushed, else none. */
  readonly archive: string | undefined;
  /** The name in the archive; undefined: that of `push`, else the operator's default image. */
  readonly tag: ImageReference | undefined;
  readonly binaries: readonly BinarySource[];
  readonly labels: Readonly<Record<string, string>>;
  readonly updateBase: boolean;
  /** Registries on other machines that have no TLS. */
  readonly plainHttp: readonly string[];
  readonly output: 'text' | 'json';
}

/** The base of images of operators that need nothing but Node.js: no shell and no package manager. */
export const DEFAULT_BASE = 'gcr.io/distroless/nodejs22-debian12:nonroot';

/** Adds `kindred build` to the command line. */
export function addBuild(program: Command, take: TakeArguments<BuildArguments>): void {
  program.addCommand(
    buildCommand()
      .copyInheritedSettings(program)
      .action((values) => take(buildArguments(values))),
  );
}

/** The options of `kindred build`. */
function buildCommand() {
  return new Command('build')
    .description("make the operator's image, without a container engine")
    .addHelpText(
      'after',
      `
The image is the operator's bundle on a base that has Node.js. The same bundle and base give the same digest.
Prints the digest, or the name with the digest of what was pushed. Uses the credentials of docker login where a
registry asks for them. SOURCE_DATE_EPOCH sets the image's creation time (default: 1970).`,
    )
    .option('--push <ref>', 'push it, such as registry.example.com/team/kindred-operator:0.1.0', (value) =>
      nameOf('push', value),
    )
    .option(
      '--archive <file>',
      'write it, for docker load, kind load image-archive, k3d image import and ctr images import (default: dist/operator.tar if nothing is pushed)',
      (value) => folder('archive', value),
    )
    .option(
      '--tag <ref>',
      'its name in the archive (default: what is pushed, or <name of the package>-operator with its version)',
      (value) => nameOf('tag', value),
    )
    .option(
      '--base <base>',
      'what to build on: an image in a registry; oci:DIR or oci:DIR:TAG, an OCI layout in a folder; or local, made of this ' +
        `machine's Node.js, for tests and trials (default: what package.json says of the operator, else ${DEFAULT_BASE})`,
    )
    .option(
      '--update-base',
      "take the digest that the base's tag has today, and keep it in kindred.lock.json. Without it, that file decides; a base " +
        'that it does not list yet is looked up and added',
    )
    .addOption(
      new Option(
        '--platform <platform>',
        'such as linux/arm64; may be repeated (default: linux/amd64 and linux/arm64, if the base has them)',
      ).argParser(collect),
    )
    .option('--operator <name>', 'which one, of several in package.json (default: the one that is not optional)')
    .addOption(
      new Option(
        '--binary <name=source>',
        'add a program as /usr/local/bin/NAME, such as ssh: NAME=FILE or NAME=URL#sha256:...; may be ' +
          'repeated, and given once for each architecture',
      ).argParser(collect),
    )
    .addOption(
      new Option('--label <key=value>', 'such as org.opencontainers.image.revision=abc123; may be repeated').argParser(
        collect,
      ),
    )
    .addOption(
      new Option(
        '--plain-http <host>',
        'speak HTTP without TLS to this registry; may be repeated (default: to registries on this machine)',
      ).argParser(collect),
    )
    .addOption(outputOption('digest, base, platforms and archive'));
}

function buildArguments(values: ReturnType<ReturnType<typeof buildCommand>['opts']>): BuildArguments {
  const base = values.base === undefined ? undefined : baseOf(values.base);
  const updateBase = values.updateBase === true;
  if (updateBase && base !== undefined && (base.type !== 'registry' || base.reference.digest !== undefined)) {
    throw new UsageError('--update-base is only for a base with a tag in a registry: leave it out');
  }
  return {
    command: 'build',
    ...{ operator: values.operator, base, updateBase },
    platforms: platformsOf(values.platform),
    push: values.push,
    archive: values.archive,
    tag: values.tag,
    binaries: (values.binary ?? []).map(binaryOf),
    labels: Object.fromEntries((values.label ?? []).map(labelOf)),
    plainHttp: (values.plainHttp ?? []).map(hostOf),
    output: values.output,
  };
}

function reference(flag: string, value: string): ImageReference {
  try {
    return parseReference(value);
  } catch (error) {
    // The message does not show what may be a password.
    throw new UsageError(`--${flag}: ${(error as Error).message}`, { cause: error });
  }
}

/** A name for the image, whose digest is not known before it is built. */
function nameOf(flag: string, value: string): ImageReference {
  const name = reference(flag, value);
  if (name.digest === undefined) return name;
  throw new UsageError(`--${flag}: leave the digest out, because it follows from the image; a tag is fine`);
}

/** @throws UsageError when it is no base */
export function baseOf(value: string): BaseArgument {
  if (value === 'local') return { type: 'local' };
  const path = /^oci:(.*)$/s.exec(value)?.[1];
  if (path === undefined) return { type: 'registry', reference: reference('base', value) };
  if (path === '') throw flagError('base', value, 'name the folder too, as oci:DIR');
  return { type: 'oci', folder: path };
}

function platformsOf(values: readonly string[] | undefined): readonly Platform[] | undefined {
  const names = [...new Set((values ?? []).flatMap((value) => value.split(',')))];
  if (names.length === 0) return undefined;
  return names.map((name) => {
    const platform = parsePlatform(name);
    if (platform?.os === 'linux') return platform;
    throw flagError('platform', name, 'give one such as linux/amd64 or linux/arm64');
  });
}

function binaryOf(value: string): BinarySource {
  const [, name, given = ''] = /^([A-Za-z0-9][\w.-]*)=(.+)$/s.exec(value) ?? [];
  if (name === undefined) throw new UsageError('--binary: give NAME=FILE, or NAME=URL#sha256:...');
  const [, from = given, digest] = /^(.*)#([^#]*)$/s.exec(given) ?? [];
  // A URL is not shown: it may have a password in it, or be signed.
  const fail = (problem: string): never => {
    throw new UsageError(`--binary=${name}=${/^[a-z]+:\/\//i.test(from) ? 'URL' : from}: ${problem}`);
  };
  const isUrl = /^https:\/\//i.test(from);
  if (!isUrl && /^[a-z]+:\/\//i.test(from)) return fail('the URL must begin with https://');
  if (isUrl && (!URL.canParse(from) || new URL(from).username !== ''))
    return fail('give a URL with a host, and without a user or a password');
  if (digest !== undefined && !isDigest(digest))
    return fail('after the # there must be sha256: and 64 hexadecimal digits');
  if (isUrl && digest === undefined) return fail('a URL needs the checksum of the program: NAME=URL#sha256:...');
  return { name, from: isUrl ? new URL(from).href : from, digest };
}

/** The host of a registry, with its port. */
function hostOf(value: string): string {
  const isHost = /^[A-Za-z0-9[\]:.-]+$/.test(value) && URL.canParse(`http://${value}`);
  if (isHost) return value;
  throw flagError('plain-http', value, 'give the host of a registry, such as registry.example.com:5000');
}

function labelOf(value: string): readonly [string, string] {
  const [, key, text = ''] = /^([^=]+)=(.*)$/s.exec(value) ?? [];
  if (key === undefined) throw flagError('label', value, 'give KEY=VALUE');
  return [key, text];
}
