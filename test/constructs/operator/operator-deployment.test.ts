import { App, Chart } from 'cdk8s';
import { OperatorDeployment, alertRules, operatorArgs } from '../../../constructs/operator';
import type { OperatorDeploymentProps } from '../../../constructs/operator';
import { Outside, Plain, Rich } from '../rbac/kinds';

const props: OperatorDeploymentProps = {
  name: 'kindred-operator',
  namespace: 'kindred-system',
  image: 'registry.example.com/kindred-operator:1.0.0',
  kinds: [Rich, Plain],
};

interface Pod {
  readonly spec: {
    readonly containers: readonly {
      readonly env: unknown;
      readonly resources: unknown;
      readonly volumeMounts?: unknown;
      readonly securityContext: Readonly<Record<string, unknown>>;
    }[];
    readonly volumes?: unknown;
    readonly securityContext: Readonly<Record<string, unknown>>;
    readonly priorityClassName?: string;
  };
}
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels: Record<string, string> };
  readonly spec: { readonly template: Pod; readonly selector?: unknown; readonly ingress?: readonly unknown[] };
}

function synth(further: Partial<OperatorDeploymentProps> = {}): readonly Manifest[] {
  const chart = new Chart(new App(), 'test');
  new OperatorDeployment(chart, 'operator', { ...props, ...further });
  return chart.toJson() as readonly Manifest[];
}

function find(manifests: readonly Manifest[], kind: string): Manifest {
  const found = manifests.find((manifest) => manifest.kind === kind);
  if (found === undefined) throw new Error(`no ${kind} was made`);
  return found;
}

