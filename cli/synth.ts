import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { App, Chart } from 'cdk8s';
import type { Construct } from 'constructs';
import { CustomResource, argoCdHealth, crdManifest } from '../constructs/crd';
import type { AnyKind } from '../constructs/kind/kind';
import { kinds, provisionerKinds } from '../constructs/kinds';
import type { KubeObject } from '../constructs/kube/kube-object';
import { Platform, defaultImage, defaultImageAdvice, provisioner, type PlatformOperator } from '../constructs/platform';
import { messageOf, undefinedIfMissing } from '../local/assets/errors';
import { version } from '../package.json';
import type { SynthArguments } from './synth-arguments';
import { CliError } from './errors';
import { helmChart } from './helm/chart';
import { yamlText } from './yaml';

/**
 * `kindred synth`: writes the platform's manifests and the samples, or the platform as a Helm chart.
 *
 * @throws CliError when the files cannot be written
 */
export async function synth(args: SynthArguments): Promise<void> {
  const { out, image, provisionerImage, ...options } = args;
  const files =
    args.format === 'helm'
      ? chart(args)
      : manifests({ ...options, ...{ kinds, provisionerKinds, provisionerImage }, image: image ?? operatorImage });
  if (args.format === 'helm') await inFolder(out, () => refuseForeignTemplates(out, files));
  for (const [name, text] of files) {
    const file = path.join(out, name);
    await inFolder(out, async () => {
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, text);
    });
    process.stdout.write(`${file}\n`);
  }
  if (image === undefined) {
    process.stderr.write(`kindred: ${defaultImageAdvice('operator', operatorImage, '--image=REF')}\n`);
  }
}

const operatorImage = defaultImage('operator', version);

function chart({ image = operatorImage, provisionerImage, ...args }: SynthArguments): ReadonlyMap<string, string> {
  const advice = (['operator', 'provisioner'] as const).map((program): readonly [string, string] => {
    const ofProgram = defaultImage(program, version);
    return [ofProgram, defaultImageAdvice(program, ofProgram, `--set ${program}.image=REF`)];
  });
  return helmChart({
    ...args,
    ...{ kinds, provisionerKinds, version, image },
    provisionerImage: provisionerImage ?? defaultImage('provisioner', version),
    provisionerEnabled: provisionerImage !== undefined,
    imageAdvice: Object.fromEntries(advice),
  });
}

/** @throws CliError when the folder of the templates holds a file of something else, which Helm would install too */
async function refuseForeignTemplates(out: string, files: ReadonlyMap<string, string>): Promise<void> {
  const present = (await readdir(path.join(out, 'templates')).catch(undefinedIfMissing)) ?? [];
  const foreign = present.filter((name) => !files.has(`templates/${name}`));
  if (foreign.length === 0) return;
  throw new CliError(
    `--out=${out}: its templates/ has ${foreign.join(', ')}, which this chart does not write and Helm would install too. ` +
      'Remove it, as what an older version wrote, or name another folder.',
  );
}

async function inFolder(out: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(
      `--out=${out} cannot be written to: ${messageOf(error)}. Name a folder that you may write to; it is made if need be.`,
      { cause: error },
    );
  }
}

/** Options of the platform's manifests. */
interface SynthOptions {
  readonly kinds: readonly AnyKind[];
  /**
   * Kinds of the provisioner. Their CRDs are written even without it; their samples are not: they would
   * create clusters.
   * @default none
   */
  readonly provisionerKinds?: readonly AnyKind[];
  /** Image of the operator. */
  readonly image: string;
  /** Image of the provisioner, which contains its tools. @default no provisioner */
  readonly provisionerImage?: string | undefined;
  /**
   * Secret in the operators' namespace with the files that a Cluster's `configPath` may name.
   * @default none
   */
  readonly provisionerConfigSecret?: string | undefined;
  /** These files by path, each with its key in the Secret. @default one file for each key */
  readonly provisionerConfigFiles?: Readonly<Record<string, string>> | undefined;
  /** Namespace of the operators. */
  readonly namespace: string;
  /** Namespace of the samples: created, with guardrails. */
  readonly samplesNamespace: string;
}

/**
 * The whole platform as YAML files, in the order for `kubectl apply -f`. The same options give the same
 * bytes.
 *
 * @testonly
 */
export function manifests(options: SynthOptions): ReadonlyMap<string, string> {
  const platform = synthPlatform(new App(), options);
  const samples = new Samples(new App(), 'samples', { kinds: options.kinds, namespace: options.samplesNamespace });
  const isCrd = ({ kind }: KubeObject): boolean => kind === 'CustomResourceDefinition';
  const unserved = options.provisionerImage === undefined ? (options.provisionerKinds ?? []) : [];
  return new Map([
    ['1-crds.yaml', yaml([...platform.filter(isCrd), ...unserved.map((kind) => crdManifest(kind))])],
    ['2-platform.yaml', yaml(platform.filter((object) => !isCrd(object)))],
    ['3-samples.yaml', yaml(samples.toJson() as KubeObject[])],
    ['argo-cd.yaml', yaml([argoCdConfig([...options.kinds, ...(options.provisionerKinds ?? [])])])],
  ]);
}

/**
 * Health checks for Argo CD. A server-side apply adds them to Argo CD's own ConfigMap and removes nothing
 * from it.
 */
function argoCdConfig(kinds: readonly AnyKind[]): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'argocd-cm', namespace: 'argocd', labels: { 'app.kubernetes.io/part-of': 'argocd' } },
    data: argoCdHealth(kinds),
  };
}

const HEADER = '# Generated by `npm run synth`. Do not edit.\n';

function yaml(objects: readonly KubeObject[]): string {
  return HEADER + objects.map(yamlText).join('---\n');
}

/** The platform's objects in the order of their dependencies. */
export function synthPlatform(app: App, options: SynthOptions): readonly KubeObject[] {
  const platform = new Platform(app, 'kindred', {
    namespace: options.namespace,
    operators: operators(options),
    guardedNamespaces: [{ name: options.samplesNamespace, create: true }],
  });
  return platform.toJson() as KubeObject[];
}

/** The operator and the provisioner, which is separate because it alone has keys to machines. */
function operators(options: SynthOptions): readonly PlatformOperator[] {
  const { kinds, image, provisionerKinds = [], provisionerImage, namespace } = options;
  const operator = { name: 'operator', image, kinds };
  if (provisionerImage === undefined || provisionerKinds.length === 0) return [operator];
  const { provisionerConfigSecret: configSecretName, provisionerConfigFiles: configFiles } = options;
  return [
    operator,
    provisioner({
      ...{ image: provisionerImage, kinds: provisionerKinds, namespace },
      ...(configSecretName === undefined ? {} : { configSecretName }),
      ...(configFiles === undefined ? {} : { configFiles }),
    }),
  ];
}

/** Props of {@link Samples}. */
interface SamplesProps {
  readonly kinds: readonly AnyKind[];
  /** Namespace of the samples of namespaced kinds. */
  readonly namespace: string;
}

/** The samples of the kinds, as objects. */
export class Samples extends Chart {
  constructor(scope: Construct, id: string, { kinds, namespace }: SamplesProps) {
    super(scope, id);
    for (const kind of kinds) {
      for (const { name, labels, spec } of kind.samples) {
        const metadata = {
          name,
          ...(kind.scope === 'Cluster' ? {} : { namespace }),
          ...(labels === undefined ? {} : { labels: { ...labels } }),
        };
        new CustomResource(this, `${kind.crdName}-${name}`, {
          kind,
          metadata,
          ...(spec === undefined ? {} : { spec }),
        });
      }
    }
  }
}
