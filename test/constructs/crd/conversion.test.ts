import { App, Chart } from 'cdk8s';
import {
  CustomResourceDefinition,
  MissingConversionWebhookError,
  crdManifest,
} from '../../../constructs/crd/custom-resource-definition';
import { kinds } from '../../../constructs/kinds';
import { Shop } from '../kind/versions-kind';

const conversionWebhook = { service: { name: 'kindred-operator', namespace: 'kindred-system' }, caBundle: 'Q0E=' };

interface Spec {
  readonly conversion?: unknown;
  readonly versions: readonly {
    readonly name: string;
    readonly schema: { readonly openAPIV3Schema: { readonly properties: { readonly spec: unknown } } };
    readonly [field: string]: unknown;
  }[];
}

function specOf(manifest: unknown): Spec {
  return (manifest as { spec: Spec }).spec;
}

describe('the CRD of a kind of several versions', () => {
  const { conversion, versions } = specOf(crdManifest(Shop, { conversionWebhook }));

  test('says who converts', () => {
    expect(conversion).toEqual({
      strategy: 'Webhook',
      webhook: {
        clientConfig: {
          caBundle: 'Q0E=',
          service: { name: 'kindred-operator', namespace: 'kindred-system', path: '/convert', port: 443 },
        },
        conversionReviewVersions: ['v1'],
      },
    });
  });

  test('has them all, its own stored', () => {
    const brief = versions.map(({ name, served, storage, deprecated, deprecationWarning }) => ({
      ...{ name, served, storage, deprecated, deprecationWarning },
    }));
    expect(brief).toEqual([
      { name: 'v1', served: true, storage: true },
      {
        ...{ name: 'v1beta1', served: true, storage: false, deprecated: true },
        deprecationWarning: 'test.example.com/v1beta1 Shop goes in 2.0; use v1',
      },
      { name: 'v1alpha1', served: false, storage: false },
    ]);
  });

  test('has for each its schema, columns and rules', () => {
    const [, beta, alpha] = versions;
    expect(beta?.schema.openAPIV3Schema.properties.spec).toMatchObject({
      required: ['image'],
      properties: { replicas: {} },
    });
    expect(beta?.additionalPrinterColumns).toMatchObject([{ name: 'Replicas' }, { name: 'Ready' }, { name: 'Age' }]);
    expect(beta?.subresources).toEqual({ status: {} });
    expect(alpha?.schema.openAPIV3Schema).toMatchObject({
      'x-kubernetes-validations': [{ message: 'a shop has a name' }],
    });
  });

  test('is the same as a construct', () => {
    const crd = new CustomResourceDefinition(new Chart(new App(), 'c'), 'crd', { kind: Shop, conversionWebhook });
    expect(specOf(crd.toJson())).toEqual({ conversion, ...specOf(crdManifest(Shop, { conversionWebhook })) });
  });

  test('needs to know who converts', () => {
    const make = (): unknown => new CustomResourceDefinition(new Chart(new App(), 'c'), 'crd', { kind: Shop });
    expect(make).toThrow(MissingConversionWebhookError);
    expect(make).toThrow('the CRD of Shop has the versions v1, v1beta1, v1alpha1');
  });
});

test.each(kinds)('the CRD of $kind, of one version, converts nothing', (kind) => {
  expect(specOf(crdManifest(kind, { conversionWebhook })).conversion).toBeUndefined();
});
