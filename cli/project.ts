import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { z } from 'zod';
import type { AnyKind } from '../constructs/kind/kind';
import type { KubeObject } from '../constructs/kube/kube-object';
import type { PlatformOperator } from '../constructs/platform';
import { messageOf, undefinedIfMissing } from '../local/assets/errors';
import { CliError } from './errors';
import { kindsIn, loadModules, type Exports, type LoadedKind } from './load-modules';

/** Kindred's own folder: that of the package, or the checkout. */
export const kindredFolder = realpathSync(path.join(__dirname, '..'));

/** One operator of a project. */
export interface ProjectOperator {
  /** Its objects are called `kindred-<name>`. */
  readonly name: string;
  /** At least one. */
  readonly kinds: readonly AnyKind[];
  /** Where each of them comes from. */
  readonly loaded: readonly LoadedKind[];
  /** Its own program, which calls `main` of `kindred/operator`. @default one that runs the kinds */
  readonly program: string | undefined;
  /** It is installed on request only; the CRDs of its kinds always are. */
  readonly optional: boolean;
  /** How it runs on a cluster, besides its image. */
  readonly settings: OperatorSettings;
  /** Objects that are applied where it runs on a local control plane. @default the samples of its kinds, unless it is optional */
  readonly localSamples: LocalSamples | undefined;
  readonly image: ImageSettings;
}

/** What `kindred build` makes an operator's image of. */
interface ImageSettings {
  /** @default the base of images with nothing but Node.js */
  readonly base?: string | undefined;
  /** Programs that it needs, which a base that is made of this machine takes from there. */
  readonly programs?: readonly string[] | undefined;
  /** Programs that such a base takes if there are any. */
  readonly optionalPrograms?: readonly string[] | undefined;
}

/** Makes objects for a local control plane, of which `kubeconfig` is the text of an administrator's kubeconfig. */
type LocalSamples = (given: { readonly kubeconfig: string; readonly namespace: string }) => readonly KubeObject[];

/** What a project says of how an operator runs: the props themselves, or what makes them. */
type OperatorSettings = Partial<PlatformOperator> | ((given: GivenSettings) => PlatformOperator);

/** What is known of an operator when its settings are made. */
export interface GivenSettings extends Pick<PlatformOperator, 'name' | 'image' | 'kinds'> {
  readonly namespace: string;
  readonly configSecretName?: string;
  readonly configFiles?: Readonly<Record<string, string>>;
}

/** What the command works on: a folder with a package.json that says where the kinds are. */
export interface Project {
  /** The folder, as an absolute path. */
  readonly root: string;
  /** From the package's name: a DNS label. */
  readonly name: string;
  /** The package's version. */
  readonly version: string;
  /** The package's licence. @default none is named */
  readonly license: string | undefined;
  /** The project's own Pulumi program installs the same platform, by the configuration keys of Kindred's own. */
  readonly pulumi: boolean;
  /** The project's own files that this was read from, as absolute paths. */
  readonly sources: readonly string[];
  /** At least one. No two of them have a kind in common. */
  readonly operators: readonly ProjectOperator[];
}

const file = z.string().min(1, 'must name a file');
/** Whether the project's own Pulumi program installs the same platform, by the configuration keys of Kindred's own. */
const pulumi = z.boolean().optional();
const operatorConfig = z.strictObject({
  pulumi,
  kinds: z.union([file, z.array(file).min(1, 'must name a file')], 'must be a file or a list of files'),
  program: file.optional(),
  optional: z.boolean().optional(),
  settings: file.optional(),
  image: z
    .strictObject({
      base: z.string().min(1).optional(),
      programs: z.array(z.string()).optional(),
      optionalPrograms: z.array(z.string()).optional(),
    })
    .optional(),
});
type OperatorConfig = z.output<typeof operatorConfig>;
/** The longest name of an operator. Source: PlatformOperator, whose objects have further parts in their names. */
const MAX_NAME = 42;
const operatorName = z
  .string()
  .regex(/^[a-z]([-a-z0-9]*[a-z0-9])?$/, 'must be a DNS label that begins with a letter')
  .max(MAX_NAME);

const packageJson = z.looseObject({
  name: z.string().optional(),
  version: z.string().optional(),
  // Old packages have an object here.
  license: z.unknown().optional(),
  kindred: z.unknown().optional(),
});
type PackageJson = z.output<typeof packageJson>;

