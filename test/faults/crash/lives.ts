import type { AnyKind } from '../../../constructs/kind/kind';
import {
  CronTab,
  DemoMicroService,
  Foo,
  HelloApp,
  MicroServiceDeploy,
  SampleResource,
} from '../../../constructs/kinds';
import { MANAGED_BY_LABEL } from '../../../constructs/kube/envelope';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import type { TestEnv } from '../../support/test-env';

/** Where a life takes place. */
export interface LifeContext {
  readonly env: TestEnv;
  readonly kind: AnyKind;
  readonly namespace: string;
}

/** A change that somebody makes, and what is left standing by it. */
export interface Stage {
  readonly name: string;
  /** Makes the change; it needs no operator. */
  readonly act: (scene: LifeContext) => Promise<unknown>;
  /** The names of the kind's objects that stand afterwards. */
  readonly objects: readonly string[];
  /** An object goes: what the operator does about its children, the garbage collector does too, and may be first. @default false */
  readonly collected?: boolean;
}

/** What happens to objects of a kind, from the first one's making to the last one's deletion. */
export interface Life {
  readonly name: string;
  readonly kind: AnyKind;
  readonly stages: readonly Stage[];
}

type Act = Stage['act'];

/** A user makes an object. */
function makes(name: string, spec: object): Act {
  return ({ env, kind, namespace }) => env.create(kind.type, { namespace, name }, { spec });
}

/** A user changes its spec; null takes a field out. */
function changes(name: string, spec: object): Act {
  return ({ env, kind, namespace }) => env.patchSpec(kind, { namespace, name }, spec);
}

/** A user runs `kubectl scale`. */
function scales(name: string, replicas: number): Act {
  return async ({ env, kind, namespace }) => {
    const args = ['scale', `${kind.crdName}/${name}`, `--replicas=${String(replicas)}`, '-n', namespace];
    const { code, stderr } = await env.kubectl(args);
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  };
}

/** A user deletes it. */
function deletes(name: string): Act {
  return ({ env, kind, namespace }) => env.client.delete(kind.type, { namespace, name });
}

/** An administrator changes a child behind the operator's back. */
function edits(type: ResourceType, name: string, patch: object): Act {
  return ({ env, namespace }) => env.patch(type, { namespace, name }, patch);
}

/** An administrator deletes a child. */
function loses(type: ResourceType, name: string): Act {
  return ({ env, namespace }) => env.client.delete(type, { namespace, name });
}

/** An administrator gives a Deployment another image. */
function editsDeployment(name: string, container: string): Act {
  const template = { spec: { containers: [{ name: container, image: 'stranger:1' }] } };
  return edits(owned.Deployment, name, { spec: { template } });
}

/**
 * An administrator gives a Deployment another number of pods. Not together with another image: when both are taken back while they are rolled out,
 * the Deployment controller can stand still for good, having taken note of one number and made the other.
 * Source: https://github.com/kubernetes/kubernetes/pull/138840, `isScalingEvent` and `scale` in pkg/controller/deployment/sync.go.
 */
function scalesDeployment(name: string): Act {
  return edits(owned.Deployment, name, { spec: { replicas: 4 } });
}

/** One after the other. */
function all(...acts: readonly Act[]): Act {
  return async (scene: LifeContext) => {
    for (const act of acts) await act(scene);
  };
}

const web = ['web'];
const lostDeployment = { name: 'loss', act: loses(owned.Deployment, 'web'), objects: web };
const deletion = { name: 'delete', act: deletes('web'), objects: [], collected: true };

/** One child, whose number of pods is scaled. */
const helloApp: Life = {
  name: 'HelloApp',
  kind: HelloApp,
  stages: [
    { name: 'create', act: makes('web', { image: 'nginx:1', size: 2 }), objects: web },
    { name: 'update', act: changes('web', { image: 'nginx:2' }), objects: web },
    { name: 'scale', act: scales('web', 3), objects: web },
    { name: 'drift', act: editsDeployment('web', 'helloapp'), objects: web },
    { name: 'overscaled', act: scalesDeployment('web'), objects: web },
    lostDeployment,
    deletion,
  ],
};

/** A finalizer; what is deleted, the operator deletes. */
export const demoMicroService: Life = {
  name: 'DemoMicroService',
  kind: DemoMicroService,
  stages: [
    { name: 'create', act: makes('web', { image: 'podinfo:1' }), objects: web },
    { name: 'update', act: changes('web', { image: 'podinfo:2' }), objects: web },
    { name: 'drift', act: editsDeployment('web', 'web'), objects: web },
    lostDeployment,
    { name: 'delete', act: deletes('web'), objects: [] },
  ],
};

