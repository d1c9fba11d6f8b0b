import { App } from 'cdk8s';
import { stringify } from 'yaml';
import type { AnyKind } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { MIN_MEMORY_MIB } from '../../constructs/operator/node-options';
import { operatorDefaults } from '../../constructs/operator/operator-props';
import { Platform, provisioner, type PlatformOperator } from '../../constructs/platform';
import { flagsOf, operatorTemplate } from './operator-template';
import { entryLines, replaceText, templateText, value } from './template';
import { defaultValues, valuesSchema, valuesText, type ChartDefaults } from './values';

/** What a chart is made of. */
export interface ChartOptions extends ChartDefaults {
  readonly kinds: readonly AnyKind[];
  /** Kinds of the provisioner, which the chart installs on request; their CRDs are there in any case. */
  readonly provisionerKinds: readonly AnyKind[];
  /** Version of the chart and of what it installs. */
  readonly version: string;
  /** Namespace of the operators of a release in the namespace `default`. */
  readonly namespace: string;
  /** What to do about images that no registry has, by the image. */
  readonly imageAdvice: Readonly<Record<string, string>>;
}

/** Stand for names until the template names the value. They are DNS labels, as the platform demands. */
const operatorNamespace = 'helm-operator-namespace';
const guardedNamespace = 'helm-guarded-namespace';
const configSecret = 'helm-config-secret';

/**
 * The platform as a Helm chart: its files by their paths. With its default values Helm renders the objects
 * of `kindred synth`, plus the annotation by which CRDs and namespaces stay when the release is uninstalled.
 */
export function helmChart(options: ChartOptions): ReadonlyMap<string, string> {
  const { namespace } = options;
  const operator: PlatformOperator = { name: 'operator', image: options.image, kinds: options.kinds };
  const separate = provisioner({
    ...{ image: options.provisionerImage, kinds: options.provisionerKinds, namespace: operatorNamespace },
    configSecretName: configSecret,
  });
  const { memoryLimitMiB = operatorDefaults.memoryLimitMiB, scratch } = separate;
  const { logLevel } = operatorDefaults;
  const values = defaultValues(options, memoryLimitMiB);
  const objects = objectsOf(operator, separate);
  const operatorObjects = objects.operator.map((object) =>
    operatorTemplate(object, {
      values: '.Values.operator',
      logLevel,
      memoryLimitMiB: operatorDefaults.memoryLimitMiB,
    }),
  );
  const provisionerObjects = objects.provisioner.map((object) =>
    operatorTemplate(object, { values: '.Values.provisioner', logLevel, memoryLimitMiB, config: true }),
  );
  // Permissions and deadlines in the chart follow from what it sets, and from the namespaces that are watched.
  const reserved = new Set(['namespaces', ...[...objects.operator, ...objects.provisioner].flatMap(flagsOf)]);
  const namespaceText = guardedBy(CREATES_NAMESPACE, documents(objects.namespace.map(kept)));
  return new Map([
    ['Chart.yaml', chartText(options.version)],
    ['values.yaml', valuesText(values, namespace)],
    ['values.schema.json', `${JSON.stringify(valuesSchema(namespace), undefined, 2)}\n`],
    ['templates/_helpers.tpl', helpersText(namespace, scratch?.sizeMiB ?? 0, reserved)],
    ['templates/NOTES.txt', notesText(options)],
    ['templates/crds.yaml', guardedBy('.Values.crds.enabled', documents(objects.crds.map(kept)))],
    ['templates/namespace.yaml', `{{- include "kindred.validate" . }}\n${namespaceText}`],
    ['templates/guarded-namespaces.yaml', guardedNamespacesText(objects.guarded)],
    ['templates/operator.yaml', programText(operatorObjects)],
    ['templates/provisioner.yaml', guardedBy('.Values.provisioner.enabled', programText(provisionerObjects))],
  ]);
}

/** The platform's objects by the templates that they belong to. */
function objectsOf(operator: PlatformOperator, separate: PlatformOperator) {
  const platform = new Platform(new App(), 'kindred', {
    namespace: operatorNamespace,
    operators: [operator, separate],
    guardedNamespaces: [{ name: guardedNamespace, create: true }],
    monitoring: {},
  });
  const objects = platform.toJson() as KubeObject[];
  const isOf = ({ name, kinds }: PlatformOperator, { metadata }: KubeObject): boolean =>
    metadata.labels?.['app.kubernetes.io/instance'] === `kindred-${name}` ||
    kinds.some(({ crdName }) => metadata.name.startsWith(`${crdName}-`));
  const groups = {
    crds: objects.filter(({ kind }) => kind === 'CustomResourceDefinition'),
    namespace: objects.filter(({ kind, metadata }) => kind === 'Namespace' && metadata.name === operatorNamespace),
    guarded: objects.filter(({ metadata }) => [metadata.name, metadata.namespace].includes(guardedNamespace)),
    operator: objects.filter((object) => isOf(operator, object)),
    provisioner: objects.filter((object) => isOf(separate, object)),
  };
  if (Object.values(groups).reduce((sum, { length }) => sum + length, 0) === objects.length) return groups;
  throw new Error('an object of the platform belongs to no template of the chart, or to two');
}

