import { App } from 'cdk8s';
import { stringify } from 'yaml';
import { hasEffects } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { MIN_MEMORY_MIB } from '../../constructs/operator/node-options';
import { operatorDefaults } from '../../constructs/operator/operator-props';
import { hasMultipleVersions } from '../../constructs/operator';
import { Platform, type PlatformOperator } from '../../constructs/platform';
import { operatorObjectName } from '../../constructs/platform/platform-props';
import { CliError } from '../errors';
import type { Project, ProjectOperator } from '../project';
import {
  defaultImageAdvice,
  defaultImageOf,
  platformOperator,
  type InstalledOperator,
  type ProjectPlatform,
} from '../project-platform';
import { flagsOf, operatorTemplate } from './operator-template';
import { entryLines, replaceText, templateText, value } from './template';
import { defaultValues, isReservedKey, valuesSchema, valuesText, type OperatorValues } from './values';

/** Stand for names until the template names the value. They are DNS labels, as the platform demands. */
const operatorNamespace = 'helm-operator-namespace';
const guardedNamespace = 'helm-guarded-namespace';
const configSecret = 'helm-config-secret';

/** An operator of a chart. */
interface ChartOperator {
  readonly installed: InstalledOperator;
  /** It as it is rendered, before values take the place of what it was rendered with. */
  readonly entry: PlatformOperator;
  /** The settings of the project, which become default values. */
  readonly settings: PlatformOperator;
  /** The key of its values. */
  readonly key: string;
  /** It may read files of a Secret that a value names. */
  readonly hasConfig: boolean;
}

/**
 * The platform of a project as a Helm chart: its files by their paths. With its default values Helm renders the objects of
 * `kindred synth`, plus the annotation by which CRDs and namespaces stay when the release is uninstalled.
 *
 * @throws CliError for kinds of several versions
 */
export function helmChart(platform: ProjectPlatform): ReadonlyMap<string, string> {
  assertNoConversion(platform);
  const { namespace, project } = platform;
  const operators = chartOperators(platform);
  const { logLevel } = operatorDefaults;
  const values = defaultValues(platform, operators.map(valuesOf));
  const objects = objectsOf(project.name, operators);
  const templates = operators.map(({ entry, key, hasConfig }, i) =>
    (objects.operators[i] ?? []).map((object) =>
      operatorTemplate(object, {
        ...{ values: `.Values.${key}`, logLevel, config: hasConfig },
        memoryLimitMiB: entry.memoryLimitMiB ?? operatorDefaults.memoryLimitMiB,
      }),
    ),
  );
  // Permissions and deadlines in the chart follow from what it sets, and from the namespaces that are watched.
  const reserved = new Set(['namespaces', ...objects.operators.flat().flatMap(flagsOf)]);
  const text = (objects: readonly KubeObject[]): string => documents(objects, project.name);
  const isCreated = `and .Values.createNamespace (ne (include "${project.name}.namespace" .) .Release.Namespace)`;
  return new Map([
    ['Chart.yaml', chartText(project)],
    ['values.yaml', valuesText(values, namespace)],
    ['values.schema.json', `${JSON.stringify(valuesSchema(values, namespace), undefined, 2)}\n`],
    ['templates/_helpers.tpl', helpersText(platform, operators, reserved)],
    ['templates/NOTES.txt', notesText(platform, operators)],
    ['templates/crds.yaml', guardedBy('.Values.crds.enabled', text(objects.crds.map(kept)))],
    [
      'templates/namespace.yaml',
      `{{- include "${project.name}.validate" . }}\n${guardedBy(isCreated, text(objects.namespace.map(kept)))}`,
    ],
    ['templates/guarded-namespaces.yaml', guardedNamespacesText(objects.guarded, project.name)],
    ...operators.map(({ key, installed }, i): readonly [string, string] => {
      const program = programText(templates[i] ?? [], project.name);
      const isOptional = installed.operator.optional;
      return [`templates/${key}.yaml`, isOptional ? guardedBy(`.Values.${key}.enabled`, program) : program];
    }),
  ]);
}

function assertNoConversion({ operators }: ProjectPlatform): void {
  const several = operators.flatMap(({ operator }) => operator.kinds).find(hasMultipleVersions);
  if (several === undefined) return;
  throw new CliError(
    `--format=helm: ${several.kind} has several versions, and a chart has no values for the certificate of its conversions. Write YAML, with --cert-manager.`,
  );
}

