import type { KubeObject } from '../../constructs/kube/kube-object';
import { entryLines, lines, value } from './template';

/** What is read of an operator's Deployment. */
interface DeploymentLike extends KubeObject {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly Container[];
        readonly volumes?: readonly { readonly name: string; readonly secret?: object }[];
      };
    };
  };
}

interface Container {
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly volumeMounts?: readonly { readonly name: string }[];
}

interface NetworkPolicyLike extends KubeObject {
  readonly spec: { readonly ingress: readonly { readonly ports: readonly { readonly port: unknown }[] }[] };
}

/** How an operator was rendered, from which its template is made. */
export interface RenderedOperator {
  /** Where its values are: `.Values.operator`. */
  readonly values: string;
  readonly memoryLimitMiB: number;
  readonly logLevel: string;
  /** Its volume `config` is there only if the value `configSecret` is set. @default false: there is none */
  readonly config?: boolean;
}

/** An object of an operator in which the chart's values take the place of those that it was rendered with. */
export function operatorTemplate(object: KubeObject, rendered: RenderedOperator): KubeObject {
  if (object.kind === 'Deployment') return deploymentTemplate(object as DeploymentLike, rendered);
  if (object.kind === 'NetworkPolicy') return networkPolicyTemplate(object as NetworkPolicyLike, rendered);
  return object;
}

/** The flags of an operator's Deployment, without dashes and values; of another object none. */
export function flagsOf(object: KubeObject): readonly string[] {
  if (object.kind !== 'Deployment') return [];
  const { containers } = (object as DeploymentLike).spec.template.spec;
  return containers.flatMap(({ args }) => args.map((arg) => arg.replace(/^--|=.*$/g, '')));
}

function deploymentTemplate(deployment: DeploymentLike, rendered: RenderedOperator): KubeObject {
  const { values, config = false } = rendered;
  const { template } = deployment.spec;
  const { volumes, ...pod } = template.spec;
  return {
    ...deployment,
    spec: {
      ...deployment.spec,
      replicas: value(`int ${values}.replicas`),
      template: {
        ...template,
        spec: {
          ...pod,
          ...entryLines(`{{- with ${values}.priorityClassName }}`, 'priorityClassName: {{ toJson . }}', '{{- end }}'),
          ...optionalEntry(values, 'nodeSelector'),
          ...optionalEntry(values, 'tolerations'),
          ...entryLines(
            `{{- with ${values}.imagePullSecrets }}`,
            'imagePullSecrets:',
            '  {{- range . }}',
            '  - name: {{ if kindIs "string" . }}{{ toJson . }}{{ else }}{{ toJson .name }}{{ end }}',
            '  {{- end }}',
            '{{- end }}',
          ),
          containers: pod.containers.map((container) => containerTemplate(container, rendered)),
          ...(volumes === undefined ? {} : { volumes: config ? ifConfig(values, volumes) : volumes }),
        },
      },
    },
  };
}

/** An entry that is there if its value is not empty. */
function optionalEntry(values: string, key: string): Readonly<Record<string, string>> {
  return entryLines(`{{- with ${values}.${key} }}`, `${key}:`, '  {{- toYaml . | nindent +2 }}', '{{- end }}');
}

function containerTemplate(container: Container, rendered: RenderedOperator): object {
  const { values, memoryLimitMiB, logLevel, config = false } = rendered;
  const { volumeMounts } = container;
  return {
    ...container,
    image: value(`toJson ${values}.image`),
    imagePullPolicy: value(`toJson ${values}.imagePullPolicy`),
    args: [
      ...container.args.flatMap((arg) => {
        if (arg === `--log-level=${logLevel}`) return [`--log-level=${value(`${values}.logLevel`)}`];
        return config && arg.startsWith('--config-dir=') ? conditional(values, [arg]) : [arg];
      }),
      lines(`{{- range ${values}.args }}`, '- {{ toJson . }}', '{{- end }}'),
    ],
    env: container.env.map((variable) => ({
      ...variable,
      value: variable.value.replace(/(?<=--max-old-space-size=)\d+/, (size) =>
        value(`sub (int ${values}.memoryLimitMiB) ${memoryLimitMiB - Number(size)}`),
      ),
    })),
    resources: {
      limits: { memory: `${value(`int ${values}.memoryLimitMiB`)}Mi` },
      requests: {
        cpu: value(`${values}.cpuRequest | toString | quote`),
        memory: `${value(`int ${values}.memoryRequestMiB`)}Mi`,
      },
    },
    ...(volumeMounts === undefined ? {} : { volumeMounts: config ? ifConfig(values, volumeMounts) : volumeMounts }),
  };
}

/** The list, with what is named `config` only if the value `configSecret` is set. */
function ifConfig(
  values: string,
  items: readonly { readonly name: string; readonly secret?: object }[],
): readonly unknown[] {
  return items.flatMap((item): readonly unknown[] => {
    if (item.name !== 'config') return [item];
    if (item.secret === undefined) return conditional(values, [item]);
    const files = entryLines(
      `{{- with ${values}.configFiles }}`,
      'items:',
      '  {{- range $path, $key := . }}',
      '  - key: {{ toJson $key }}',
      '    path: {{ toJson $path }}',
      '  {{- end }}',
      '{{- end }}',
    );
    const secretName = value(`toJson ${values}.configSecret`);
    return conditional(values, [{ ...item, secret: { ...item.secret, secretName, ...files } }]);
  });
}

function conditional(values: string, items: readonly unknown[]): readonly unknown[] {
  return [lines(`{{- if ${values}.configSecret }}`), ...items, lines('{{- end }}')];
}

function networkPolicyTemplate(policy: NetworkPolicyLike, { values }: RenderedOperator): KubeObject {
  const [metrics, ...others] = policy.spec.ingress;
  const from = entryLines(`{{- with ${values}.metricsFrom }}`, 'from:', '  {{- toYaml . | nindent +2 }}', '{{- end }}');
  return { ...policy, spec: { ...policy.spec, ingress: [{ ...metrics, ...from }, ...others] } };
}