describe('OperatorDeployment', () => {
  test('the whole of it', () => expect(synth({ monitoring: {} })).toMatchSnapshot());

  test.each<[string, Partial<OperatorDeploymentProps>, number, string | undefined]>([
    ['none without effects', {}, 30, undefined],
    ['five minutes', { kinds: [Outside] }, 330, '--drain-seconds=300'],
    [
      'what the grace period leaves',
      { kinds: [Plain, Outside], terminationGracePeriodSeconds: 90 },
      90,
      '--drain-seconds=60',
    ],
    ['not less than a second', { kinds: [Outside], terminationGracePeriodSeconds: 10 }, 10, '--drain-seconds=1'],
    ['what the arguments say', { kinds: [Outside], args: ['--drain-seconds=3600'] }, 3630, '--drain-seconds=3600'],
  ])('the time for running steps to end: %s', (_, further, grace, flag) => {
    const { spec } = find(synth(further), 'Deployment').spec.template;
    expect(spec).toMatchObject({ terminationGracePeriodSeconds: grace });
    const flags = operatorArgs({ ...props, ...further }).filter((arg) => arg.startsWith('--drain-seconds'));
    expect(flags).toEqual(flag === undefined ? [] : [flag]);
  });

  test('every object is named, labelled and in the namespace', () => {
    for (const { kind, metadata } of synth({ monitoring: {} })) {
      expect(metadata.name).toBe(kind === 'Service' ? 'kindred-operator-metrics' : 'kindred-operator');
      expect(metadata.namespace).toBe('kindred-system');
      expect(Object.keys(metadata.labels).sort()).toEqual(
        ['component', 'instance', 'managed-by', 'name', 'part-of'].map((label) => `app.kubernetes.io/${label}`),
      );
    }
  });

  test('the pod passes the restricted Pod Security Standard', () => {
    const { spec } = find(synth({ scratch: { path: '/work', sizeMiB: 16 } }), 'Deployment').spec.template;
    expect(spec).not.toHaveProperty('hostNetwork');
    expect(spec).not.toHaveProperty('initContainers');
    expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    expect(spec.containers[0]?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      privileged: false,
      readOnlyRootFilesystem: true,
    });
  });

  test('the heap follows the memory limit, and leaves room for the scratch directory', () => {
    const heap = (further: Partial<OperatorDeploymentProps>): unknown =>
      find(synth(further), 'Deployment').spec.template.spec.containers[0]?.env;
    expect(heap({})).toEqual([
      { name: 'NODE_OPTIONS', value: '--max-old-space-size=144 --max-semi-space-size=4 --v8-pool-size=1' },
    ]);
    expect(heap({ memoryLimitMiB: 512, scratch: { path: '/work', sizeMiB: 64 } })).toEqual([
      { name: 'NODE_OPTIONS', value: '--max-old-space-size=336 --max-semi-space-size=4 --v8-pool-size=1' },
    ]);
  });

  test('a scratch directory is memory, of bounded size', () => {
    const { spec } = find(synth({ scratch: { path: '/work', sizeMiB: 16 } }), 'Deployment').spec.template;
    expect(spec.volumes).toEqual([{ name: 'scratch', emptyDir: { medium: 'Memory', sizeLimit: '16Mi' } }]);
    expect(spec.containers[0]?.volumeMounts).toEqual([{ name: 'scratch', mountPath: '/work' }]);
  });

  test('files of a Secret: one for each key, or by the paths that are told', () => {
    const volumes = (files?: Readonly<Record<string, string>>): unknown => {
      const configDirectory = { path: '/files', secretName: 'files', ...(files && { files }) };
      return find(synth({ configDirectory }), 'Deployment').spec.template.spec.volumes;
    };
    const secret = { secretName: 'files', defaultMode: 0o440 };
    expect(volumes()).toEqual([{ name: 'config', secret }]);
    const items = [{ key: 'aws.yml', path: 'clusters/aws.yml' }];
    expect(volumes({ 'clusters/aws.yml': 'aws.yml' })).toEqual([{ name: 'config', secret: { ...secret, items } }]);
    expect(() => volumes({ '../a': 'a', b: 'c/d' })).toThrow(
      /"\.\.\/a" must be a path within .*"c\/d", for "b", is no key/s,
    );
  });

  test('monitoring: each object on its own, with the labels a Prometheus selects by', () => {
    const kinds = (manifests: readonly Manifest[]): string[] => manifests.map(({ kind }) => kind);
    expect(kinds(synth())).not.toContain('PodMonitor');
    expect(kinds(synth({ monitoring: { prometheusRule: false } }))).toContain('PodMonitor');
    expect(kinds(synth({ monitoring: { prometheusRule: false } }))).not.toContain('PrometheusRule');
    expect(kinds(synth({ monitoring: { podMonitor: false } }))).not.toContain('PodMonitor');
    const rule = find(synth({ monitoring: { labels: { release: 'prometheus' } } }), 'PrometheusRule');
    expect(rule.metadata.labels).toHaveProperty('release', 'prometheus');
  });

  test('who may scrape can be narrowed', () => {
    const from = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }];
    expect(find(synth({ metricsFrom: from }), 'NetworkPolicy').spec.ingress).toEqual([
      { from, ports: [{ port: 'metrics', protocol: 'TCP' }] },
    ]);
  });

  test('the order of kinds and namespaces does not roll the pods', () => {
    const a = synth({ kinds: [Plain, Rich], watchNamespaces: ['a', 'b'] });
    expect(synth({ kinds: [Rich, Plain], watchNamespaces: ['b', 'a'] })).toEqual(a);
  });

  test('all that is wrong is said at once', () => {
    const wrong: OperatorDeploymentProps = {
      name: 'Operator',
      namespace: 'no.dots',
      image: '',
      kinds: [],
      replicas: 1.5,
      metricsPort: 80,
      cpuRequest: 'half',
      memoryLimitMiB: 100,
      watchNamespaces: [],
      scratch: { path: 'work', sizeMiB: 16 },
      leaseName: 'A',
      terminationGracePeriodSeconds: 0,
    };
    expect(() => synth(wrong)).toThrowErrorMatchingSnapshot();
    expect(() => synth({ kinds: [Plain, Plain], watchNamespaces: ['a', 'a'] })).toThrowErrorMatchingSnapshot();
  });
});

describe('operatorArgs', () => {
  test('the least', () => {
    expect(operatorArgs(props)).toEqual([
      '--kinds=plains.test.kindred.dev,riches.test.kindred.dev',
      '--leader-elect',
      '--lease-name=kindred-operator',
      '--lease-namespace=kindred-system',
      '--metrics-port=8080',
      '--log-level=info',
    ]);
  });

  test('the most', () => {
    expect(
      operatorArgs({
        ...props,
        kinds: [Plain],
        watchNamespaces: ['b', 'a'],
        leaseName: 'lease',
        metricsPort: 9090,
        logLevel: 'debug',
        args: ['--more'],
      }),
    ).toEqual([
      '--kinds=plains.test.kindred.dev',
      '--namespaces=a,b',
      '--leader-elect',
      '--lease-name=lease',
      '--lease-namespace=kindred-system',
      '--metrics-port=9090',
      '--log-level=debug',
      '--more',
    ]);
  });
});

test('every alert watches its own operator only, and says what to do', () => {
  for (const { expr, annotations } of alertRules({ name: 'a', namespace: 'b', leaseName: 'c' })) {
    const selectors = expr.match(/_(total|status|depth|bucket)\{[^}]*\}/g) ?? [];
    expect(selectors.length).toBeGreaterThan(0);
    for (const selector of selectors) expect(selector).toContain('namespace="b",job="a"');
    expect(annotations.description.length).toBeGreaterThan(40);
  }
});
