import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { App } from 'cdk8s';
import { stringify } from 'yaml';
import { Platform } from '../../../constructs/platform';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import type { ResourceType } from '../../../constructs/kube/resource-type';
import { CertificateAuthority } from '../../../local/certificates';
import { kubeconfigClient } from '../../../testing';
import { useControlPlane } from '../../support/use-control-plane';
import { kubectlOrThrow } from '../../../testing/kubectl';
import { Shop } from '../../constructs/kind/versions-kind';
import { isReadyNow } from '../../support/assertions';
import { installKindred } from '../../support/project-folder';
import { temporaryFolder } from '../../support/temporary-folder';
import { TestEnv } from '../../support/test-env';
import { describeOnNodes } from './on-nodes';
import { OperatorPods, importOperatorImage, processOf } from './operator-pods';

jest.setTimeout(300_000);

const image = 'kindred.local/shop-operator:1';
const secretName = 'shop-webhook-tls';
const OLD_SHOPS: ResourceType = { ...Shop.type, apiVersion: 'test.example.com/v1beta1' };
const CRDS: ResourceType = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  scope: 'Cluster',
};

describeOnNodes('the conversion webhook of an operator that runs as its Deployment', () => {
  const plane = useControlPlane({ nodes: 2 });
  const env = new TestEnv(plane);
  const operator = new OperatorPods(plane, 'kindred-shops', 'shop-system');
  const shop = { namespace: '', name: 'corner' };
  const authorities = [new CertificateAuthority('first'), new CertificateAuthority('second')] as const;
  const bundleOf = (...trusted: readonly CertificateAuthority[]): string =>
    Buffer.from(trusted.map(({ certificate }) => certificate).join('')).toString('base64');

  /** The Secret with a new certificate for the webhook's Service. */
  function certificateSecret(authority: CertificateAuthority): string {
    const { certificate, key } = authority.server('webhook', ['kindred-shops-webhook.shop-system.svc']);
    const [apiVersion, kind] = ['v1', 'Secret'];
    const data = {
      'tls.crt': Buffer.from(certificate).toString('base64'),
      'tls.key': Buffer.from(key).toString('base64'),
    };
    const metadata = { name: secretName, namespace: operator.namespace };
    return JSON.stringify({ apiVersion, kind, metadata, type: 'kubernetes.io/tls', data });
  }

  const apply = (input: string): Promise<string> => kubectlOrThrow(plane, ['apply', '--server-side', '-f', '-'], input);

  /** Who signed the certificate that a pod serves. */
  function issuerServedBy(pod: string): string {
    const program = `require('node:tls').connect({ port: 9443, rejectUnauthorized: false }, function () {
      console.log(this.getPeerCertificate().issuer.CN);
      this.destroy();
    });`;
    const inPod = ['-t', String(processOf(pod)), '-n', process.execPath, '-e', program];
    return execFileSync('nsenter', inPod, { encoding: 'utf8', timeout: 10_000 }).trim();
  }

  /** Changes a Shop in its old version, which the API server has converted each time, until it is told to stop. */
  function keepConverting(): { stop(): Promise<{ readonly conversions: number; readonly errors: readonly string[] }> } {
    const stopping = new AbortController();
    const errors: string[] = [];
    let conversions = 0;
    const running = (async () => {
      while (!stopping.signal.aborted) {
        try {
          await env.patch(OLD_SHOPS, shop, { spec: { replicas: conversions % 10 } });
          conversions += 1;
        } catch (error) {
          errors.push(String(error));
        }
      }
    })();
    return {
      stop: async () => {
        stopping.abort();
        await running;
        return { conversions, errors };
      },
    };
  }

  beforeAll(async () => {
    env.client = await kubeconfigClient(plane.adminKubeconfig);
    const folder = temporaryFolder('kindred-shops-');
    installKindred(folder);
    const [kinds, program] = [
      require.resolve('../../constructs/kind/versions-kind'),
      require.resolve('./shop-operator'),
    ];
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'shop', kindred: { kinds, program } }));
    await importOperatorImage(plane, { project: folder, folder, tag: image });
    const chart = new Platform(new App(), 'shops', {
      namespace: operator.namespace,
      operators: [{ name: 'shops', image, kinds: [Shop] }],
      conversion: { certSecretName: secretName, caBundle: bundleOf(authorities[0]) },
    });
    const objects = chart.toJson() as KubeObject[];
    const yaml = (wanted: (kind: string) => boolean): string =>
      objects
        .filter(({ kind }) => wanted(kind))
        .map((object) => stringify(object))
        .join('---\n');
    await apply(yaml((kind) => ['CustomResourceDefinition', 'Namespace'].includes(kind)));
    await apply(certificateSecret(authorities[0]));
    await apply(yaml((kind) => kind !== 'CustomResourceDefinition'));
    await operator.kubectl('wait', '--for=condition=Established', 'crd', Shop.crdName);
    await operator.rolledOut();
    shop.namespace = await env.namespace('shops');
    // Ready pods are in the Service once kube-proxy has heard of them.
    await env.eventually('the Service to lead to the pods', () =>
      env.create(OLD_SHOPS, shop, { spec: { image: 'web', replicas: 3, memory: '1Gi' } }),
    );
  });
  afterAll(() => env.close());

  test('the API server reaches it through its Service, and the operator takes the object in its current version', async () => {
    const made = await env.waitUntil(Shop.type, shop, 'Ready', isReadyNow);
    expect(made.spec).toEqual({ image: 'web', size: 3, limits: { memory: '1Gi' } });
  });

  test('its certificate and the authority change, and no conversion fails', async () => {
    await env.patch(CRDS, { name: Shop.crdName }, caBundle(bundleOf(...authorities)));
    const converting = keepConverting();
    await apply(certificateSecret(authorities[1]));
    for (const { metadata } of await operator.pods())
      await env.eventually(
        `${metadata.name} to serve the new certificate`,
        () => Promise.resolve(issuerServedBy(metadata.name) === 'second' ? true : undefined),
        200_000,
      );
    await env.patch(CRDS, { name: Shop.crdName }, caBundle(bundleOf(authorities[1])));
    await env.patch(OLD_SHOPS, shop, { spec: { image: 'web:2' } });
    const { conversions, errors } = await converting.stop();
    expect(errors).toEqual([]);
    expect(conversions).toBeGreaterThan(20);
    expect((await env.get(Shop.type, shop)).spec).toMatchObject({ image: 'web:2', limits: { memory: '1Gi' } });
    const pods = await operator.pods();
    expect(pods.map(({ status }) => status?.containerStatuses?.[0]?.restartCount)).toEqual([0, 0]);
  });

  test('the operator is updated pod by pod, and no conversion fails', async () => {
    const converting = keepConverting();
    await operator.kubectl('rollout', 'restart', 'deployment/kindred-shops');
    await operator.rolledOut();
    // The old ones go on for some seconds after the new ones are ready.
    await env.eventually('the old pods to be gone', async () =>
      (await operator.kubectl('get', 'pods', '-o', 'name')).trim().split('\n').length === 2 ? true : undefined,
    );
    const { conversions, errors } = await converting.stop();
    expect(errors).toEqual([]);
    expect(conversions).toBeGreaterThan(20);
  });

  test('all of its pods start while objects are stored in an old version and nobody converts', async () => {
    const stored = async (current: string): Promise<void> => {
      const { spec } = (await env.get(CRDS, { name: Shop.crdName })) as unknown as {
        spec: { versions: { name: string }[] };
      };
      const versions = spec.versions.map((version) => ({ ...version, storage: version.name === current }));
      await env.patch(CRDS, { name: Shop.crdName }, { spec: { versions } });
    };
    await operator.kubectl('scale', 'deployment/kindred-shops', '--replicas=0');
    await env.eventually('its pods to be gone', async () =>
      (await operator.kubectl('get', 'pods', '-o', 'name')) === '' ? true : undefined,
    );
    await stored('v1beta1');
    const old = { namespace: shop.namespace, name: 'old' };
    // Nobody converts now: it is taken once it can be stored as it is.
    await env.eventually('an object to be stored in the old version', () =>
      env.create(OLD_SHOPS, old, { spec: { image: 'web' } }),
    );
    await stored('v1');
    await env.eventually('objects to need conversion', async () => {
      const { stderr } = await env.kubectl(['get', 'shop', 'old', '-n', shop.namespace]);
      return stderr.includes('conversion webhook for test.example.com/v1beta1, Kind=Shop failed') ? true : undefined;
    });
    await operator.kubectl('scale', 'deployment/kindred-shops', '--replicas=2');
    await operator.rolledOut();
    expect((await env.waitUntil(Shop.type, old, 'Ready', isReadyNow)).spec).toMatchObject({ image: 'web' });
  });

  const caBundle = (value: string): object => ({
    spec: { conversion: { webhook: { clientConfig: { caBundle: value } } } },
  });
});
