import type { RenderedChild } from '../../../constructs/kind/render';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import type { ApiClient } from '../../../operator/client/api-client';
import { ApiError } from '../../../operator/client/errors';
import { waitFor } from '../../../testing/wait-for';

/** A child of each type, with as many of its fields as the API gives different merge rules. */
export function richChildren(namespace: string): readonly RenderedChild[] {
  return Object.entries(BODIES).map(([key, body]) => {
    const [apiVersion = '', kind = '', plural = ''] = key.split(' ');
    const type: ResourceType = { apiVersion, kind, plural, scope: 'Namespaced' };
    const metadata = {
      name: `rich-${kind.toLowerCase()}`,
      namespace,
      labels: { app: 'rich', tier: 'a' },
      annotations: { 'example.com/note': 'hello', 'example.com/empty': '' },
    };
    return { type, manifest: { apiVersion, kind, metadata, ...body }, seeds: [] };
  });
}

const labels = { app: 'rich', 'example.com/instance': 'one' };

/** A pod template of which every list and map has its own rule. */
const template = {
  metadata: { labels, annotations: { 'prometheus.io/scrape': 'true' } },
  spec: {
    initContainers: [
      { name: 'first', image: 'example.com/init:1', command: ['a', 'b'] },
      { name: 'second', image: 'example.com/init:2', args: [] },
    ],
    containers: [
      {
        name: 'main',
        image: 'example.com/main:1',
        args: ['--one', '--two'],
        stdin: false,
        env: [
          { name: 'PLAIN', value: 'x' },
          { name: 'EMPTY', value: '' },
          { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          { name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
        ],
        envFrom: [{ configMapRef: { name: 'settings' } }],
        ports: [
          { name: 'http', containerPort: 8080 },
          { name: 'dns', containerPort: 53, protocol: 'UDP' },
          { name: 'dns-tcp', containerPort: 53, protocol: 'TCP' },
        ],
        resources: { requests: { cpu: '1000m', memory: '64Mi' }, limits: { memory: '128Mi' } },
        livenessProbe: { httpGet: { path: '/', port: 'http', httpHeaders: [{ name: 'X', value: 'y' }] } },
        securityContext: { runAsNonRoot: true, capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] } },
        volumeMounts: [
          { name: 'tmp', mountPath: '/tmp' },
          { name: 'settings', mountPath: '/etc/settings', readOnly: true },
          { name: 'all', mountPath: '/all' },
        ],
      },
      {
        name: 'side',
        image: 'example.com/side:1',
        resources: {},
        lifecycle: { preStop: { exec: { command: ['sleep', '1'] } } },
        securityContext: { capabilities: { add: ['NET_BIND_SERVICE'] } },
        env: [{ name: 'ONLY', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }],
      },
      // Empty where the others have something.
      { name: 'bare', image: 'example.com/bare:1', securityContext: {}, env: [] },
    ],
    volumes: [
      { name: 'tmp', emptyDir: {} },
      { name: 'cache', emptyDir: { sizeLimit: '0.5Gi' } },
      { name: 'settings', configMap: { name: 'settings', items: [{ key: 'a', path: 'a' }] } },
      { name: 'all', projected: { sources: [{ secret: { name: 's' } }, { downwardAPI: {} }] } },
    ],
    nodeSelector: { 'kubernetes.io/os': 'linux' },
    tolerations: [
      { key: 'a', operator: 'Exists' },
      { key: 'b', value: 'c' },
    ],
    imagePullSecrets: [{ name: 'registry' }, { name: 'mirror' }],
    hostAliases: [{ ip: '10.0.0.1', hostnames: ['one', 'two'] }],
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: labels },
      },
    ],
    dnsConfig: { nameservers: ['10.0.0.10'] },
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'Exists' }] }],
        },
      },
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 1, podAffinityTerm: { topologyKey: 'zone', labelSelector: { matchLabels: labels } } },
        ],
      },
    },
    securityContext: {
      supplementalGroups: [1, 2],
      sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
    },
    serviceAccountName: 'rich',
    automountServiceAccountToken: false,
    hostNetwork: false,
  },
};
const jobTemplate = { ...template, spec: { ...template.spec, restartPolicy: 'Never' } };
const selector = { matchLabels: labels };
const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };

