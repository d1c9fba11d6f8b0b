import { App, Chart } from 'cdk8s';
import {
  InvalidPropsError,
  OperatorDeployment,
  operatorArgs,
  type OperatorDeploymentProps,
} from '../../../constructs/operator';
import { Platform, type PlatformProps } from '../../../constructs/platform';
import { Shop } from '../kind/versions-kind';
import { Plain } from '../rbac/kinds';

const image = 'registry.example.com/kindred-operator:1.0.0';
const conversion = { certSecretName: 'webhook-tls' };
const own = { ...conversion, caBundle: 'LS0tLS1CRUdJTg==' };
const props: OperatorDeploymentProps = { name: 'shops', namespace: 'kindred-system', image, kinds: [Shop], conversion };

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Record<string, string> };
  readonly spec: Record<string, unknown>;
}

function synth(further: Partial<OperatorDeploymentProps> = {}): readonly Manifest[] {
  const chart = new Chart(new App(), 'test');
  new OperatorDeployment(chart, 'operator', { ...props, ...further });
  return chart.toJson() as readonly Manifest[];
}

function platform(further: Partial<PlatformProps>): readonly Manifest[] {
  const operators = [
    { name: 'shops', image, kinds: [Shop] },
    { name: 'plain', image, kinds: [Plain] },
  ];
  return new Platform(new App(), 'kindred', { operators, ...further }).toJson() as readonly Manifest[];
}

function problemsOf(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (error) {
    if (error instanceof InvalidPropsError) return error.problems.map(({ path, message }) => `${path}: ${message}`);
    throw error;
  }
  return [];
}

const titles = (manifests: readonly Manifest[]): string[] =>
  manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
const find = (manifests: readonly Manifest[], title: string): Manifest | undefined =>
  manifests.find(({ kind, metadata }) => `${kind} ${metadata.name}` === title);

describe('an operator of a kind with several versions', () => {
  test('the whole of what it has besides', () => {
    const plain = synth({ kinds: [Plain] }).map((manifest) => JSON.stringify(manifest));
    expect(synth().filter((manifest) => !plain.includes(JSON.stringify(manifest)))).toMatchSnapshot();
  });

  test('its Service leads to pods that are ready, since it would lead to those that stop, too', () => {
    expect(find(synth(), 'Service shops-webhook')?.spec).toEqual({
      type: 'ClusterIP',
      selector: expect.any(Object) as object,
      ports: [{ name: 'webhook', port: 443, targetPort: 'webhook', protocol: 'TCP' }],
    });
  });

  test('the port is on the command line and on the container', () => {
    const manifests = synth({ conversion: { ...conversion, port: 10_250 }, scratch: { path: '/work', sizeMiB: 16 } });
    const { template } = find(manifests, 'Deployment shops')?.spec as { template: unknown };
    expect(template).toMatchObject({
      spec: {
        securityContext: { fsGroup: 65532 },
        containers: [{ ports: [{ name: 'metrics' }, { name: 'webhook', containerPort: 10_250 }] }],
        volumes: [{ name: 'scratch' }, { name: 'webhook-tls', secret: { secretName: 'webhook-tls' } }],
      },
    });
    expect(JSON.stringify(template)).toContain('"--webhook-port=10250","--webhook-cert-dir=/etc/kindred/webhook-tls"');
  });

  test('needs a certificate', () => {
    expect(problemsOf(() => synth({ conversion: undefined }))).toEqual([
      'conversion: shops.test.example.com has several versions: say with which certificate the operator is to convert between them',
    ]);
    const wrong = { certSecretName: 'No', port: 443 };
    expect(problemsOf(() => synth({ conversion: wrong }))).toEqual([
      expect.stringContaining('conversion.certSecretName: "No" must'),
      'conversion.port: 443 must be an integer from 1024 to 65535',
    ]);
    expect(problemsOf(() => synth({ conversion: { ...conversion, port: 8080 } }))).toEqual([
      'conversion.port: 8080 is the metrics port already',
    ]);
  });
});