/**
 * Finds the project that a folder belongs to, and loads its kinds.
 *
 * @param from - a folder of the project
 * @throws CliError when there is none, or its kinds cannot be loaded
 */
export async function loadProject(from: string): Promise<Project> {
  const root = findRoot(path.resolve(from));
  const { name, version = '0.0.0', license, kindred } = await readPackage(root);
  assertInstalled(root);
  const label = toLabel(name ?? path.basename(root));
  const { operators: listed, pulumi: usesPulumi } = configOf(root, label, kindred);
  const configs = Object.entries(listed).map(([operator, config]) => ({
    ...config,
    name: operator,
    kinds: [config.kinds].flat().map((one) => existingFile(root, one)),
    program: config.program === undefined ? undefined : existingFile(root, config.program),
    settings: config.settings === undefined ? undefined : existingFile(root, config.settings),
  }));
  const files = [...new Set(configs.flatMap(({ kinds, settings = [] }) => [...kinds, settings].flat()))];
  const { exports: modules, sources } = await loadModules({ root, files, kindred: kindredFolder });
  const operators = configs.map((config): ProjectOperator => {
    const { kinds, program, optional = false, settings, image = {} } = config;
    const loaded = kinds.flatMap((file) => exportedKinds(modules, file, root));
    const unique = loaded.filter(({ kind }, i) => loaded.findIndex((other) => other.kind === kind) === i);
    return {
      ...{ name: config.name, program, optional, image, loaded: unique, kinds: unique.map(({ kind }) => kind) },
      ...(settings === undefined ? { settings: {}, localSamples: undefined } : settingsIn(modules, settings, root)),
    };
  });
  assertDistinct(operators, root);
  if (operators.every(({ optional }) => optional))
    throw new CliError(
      `${path.join(root, 'package.json')}: every operator is optional, so that nothing would be installed. Leave "optional" out at one.`,
    );
  return {
    ...{ root, name: label, version, operators, pulumi: usesPulumi },
    license: typeof license === 'string' ? license : undefined,
    sources: [path.join(root, 'package.json'), ...sources],
  };
}

function exportedKinds(modules: ReadonlyMap<string, Exports>, file: string, root: string): readonly LoadedKind[] {
  const kinds = kindsIn(modules.get(file) ?? {}, file);
  if (kinds.length > 0) return kinds;
  throw new CliError(
    `${path.relative(root, file)} exports no kind. Export what defineKind returns: export const Website = defineKind({ ... })`,
  );
}

function settingsIn(
  modules: ReadonlyMap<string, Exports>,
  file: string,
  root: string,
): Pick<ProjectOperator, 'settings' | 'localSamples'> {
  const { operator, localSamples } = modules.get(file) ?? {};
  if (typeof operator !== 'function' && (typeof operator !== 'object' || operator === null)) {
    throw new CliError(
      `${path.relative(root, file)} exports no settings. Export them as "operator": export const operator: Partial<PlatformOperator> = { memoryLimitMiB: 512 }`,
    );
  }
  return {
    settings: operator,
    localSamples: typeof localSamples === 'function' ? (localSamples as LocalSamples) : undefined,
  };
}

/** What an operator's image, bundle and archive are called: `operator` if it is the only one. */
export function programName({ operators }: Project, { name }: ProjectOperator): string {
  return operators.length === 1 ? 'operator' : name;
}

/** The kinds of all operators of a project. */
export function allKindsOf({ operators }: Project): readonly AnyKind[] {
  return operators.flatMap(({ kinds }) => kinds);
}