/** @throws CliError when two operators would have the same values, or those of the chart itself */
function chartOperators({ project, operators }: ProjectPlatform): readonly ChartOperator[] {
  const keys = operators.map(({ operator }) => valuesKey(project, operator));
  const twice = operators.find((_, i) => keys.indexOf(keys[i] ?? '') !== i)?.operator.name;
  if (twice !== undefined) {
    throw new CliError(
      `--format=helm: the values of ${twice} would have the name of another operator's, without hyphens. Rename it in package.json.`,
    );
  }
  return operators.map((installed) => {
    const { operator } = installed;
    const hasConfig = hasEffects(operator.kinds);
    const settings = platformOperator(
      { ...installed, configSecretName: hasConfig ? configSecret : undefined, configFiles: undefined },
      operatorNamespace,
    );
    return { installed, settings, entry: withoutValues(settings), hasConfig, key: valuesKey(project, operator) };
  });
}

/** An operator without the settings that are values of the chart, which would stand beside these. */
function withoutValues(settings: PlatformOperator): PlatformOperator {
  const values = new Set(['logLevel', 'imagePullPolicy', 'imagePullSecrets', 'priorityClassName']);
  for (const name of ['nodeSelector', 'tolerations', 'metricsFrom']) values.add(name);
  const { name, image, kinds } = settings;
  return { ...Object.fromEntries(Object.entries(settings).filter(([key]) => !values.has(key))), name, image, kinds };
}

/** The key of an operator's values: `operator` if it is the only one, else its name in camel case. */
function valuesKey({ operators }: Project, { name }: ProjectOperator): string {
  const key =
    operators.length === 1 ? 'operator' : name.replaceAll(/-+(.)/g, (_, letter: string) => letter.toUpperCase());
  if (!isReservedKey(key)) return key;
  throw new CliError(
    `--format=helm: an operator cannot be called ${name}, since the chart has a value ${key}. Rename it in package.json.`,
  );
}

function valuesOf({ installed, settings, key, hasConfig }: ChartOperator): OperatorValues {
  const { operator, image, isInstalled, configSecretName, configFiles } = installed;
  return {
    ...{ key, image, hasConfig, configSecretName, configFiles },
    kinds: operator.kinds.map(({ kind }) => kind),
    isEnabled: operator.optional ? isInstalled : undefined,
    settings: { ...operatorDefaults, ...settings },
  };
}

/** The platform's objects by the templates that they belong to. */
function objectsOf(name: string, operators: readonly ChartOperator[]) {
  const platform = new Platform(new App(), name, {
    namespace: operatorNamespace,
    operators: operators.map(({ entry }) => entry),
    guardedNamespaces: [{ name: guardedNamespace, create: true }],
    monitoring: {},
  });
  const objects = platform.toJson() as KubeObject[];
  const isOf = ({ name: operator, kinds }: PlatformOperator, { metadata }: KubeObject): boolean =>
    metadata.labels?.['app.kubernetes.io/instance'] === `kindred-${operator}` ||
    kinds.some(({ crdName }) => metadata.name.startsWith(`${crdName}-`));
  const groups = {
    crds: objects.filter(({ kind }) => kind === 'CustomResourceDefinition'),
    namespace: objects.filter(({ kind, metadata }) => kind === 'Namespace' && metadata.name === operatorNamespace),
    guarded: objects.filter(({ metadata }) => [metadata.name, metadata.namespace].includes(guardedNamespace)),
  };
  const ofOperators = operators.map(({ entry }) => objects.filter((object) => isOf(entry, object)));
  const grouped = [...Object.values(groups), ...ofOperators].reduce((sum, { length }) => sum + length, 0);
  if (grouped === objects.length) return { ...groups, operators: ofOperators };
  throw new Error('an object of the platform belongs to no template of the chart, or to two');
}