/** By `apiVersion kind plural`. */
const BODIES: Readonly<Record<string, object>> = {
  'apps/v1 Deployment deployments': { spec: { replicas: 2, selector, strategy: { type: 'Recreate' }, template } },
  'apps/v1 StatefulSet statefulsets': {
    spec: {
      replicas: 1,
      serviceName: 'rich',
      selector,
      template,
      updateStrategy: { rollingUpdate: { partition: 1 } },
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim }],
    },
  },
  'apps/v1 DaemonSet daemonsets': { spec: { selector, template, updateStrategy: { type: 'OnDelete' } } },
  'batch/v1 Job jobs': {
    spec: { backoffLimit: 2, parallelism: 2, completions: 4, suspend: true, template: jobTemplate },
  },
  'batch/v1 CronJob cronjobs': {
    spec: {
      schedule: '@hourly',
      timeZone: 'Etc/UTC',
      suspend: false,
      jobTemplate: { metadata: { labels }, spec: { backoffLimit: 0, template: jobTemplate } },
    },
  },
  'v1 Service services': {
    spec: {
      selector: labels,
      ports: [
        { name: 'http', port: 80, targetPort: 'http' },
        { name: 'dns', port: 53, protocol: 'UDP' },
      ],
      sessionAffinity: 'ClientIP',
      externalIPs: ['10.1.1.1', '10.1.1.2'],
      publishNotReadyAddresses: false,
    },
  },
  'networking.k8s.io/v1 Ingress ingresses': {
    spec: {
      ingressClassName: 'nginx',
      tls: [{ hosts: ['a.example.com', 'b.example.com'], secretName: 'tls' }],
      rules: ['a', 'b'].map((host) => ({
        host: `${host}.example.com`,
        http: {
          paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'rich', port: { number: 80 } } } }],
        },
      })),
    },
  },
  'networking.k8s.io/v1 NetworkPolicy networkpolicies': {
    spec: {
      podSelector: {},
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: [{ podSelector: selector }, { namespaceSelector: {} }], ports: [{ port: 80 }, { port: 443 }] }],
      egress: [
        { to: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }], ports: [{ port: 53, protocol: 'UDP' }] },
      ],
    },
  },
  'autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers': {
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'elsewhere' },
      minReplicas: 1,
      maxReplicas: 5,
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } },
        { type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '1Gi' } } },
      ],
      behavior: { scaleDown: { policies: [{ type: 'Pods', value: 1, periodSeconds: 60 }] } },
    },
  },
  'policy/v1 PodDisruptionBudget poddisruptionbudgets': { spec: { minAvailable: '50%', selector } },
  'rbac.authorization.k8s.io/v1 Role roles': {
    rules: [
      { apiGroups: [''], resources: ['pods', 'pods/log'], verbs: ['get', 'list'] },
      { apiGroups: ['apps'], resources: ['deployments'], resourceNames: ['rich'], verbs: ['get'] },
    ],
  },
  'rbac.authorization.k8s.io/v1 RoleBinding rolebindings': {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'rich' },
    subjects: [
      { kind: 'ServiceAccount', name: 'rich' },
      { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'rich' },
    ],
  },
  'v1 ConfigMap configmaps': { data: { a: '1', empty: '', 'long.yaml': 'a: 1\nb: 2\n' }, binaryData: { b: 'AAEC' } },
  'v1 Secret secrets': { type: 'Opaque', data: { password: 'eA==', empty: '' } },
  'v1 ServiceAccount serviceaccounts': {
    automountServiceAccountToken: false,
    imagePullSecrets: [{ name: 'registry' }, { name: 'mirror' }],
    secrets: [{ name: 'one' }, { name: 'two' }],
  },
  'v1 PersistentVolumeClaim persistentvolumeclaims': { spec: { ...claim, storageClassName: '', selector } },
  'drift.example.com/v1 Structured structureds': {
    spec: {
      env: ['A=1', 'B=2'],
      volumes: [{ path: '/a' }, { path: '/b' }],
      containers: [
        { host: 'a', port: 1, image: 'x' },
        { host: 'b', image: 'y' },
      ],
      finalizers: ['one', 'two'],
      limits: { cpu: '1', memory: '1024Mi' },
      selector: { app: 'rich' },
      atomic: { one: { a: 1 }, two: {} },
      granular: { one: { a: 1 }, two: {}, text: '', list: [], off: false, none: 0 },
      port: '80',
      free: { any: [{ deep: { er: 1 } }], more: {} },
      inner: { only: { list: ['a'] } },
    },
  },
  'drift.example.com/v1 Schemaless schemalesses': {
    spec: {
      env: ['A=1', 'B=2'],
      ports: [{ port: 80 }, { port: 443 }],
      containers: [{ name: 'a', image: 'x', env: [{ name: 'A', value: '' }] }],
      limits: { cpu: '1000m' },
      selector: {},
      nested: { deep: { text: '', list: [], off: false } },
    },
  },
};

