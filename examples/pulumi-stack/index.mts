import * as pulumi from '@pulumi/pulumi';
import { k8s } from 'cdk8s-plus-27';
import { HelloApp, MicroServiceDeploy } from 'kindred/constructs';
import { ConstructResources, KindComponent, PlatformComponent, outputs, resourceOptions } from 'kindred/stacks';

const config = new pulumi.Config();

// What the cluster needs once. The kubeconfig may just as well be another resource's output, such as that of a RemoteCluster.
const platform = new PlatformComponent('platform', {
  kubeconfig: config.requireSecret('kubeconfig'),
  operators: [{ name: 'operator', image: 'registry.example.com/kindred-operator:1.0.0', kinds: [HelloApp] }],
  guardedNamespaces: [{ name: 'shop', create: true }],
});

// An object of a kind, which the operator reconciles; `up` waits until it is Ready.
const web = new KindComponent(
  'web',
  { kind: HelloApp, metadata: { name: 'web', namespace: 'shop' }, spec: { image: config.require('image'), size: 3 } },
  { parent: platform },
);

// The children of an object, for a kind that no operator runs here.
const orders = new KindComponent(
  'orders',
  {
    kind: MicroServiceDeploy,
    metadata: { name: 'orders', namespace: 'shop' },
    as: 'children',
    spec: {
      ...{ msName: 'orders', fullName: 'orders-v1', version: '1.0', path: 'v1', autoscaling: true },
      image: config.require('image'),
      config: pulumi.interpolate`token=${config.requireSecret('token')}`,
    },
  },
  platform.objectOptions,
);

// Any cdk8s constructs. An Output stands where its value is wanted; a secret stays one.
const settings = new ConstructResources(
  'settings',
  {
    namespace: 'shop',
    build: (chart) => {
      const secret = new k8s.KubeSecret(chart, 'token', {
        metadata: { name: 'token' },
        stringData: { token: outputs.text(config.requireSecret('token')) },
      });
      resourceOptions(secret, { contentHashedName: true });
    },
  },
  platform.objectOptions,
);

export const { installedKinds, crdVersions } = platform;
export const resources = [web, orders, settings].flatMap((component) => [...component.resources.keys()]);