test('an operator of kinds with one version is the same with and without a certificate', () => {
  expect(synth({ kinds: [Plain] })).toEqual(synth({ kinds: [Plain], conversion: undefined }));
  expect(operatorArgs({ ...props, kinds: [Plain] }).join()).not.toContain('webhook');
  const operators = [{ name: 'plain', image, kinds: [Plain] }];
  expect(platform({ operators, conversion: { certManager: {} } })).toEqual(platform({ operators }));
});

describe('a platform', () => {
  test('with a certificate of its own: the CRD names the Service and the authority', () => {
    const manifests = platform({ conversion: { ...own, port: 10_250 } });
    expect(find(manifests, 'CustomResourceDefinition shops.test.example.com')?.spec).toMatchObject({
      conversion: {
        strategy: 'Webhook',
        webhook: {
          clientConfig: {
            caBundle: own.caBundle,
            service: { name: 'kindred-shops-webhook', namespace: 'kindred-system', path: '/convert', port: 443 },
          },
        },
      },
    });
    expect(titles(manifests)).toContain('Service kindred-shops-webhook');
    expect(titles(manifests)).not.toContain('Service kindred-plain-webhook');
    expect(titles(manifests).join()).not.toContain('Certificate');
  });

  test('with cert-manager: an authority, a certificate, and the annotation by which the CRD gets its caBundle', () => {
    const manifests = platform({ conversion: { certManager: {} } });
    const crd = find(manifests, 'CustomResourceDefinition shops.test.example.com');
    expect(crd?.metadata.annotations).toEqual({
      'cert-manager.io/inject-ca-from': 'kindred-system/kindred-shops-webhook',
    });
    expect(JSON.stringify(crd?.spec)).not.toContain('caBundle');
    const plain = find(manifests, 'CustomResourceDefinition plains.test.kindred.dev');
    expect(plain?.metadata.annotations).toBeUndefined();
    expect(manifests.filter(({ kind }) => /^(Certificate|Issuer)$/.test(kind))).toMatchSnapshot();
    const order = titles(manifests);
    expect(order.indexOf('Certificate kindred-shops-webhook')).toBeGreaterThan(
      order.indexOf('Namespace kindred-system'),
    );
    expect(order.indexOf('Certificate kindred-shops-webhook')).toBeLessThan(order.indexOf('Deployment kindred-shops'));
  });

  test('with an issuer of yours: only the certificate', () => {
    const issuerRef = { name: 'company', kind: 'ClusterIssuer' } as const;
    const manifests = platform({ conversion: { certManager: { issuerRef } } });
    expect(manifests.filter(({ kind }) => /^(Certificate|Issuer)$/.test(kind))).toMatchObject([
      { kind: 'Certificate', spec: { issuerRef: { group: 'cert-manager.io', ...issuerRef } } },
    ]);
  });

  test('refuses several versions without a certificate, and authorities that are none', () => {
    expect(problemsOf(() => platform({}))).toEqual([
      'conversion: an operator has to convert between the versions of shops.test.example.com, and needs a certificate to ' +
        'serve that: set { certManager: {} }, or { certSecretName, caBundle } for one of your own',
    ]);
    const withBundle = (caBundle: string) => problemsOf(() => platform({ conversion: { ...own, caBundle } }));
    expect(withBundle('-----BEGIN CERTIFICATE-----')).toEqual([expect.stringContaining('it is PEM: encode')]);
    expect(withBundle('?')).toEqual(['conversion.caBundle: it must be PEM certificates, encoded in base64']);
    expect(withBundle('LS0t\nLS1C')).toEqual([]);
    expect(problemsOf(() => platform({ conversion: { ...own, certSecretName: '', port: 1 } }))).toHaveLength(2);
  });
});