const text = { type: 'string' };
const texts = { type: 'array', items: text };
const map = { type: 'object', additionalProperties: text };
const numbers = { type: 'object', additionalProperties: { type: 'object', properties: { a: { type: 'integer' } } } };

/** The schemas of the custom types' specs. */
const CUSTOM_SPECS: Readonly<Record<string, object>> = {
  Structured: {
    type: 'object',
    properties: {
      env: texts,
      volumes: {
        type: 'array',
        items: { type: 'object', properties: { path: text, mode: { type: 'integer', default: 420 } } },
      },
      containers: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['host', 'port'],
        items: {
          type: 'object',
          required: ['host'],
          properties: { host: text, port: { type: 'integer', default: 80 }, image: text },
        },
      },
      finalizers: { ...texts, 'x-kubernetes-list-type': 'set' },
      limits: map,
      selector: { ...map, 'x-kubernetes-map-type': 'atomic' },
      atomic: { ...numbers, 'x-kubernetes-map-type': 'atomic' },
      granular: {
        type: 'object',
        properties: {
          one: { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer', default: 7 } } },
          two: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          text,
          list: texts,
          off: { type: 'boolean' },
          none: { type: 'integer' },
          late: { type: 'string', default: 'later' },
        },
      },
      port: { 'x-kubernetes-int-or-string': true },
      free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      inner: { type: 'object', properties: { only: { type: 'object', properties: { list: texts } } } },
    },
  },
  Schemaless: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
};

const CRDS: ResourceType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
};

/** Creates the CRDs of the custom types, and waits until they are served. */
export async function installCustomTypes(client: ApiClient): Promise<void> {
  for (const [kind, spec] of Object.entries(CUSTOM_SPECS)) await installCrd(client, kind, spec);
}

async function installCrd(client: ApiClient, kind: string, spec: object): Promise<void> {
  const plural = `${kind.toLowerCase()}${kind.endsWith('s') ? 'es' : 's'}`;
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
  const body = {
    apiVersion: CRDS.apiVersion,
    kind: CRDS.kind,
    metadata: { name: `${plural}.drift.example.com` },
    spec: {
      group: 'drift.example.com',
      scope: 'Namespaced',
      names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  };
  await client.create(CRDS, body, { fieldManager: 'e2e' });
  const type: ResourceType = { apiVersion: 'drift.example.com/v1', kind, plural, scope: 'Namespaced' };
  await waitFor(() => client.list(type, { namespace: 'default' }).then(isServed, isNotServedYet));
}

const isServed = (): boolean => true;

function isNotServedYet(error: unknown): boolean {
  if (error instanceof ApiError && error.code === 404) return false;
  throw error;
}