/** An object that stays when the release is uninstalled, since objects of users are in it or depend on it. */
function kept(object: KubeObject): KubeObject {
  const annotations = { ...object.metadata.annotations, 'helm.sh/resource-policy': 'keep' };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** Objects as text, with the namespace of the release in the place of the one that they were rendered with. */
function documents(objects: readonly KubeObject[], chart: string): string {
  const name = `include "${chart}.namespace" $`;
  const inNamespace = objects.map((object) =>
    replaceText(object, operatorNamespace, (isWhole) => value(isWhole ? `${name} | quote` : name)),
  );
  return templateText(inNamespace);
}

function guardedBy(condition: string, text: string): string {
  return `{{- if ${condition} }}\n${text}{{- end }}\n`;
}

/** The template of an operator's objects. Those of the Prometheus operator are rendered on request only. */
function programText(objects: readonly KubeObject[], chart: string): string {
  const isMonitoring = ({ apiVersion }: KubeObject): boolean => apiVersion.startsWith('monitoring.coreos.com/');
  const monitoring = objects.filter(isMonitoring).map(monitoringTemplate);
  return (
    documents(
      objects.filter((object) => !isMonitoring(object)),
      chart,
    ) + guardedBy('.Values.monitoring.enabled', `---\n${documents(monitoring, chart)}`)
  );
}

interface PodMonitorLike extends KubeObject {
  readonly spec: { readonly podMetricsEndpoints?: readonly object[] };
}

function monitoringTemplate(object: KubeObject): KubeObject {
  const { metadata, spec } = object as PodMonitorLike;
  const labels = {
    ...metadata.labels,
    ...entryLines('{{- with .Values.monitoring.labels }}', '{{- toYaml . | nindent +0 }}', '{{- end }}'),
  };
  const interval = value('toJson .Values.monitoring.interval');
  const podMetricsEndpoints = spec.podMetricsEndpoints?.map((endpoint) => ({ ...endpoint, interval }));
  return {
    ...object,
    metadata: { ...metadata, labels },
    spec: { ...spec, ...(podMetricsEndpoints === undefined ? {} : { podMetricsEndpoints }) },
  };
}

interface GuardrailLike extends KubeObject {
  readonly spec?: {
    readonly hard?: Readonly<Record<string, string>>;
    readonly limits?: readonly Readonly<Record<string, unknown>>[];
  };
}

function guardedNamespacesText(objects: readonly GuardrailLike[], chart: string): string {
  const named = objects.map((object) => replaceText(object, guardedNamespace, () => value('.name | quote')));
  const namespaces = named.filter(({ kind }) => kind === 'Namespace');
  const guardrails = named.filter(({ kind }) => kind !== 'Namespace');
  const exists = `(eq .name $.Release.Namespace) (and $.Values.createNamespace (eq .name (include "${chart}.namespace" $)))`;
  return [
    '{{- range .Values.guardedNamespaces }}\n',
    guardedBy(`and .create (not (or ${exists}))`, `---\n${documents(namespaces.map(kept), chart)}`),
    `---\n${documents(guardrails.map(guardrailTemplate), chart)}`,
    '{{- end }}\n',
  ].join('');
}

/** A guardrail with the numbers of the value, and its own for those that are left out. */
function guardrailTemplate(object: GuardrailLike): KubeObject {
  const numbers = (defaults: object, ...path: readonly string[]): object =>
    Object.fromEntries(
      Object.entries(defaults).map(([key, number]) => {
        const keys = [...path, key, String(number)].map((each) => `"${each}"`).join(' ');
        return [key, value(`dig ${keys} . | toString | quote`)];
      }),
    );
  const { hard, limits } = object.spec ?? {};
  if (hard !== undefined) return { ...object, spec: { hard: numbers(hard, 'quota') } };
  const groups = (limits ?? []).map((limit) =>
    Object.fromEntries(
      Object.entries(limit).map(([key, group]) => [
        key,
        typeof group === 'object' && group !== null ? numbers(group, 'containers', key) : group,
      ]),
    ),
  );
  return { ...object, spec: { limits: groups } };
}

function chartText({ name, version }: Project): string {
  return stringify({
    apiVersion: 'v2',
    name,
    description: 'Kubernetes kinds and the operator that reconciles them.',
    type: 'application',
    version,
    appVersion: version,
  });
}

/** @param reserved - flags that a value `args` may not have */
function helpersText(
  { namespace, project: { name: chart } }: ProjectPlatform,
  operators: readonly ChartOperator[],
  reserved: ReadonlySet<string>,
): string {
  // Memory of each operator that is no heap.
  const scratches = operators.map(({ key, entry }) => `"${key}" ${entry.scratch?.sizeMiB ?? 0}`).join(' ');
  const configs = operators.filter(({ hasConfig }) => hasConfig).map(({ key }) => configChecks(key));
  return `{{/* The namespace of the operators. */}}
{{- define "${chart}.namespace" -}}
{{- if .Values.namespace }}{{ .Values.namespace }}
{{- else if eq .Release.Namespace "default" }}${namespace}
{{- else }}{{ .Release.Namespace }}
{{- end }}
{{- end }}

{{/* What values.schema.json cannot say. */}}
{{- define "${chart}.validate" -}}
{{- range $name, $reserved := dict ${scratches} }}
{{- $program := get $.Values $name }}
{{- range $program.args }}
{{- if regexMatch "^--(${[...reserved].join('|')})(=|$)" . }}
{{- fail (printf "%s.args: the chart itself sets %s" $name .) }}
{{- end }}
{{- end }}
{{- $limit := int $program.memoryLimitMiB }}
{{- if gt (int $program.memoryRequestMiB) $limit }}
{{- fail (printf "%s.memoryRequestMiB: it exceeds %s.memoryLimitMiB, which is %d" $name $name $limit) }}
{{- end }}
{{- if lt (sub $limit $reserved) ${MIN_MEMORY_MIB} }}
{{- fail (printf "%s.memoryLimitMiB: it must be at least %d" $name (add ${MIN_MEMORY_MIB} $reserved)) }}
{{- end }}
{{- end }}
${configs.join('')}{{- range $key, $value := .Values.monitoring.labels }}
{{- if hasPrefix "app.kubernetes.io/" $key }}
{{- fail (printf "monitoring.labels: the chart itself sets %s" $key) }}
{{- end }}
{{- end }}
{{- if and (hasKey .Values "enabled") (not .Values.enabled) }}
{{- fail "enabled: it is for the condition of a chart that depends on this one, and switches nothing off here" }}
{{- end }}
{{- $names := list }}
{{- range .Values.guardedNamespaces }}
{{- if has .name $names }}
{{- fail (printf "guardedNamespaces: %q is listed twice; its guardrails are one set" .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{- end }}
`;
}

function configChecks(key: string): string {
  return `{{- if and .Values.${key}.configFiles (not .Values.${key}.configSecret) }}
{{- fail "${key}.configFiles: set ${key}.configSecret too, the Secret that these files come from" }}
{{- end }}
{{- range $path, $key := .Values.${key}.configFiles }}
{{- if or (hasPrefix "/" $path) (hasPrefix ".." $path) (has ".." (splitList "/" $path)) }}
{{- fail (printf "${key}.configFiles: %q must be a path that stays within the directory" $path) }}
{{- end }}
{{- end }}
`;
}

function notesText({ project }: ProjectPlatform, operators: readonly ChartOperator[]): string {
  const { name } = project;
  const advice = operators.map(({ key, installed }) => {
    const image = defaultImageOf(project, installed.operator);
    const warning = defaultImageAdvice(project, { ...installed, image }, `--set ${key}.image=REF`);
    const condition = `eq .Values.${key}.image ${JSON.stringify(image)}`;
    const isWarned = installed.operator.optional ? `and .Values.${key}.enabled (${condition})` : `(${condition})`;
    return `{{- if ${isWarned} }}\n\nWARNING: ${warning}\n{{- end }}\n`;
  });
  const rollouts = operators
    .filter(({ installed }) => !installed.operator.optional)
    .map(
      ({ entry }) =>
        `  kubectl -n {{ include "${name}.namespace" . }} rollout status deployment/${operatorObjectName(entry)}\n`,
    );
  const kinds = operators.flatMap(({ installed }) => installed.operator.kinds);
  const categories = [...new Set(kinds.flatMap((kind) => kind.categories))];
  const held = kinds.filter(({ finalizer }) => finalizer !== undefined).map(({ kind }) => kind);
  return `${name} {{ .Chart.AppVersion }} is installed in the namespace {{ include "${name}.namespace" . }}.
${advice.join('')}
{{- if and (eq (include "${name}.namespace" .) .Release.Namespace) (not (regexMatch "^(default$|kube-)" .Release.Namespace)) }}

The chart sets no Pod Security Standard for the namespace of the release. The operator's pods meet "restricted"; if nothing else runs there:

  kubectl label namespace {{ .Release.Namespace }} pod-security.kubernetes.io/enforce=restricted
{{- end }}

${rollouts.join('')}${categories.map((category) => `  kubectl get ${category} -A\n`).join('')}
helm uninstall leaves the CRDs, with all objects of their kinds, and the namespaces that this chart created.${
    held.length === 0
      ? ''
      : ` Before it, delete the objects that have
finalizers (${held.join(', ')}): without the operator, nothing removes the finalizers.`
  }
`;
}