const CREATES_NAMESPACE = 'and .Values.createNamespace (ne (include "kindred.namespace" .) .Release.Namespace)';

/** An object that stays when the release is uninstalled, since objects of users are in it or depend on it. */
function kept(object: KubeObject): KubeObject {
  const annotations = { ...object.metadata.annotations, 'helm.sh/resource-policy': 'keep' };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** Objects as text, with the namespace of the release in the place of the one that they were rendered with. */
function documents(objects: readonly KubeObject[]): string {
  const name = 'include "kindred.namespace" $';
  const inNamespace = objects.map((object) =>
    replaceText(object, operatorNamespace, (isWhole) => value(isWhole ? `${name} | quote` : name)),
  );
  return templateText(inNamespace);
}

function guardedBy(condition: string, text: string): string {
  return `{{- if ${condition} }}\n${text}{{- end }}\n`;
}

/** The template of an operator's objects. Those of the Prometheus operator are rendered on request only. */
function programText(objects: readonly KubeObject[]): string {
  const isMonitoring = ({ apiVersion }: KubeObject): boolean => apiVersion.startsWith('monitoring.coreos.com/');
  const monitoring = objects.filter(isMonitoring).map(monitoringTemplate);
  return (
    documents(objects.filter((object) => !isMonitoring(object))) +
    guardedBy('.Values.monitoring.enabled', `---\n${documents(monitoring)}`)
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

function guardedNamespacesText(objects: readonly GuardrailLike[]): string {
  const named = objects.map((object) => replaceText(object, guardedNamespace, () => value('.name | quote')));
  const namespaces = named.filter(({ kind }) => kind === 'Namespace');
  const guardrails = named.filter(({ kind }) => kind !== 'Namespace');
  const exists =
    '(eq .name $.Release.Namespace) (and $.Values.createNamespace (eq .name (include "kindred.namespace" $)))';
  return [
    '{{- range .Values.guardedNamespaces }}\n',
    guardedBy(`and .create (not (or ${exists}))`, `---\n${documents(namespaces.map(kept))}`),
    `---\n${documents(guardrails.map(guardrailTemplate))}`,
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

function chartText(version: string): string {
  return stringify({
    apiVersion: 'v2',
    name: 'kindred',
    description: 'Kubernetes kinds and the operator that reconciles them.',
    type: 'application',
    version,
    appVersion: version,
  });
}

/**
 * @param scratchMiB - memory of the provisioner that is no heap
 * @param reserved - flags that a value `args` may not have
 */
function helpersText(namespace: string, scratchMiB: number, reserved: ReadonlySet<string>): string {
  return `{{/* The namespace of the operators. */}}
{{- define "kindred.namespace" -}}
{{- if .Values.namespace }}{{ .Values.namespace }}
{{- else if eq .Release.Namespace "default" }}${namespace}
{{- else }}{{ .Release.Namespace }}
{{- end }}
{{- end }}

{{/* What values.schema.json cannot say. */}}
{{- define "kindred.validate" -}}
{{- range $name, $reserved := dict "operator" 0 "provisioner" ${scratchMiB} }}
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
{{- if and .Values.provisioner.configFiles (not .Values.provisioner.configSecret) }}
{{- fail "provisioner.configFiles: set provisioner.configSecret too, the Secret that these files come from" }}
{{- end }}
{{- range $path, $key := .Values.provisioner.configFiles }}
{{- if or (hasPrefix "/" $path) (hasPrefix ".." $path) (has ".." (splitList "/" $path)) }}
{{- fail (printf "provisioner.configFiles: %q must be a path that stays within the directory" $path) }}
{{- end }}
{{- end }}
{{- range $key, $value := .Values.monitoring.labels }}
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

function notesText({ image, provisionerImage, imageAdvice }: ChartOptions): string {
  const advice = (program: string, ofImage: string): string =>
    imageAdvice[ofImage] === undefined
      ? ''
      : `{{- if ${program === 'operator' ? '' : 'and .Values.provisioner.enabled '}(eq .Values.${program}.image ${JSON.stringify(ofImage)}) }}\n\nWARNING: ${imageAdvice[ofImage]}\n{{- end }}\n`;
  return `Kindred {{ .Chart.AppVersion }} is installed in the namespace {{ include "kindred.namespace" . }}.
${advice('operator', image)}${advice('provisioner', provisionerImage)}
{{- if and (eq (include "kindred.namespace" .) .Release.Namespace) (not (regexMatch "^(default$|kube-)" .Release.Namespace)) }}

The chart sets no Pod Security Standard for the namespace of the release. The operator's pods meet "restricted"; if nothing else runs there:

  kubectl label namespace {{ .Release.Namespace }} pod-security.kubernetes.io/enforce=restricted
{{- end }}

  kubectl -n {{ include "kindred.namespace" . }} rollout status deployment/kindred-operator
  kubectl get kindred -A

helm uninstall leaves the CRDs, with all objects of their kinds, and the namespaces that this chart created. Before it, delete the objects that have
finalizers (DemoMicroService, Cluster): without the operator, nothing removes the finalizers.
`;
}