/** Its one child is optional, and comes back under its old name. */
const cronTab: Life = {
  name: 'CronTab',
  kind: CronTab,
  stages: [
    // Once a year: no run begins while the test runs.
    { name: 'create', act: makes('web', { cronSpec: '0 0 1 1 *', image: 'job:1', timeZone: 'Etc/UTC' }), objects: web },
    { name: 'update', act: changes('web', { image: 'job:2', timeZone: null, command: ['run'] }), objects: web },
    { name: 'none', act: changes('web', { cronSpec: null, image: null }), objects: web },
    { name: 'again', act: changes('web', { cronSpec: '0 0 2 1 *', image: 'job:3' }), objects: web },
    { name: 'drift', act: edits(owned.CronJob, 'web', { spec: { suspend: true } }), objects: web },
    { name: 'loss', act: loses(owned.CronJob, 'web'), objects: web },
    deletion,
  ],
};

/** One child, one pod. */
const sampleResource: Life = {
  name: 'SampleResource',
  kind: SampleResource,
  stages: [
    { name: 'create', act: makes('web', { podImage: 'nginx:1' }), objects: web },
    { name: 'update', act: changes('web', { podImage: 'nginx:2' }), objects: web },
    { name: 'drift', act: editsDeployment('web', 'pod'), objects: web },
    lostDeployment,
    deletion,
  ],
};

/** Its child is renamed: the new one is made, then the old one is pruned. */
const foo: Life = {
  name: 'Foo',
  kind: Foo,
  stages: [
    { name: 'create', act: makes('web', { deploymentName: 'old', replicas: 1 }), objects: web },
    { name: 'update', act: changes('web', { deploymentName: 'web' }), objects: web },
    { name: 'scale', act: changes('web', { replicas: 3 }), objects: web },
    { name: 'drift', act: editsDeployment('web', 'nginx'), objects: web },
    { name: 'overscaled', act: scalesDeployment('web'), objects: web },
    lostDeployment,
    deletion,
  ],
};

const instance = {
  msName: 'shop',
  fullName: 'shop-blue',
  version: '1',
  path: 'v1',
  image: 'shop:1',
  replicas: 2,
  autoscaling: true,
  config: 'a=1',
  creationTimestamp: '1535546718115',
  resourceRequirements: { requests: { cpu: '100m' }, limits: { cpu: '1', memory: '1Gi' } },
};
const blue = ['blue'];

/** Optional children that go and come, a number of pods that changes hands, and an instance that gets another name. */
const microServiceDeploy: Life = {
  name: 'MicroServiceDeploy',
  kind: MicroServiceDeploy,
  stages: [
    { name: 'create', act: makes('blue', instance), objects: blue },
    {
      name: 'update',
      act: changes('blue', {
        ...{ image: 'shop:2', autoscaling: false, creationTimestamp: null, resourceRequirements: null },
        ...{ config: null, configSecretRef: { name: 'shop', key: 'ms.properties' } },
      }),
      objects: blue,
    },
    { name: 'scale', act: changes('blue', { replicas: 3 }), objects: blue },
    { name: 'autoscale', act: changes('blue', { autoscaling: true, replicas: 1 }), objects: blue },
    {
      name: 'rename',
      act: changes('blue', { fullName: 'shop-red', config: 'a=2', configSecretRef: null }),
      objects: blue,
    },
    { name: 'drift', act: editsDeployment('shop-red', 'shop'), objects: blue },
    { name: 'loss', act: loses(owned.ConfigMap, 'shop-red'), objects: blue },
    { name: 'delete', act: deletes('blue'), objects: [], collected: true },
  ],
};

const plain = { msName: 'shop', version: '1', path: 'v1', image: 'shop:1' };
const both = ['blue', 'green'];

/** Two instances of one service, and the children that they share. */
const sharedMicroService: Life = {
  name: 'MicroServiceDeploy-shared',
  kind: MicroServiceDeploy,
  stages: [
    { name: 'create', act: makes('blue', { ...plain, fullName: 'shop' }), objects: blue },
    { name: 'join', act: makes('green', { ...plain, fullName: 'shop-green' }), objects: both },
    {
      name: 'loss',
      act: all(loses(owned.Deployment, 'shop-green'), loses(owned.ServiceAccount, 'shop')),
      objects: both,
    },
    // After the loss, so that all that is shared has been applied when an object leaves: whether the operator or the garbage collector takes its
    // reference out makes no difference then to who owns which field.
    {
      name: 'drift',
      act: all(
        edits(owned.Service, 'shop', { spec: { selector: { app: 'stranger' } } }),
        edits(owned.ServiceAccount, 'shop', { metadata: { labels: { [MANAGED_BY_LABEL]: 'stranger' } } }),
      ),
      objects: both,
    },
    { name: 'leave', act: deletes('green'), objects: blue, collected: true },
    { name: 'delete', act: deletes('blue'), objects: [], collected: true },
  ],
};

/** Lives of the six kinds that the operator runs; the longest first, since they run side by side. */
export const lives: readonly Life[] = [
  microServiceDeploy,
  sharedMicroService,
  cronTab,
  demoMicroService,
  foo,
  helloApp,
  sampleResource,
];
