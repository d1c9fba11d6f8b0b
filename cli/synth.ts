import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { App, Chart } from 'cdk8s';
import type { Construct } from 'constructs';
import { CustomResource, argoCdHealth, crdManifest } from '../constructs/crd';
import type { AnyKind } from '../constructs/kind/kind';
import type { KubeObject } from '../constructs/kube/kube-object';
import { hasMultipleVersions } from '../constructs/operator';
import { Platform, type PlatformConversion } from '../constructs/platform';
import { messageOf, undefinedIfMissing } from '../local/assets/errors';
import type { SynthArguments } from './synth-arguments';
import { CliError } from './errors';
import { printJson } from './flags';
import { helmChart } from './helm/chart';
import type { Project } from './project';
import {
  assertConversion,
  defaultImageAdvice,
  isMeantAnyway,
  platformOperator,
  projectPlatform,
  type ProjectPlatform,
} from './project-platform';
import { yamlText } from './yaml';

/**
 * `kindred synth`: writes the platform's manifests and the samples, or the platform as a Helm chart.
 *
 * @throws CliError when the files cannot be written
 */
export async function synth(args: SynthArguments, project: Project): Promise<void> {
  const { out, format, output } = args;
  const platform = projectPlatform(project, args);
  const files = format === 'helm' ? helmChart(platform) : manifests(platform);
  if (format === 'helm') await inFolder(out, () => refuseForeignTemplates(out, files));
  for (const [name, text] of files) {
    const file = path.join(out, name);
    await inFolder(out, async () => {
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, text);
    });
    if (output === 'text') process.stdout.write(`${file}\n`);
  }
  if (output === 'json') printJson({ files: [...files.keys()].map((name) => path.join(out, name)) });
  for (const installed of platform.operators.filter((one) => one.isInstalled && one.isDefaultImage)) {
    const name = isMeantAnyway(project, installed.operator) ? '' : `${installed.operator.name}=`;
    process.stderr.write(`kindred: ${defaultImageAdvice(project, installed, `--image=${name}REF`)}\n`);
  }
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

/**
 * The whole platform as YAML files, in the order for `kubectl apply -f`. The same project gives the same bytes.
 *
 * @throws CliError when a kind has several versions that nobody would convert
 * @testonly
 */
export function manifests(platform: ProjectPlatform): ReadonlyMap<string, string> {
  const objects = synthPlatform(new App(), platform);
  const { operators, samplesNamespace: namespace } = platform;
  const samples = new Samples(new App(), 'samples', { kinds: kindsWithSamples(platform), namespace });
  const isCrd = ({ kind }: KubeObject): boolean => kind === 'CustomResourceDefinition';
  const absent = operators.filter(({ isInstalled }) => !isInstalled).map(({ operator }) => operator);
  for (const { name, kinds } of absent) {
    const several = kinds.find(hasMultipleVersions);
    if (several === undefined) continue;
    throw new CliError(
      `${several.kind} has several versions, which its operator converts, and ${name} is installed on request only: name its image too, --image=${name}=REF`,
    );
  }
  const unserved = absent.flatMap(({ kinds }) => kinds);
  return new Map([
    ['1-crds.yaml', yaml([...objects.filter(isCrd), ...unserved.map((kind) => crdManifest(kind))])],
    ['2-platform.yaml', yaml(objects.filter((object) => !isCrd(object)))],
    ['3-samples.yaml', yaml(samples.toJson() as KubeObject[])],
    ['argo-cd.yaml', yaml([argoCdConfig(operators.flatMap(({ operator }) => operator.kinds))])],
  ]);
}

/** The kinds whose samples are applied. Those of an optional operator are not: it acts on something of which there may be none. */
export function kindsWithSamples({ operators }: ProjectPlatform): readonly AnyKind[] {
  return operators.filter(({ operator }) => !operator.optional).flatMap(({ operator }) => operator.kinds);
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

const HEADER = '# Generated by `kindred synth`. Do not edit.\n';

function yaml(objects: readonly KubeObject[]): string {
  return HEADER + objects.map(yamlText).join('---\n');
}

/**
 * The platform's objects in the order of their dependencies.
 *
 * @param given - the certificates of the conversion webhooks, if cert-manager does not issue them
 * @throws CliError when a kind has several versions, and there are no certificates
 */
export function synthPlatform(app: App, platform: ProjectPlatform, given?: PlatformConversion): readonly KubeObject[] {
  const { namespace, samplesNamespace, operators, certManager, project } = platform;
  const conversion = given ?? (certManager ? { certManager: {} } : undefined);
  if (conversion === undefined) assertConversion(platform);
  const chart = new Platform(app, project.name, {
    namespace,
    operators: operators
      .filter(({ isInstalled }) => isInstalled)
      .map((installed) => platformOperator(installed, namespace)),
    guardedNamespaces: [{ name: samplesNamespace, create: true }],
    ...(conversion === undefined ? {} : { conversion }),
  });
  return chart.toJson() as KubeObject[];
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