/** The nearest folder whose package.json has "kindred", else the nearest one with a package.json. */
function findRoot(from: string): string {
  const folders: string[] = [];
  for (let folder = from; ; folder = path.dirname(folder)) {
    folders.push(folder);
    if (folder === path.dirname(folder)) break;
  }
  const packages = folders.filter((folder) => existsSync(path.join(folder, 'package.json')));
  const named = packages.find((folder) =>
    /"kindred"\s*:\s*\{/.test(readFileSync(path.join(folder, 'package.json'), 'utf8')),
  );
  const found = named ?? packages[0];
  if (found !== undefined) return realpathSync(found);
  throw new CliError(
    `there is no package.json in ${from}, nor in a folder above it. Run this in the folder of your project, or name that: kindred --project=DIR`,
  );
}

async function readPackage(root: string): Promise<PackageJson> {
  const at = path.join(root, 'package.json');
  try {
    const text = (await readFile(at, 'utf8').catch(undefinedIfMissing)) ?? '';
    return packageJson.parse(JSON.parse(text.replace(/^\uFEFF/, '')));
  } catch (error) {
    const why = error instanceof z.ZodError ? problemsOf(error, '') : messageOf(error);
    throw new CliError(`${at} cannot be read: ${why}. Correct it.`, { cause: error });
  }
}

/** @throws CliError when the project has no Kindred, or another one: kinds and command must have one copy of it */
function assertInstalled(root: string): void {
  if (root === kindredFolder) return;
  let installed: string;
  try {
    installed = path.dirname(createRequire(path.join(root, 'package.json')).resolve('kindred/package.json'));
  } catch (error) {
    throw new CliError(`kindred is not installed in ${root}. Run there: npm install kindred`, { cause: error });
  }
  if (realpathSync(installed) === kindredFolder) return;
  throw new CliError(
    `${root} has kindred in ${installed}, and this is the one in ${kindredFolder}. Run the project's own: npx kindred`,
  );
}

/** What package.json says: the operators by name, and whether Pulumi installs them. */
function configOf(
  root: string,
  label: string,
  kindred: unknown,
): { readonly operators: Readonly<Record<string, OperatorConfig>>; readonly pulumi: boolean } {
  const at = path.join(root, 'package.json');
  if (kindred === undefined) {
    throw new CliError(
      `${at} does not say where the kinds are. Add "kindred": { "kinds": "FILE.ts" }, with the file that exports them.`,
    );
  }
  const isList = typeof kindred === 'object' && kindred !== null && 'operators' in kindred;
  const schema = isList
    ? z.strictObject({ operators: z.record(operatorName, operatorConfig), pulumi })
    : operatorConfig;
  const parsed = schema.safeParse(kindred);
  if (!parsed.success) {
    throw new CliError(
      `${at}: ${problemsOf(parsed.error, 'kindred')}. It must be { "kinds": "FILE.ts" }, or { "operators": { "NAME": { "kinds": "FILE.ts" } } }.`,
      { cause: parsed.error },
    );
  }
  const operators = 'operators' in parsed.data ? parsed.data.operators : { [label]: parsed.data };
  if (Object.keys(operators).length > 0) return { operators, pulumi: parsed.data.pulumi === true };
  throw new CliError(`${at}: kindred.operators is empty. List at least one operator.`);
}

function problemsOf({ issues }: z.ZodError, at: string): string {
  return issues
    .map(({ path: steps, message }) => [[at, ...steps].filter((step) => step !== '').join('.'), message].join(': '))
    .join('; ');
}

function existingFile(root: string, name: string): string {
  const found = path.resolve(root, name);
  if (existsSync(found)) return found;
  throw new CliError(`${path.join(root, 'package.json')} names ${name} under "kindred", and there is no ${found}.`);
}

/** A package's name as a DNS label: `@team/web_site` is `web-site`. */
function toLabel(name: string): string {
  const label = name
    .toLowerCase()
    .replace(/^@[^/]*\//, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, MAX_NAME)
    .replace(/-$/, '');
  if (label !== '') return label;
  throw new CliError(`no name of an operator can be made of "${name}". Give package.json a "name" that has letters.`);
}

/** @throws CliError when the API server would know two kinds by one name */
function assertDistinct(operators: readonly ProjectOperator[], root: string): void {
  const seen = new Map<string, string>();
  for (const { kind, file: from, name } of operators.flatMap(({ loaded }) => loaded)) {
    const where = `${path.relative(root, from)} (${name.replace(/^\["(.*?)"\]/, '$1')})`;
    const names = new Set([kind.crdName, `${kind.kind}.${kind.group}`]);
    for (const taken of names) {
      const before = seen.get(taken);
      if (before !== undefined) {
        throw new CliError(
          `${where}: the API server knows a kind as ${taken} already, from ${before}. Give one of them another kind, plural or group, or list it once.`,
        );
      }
    }
    for (const own of names) seen.set(own, where);
  }
}
