import { owned } from '../../../../constructs/kube/resource-type';
import { CronTab, DemoMicroService, Foo, HelloApp, SampleResource } from '../../../../constructs/kinds';
import { changes, deletes, edits, editsDeployment, loses, makes, scales, scalesDeployment } from '../acts';
import type { Life } from '../life';

const web = ['web'];
const lostDeployment = { name: 'loss', act: loses(owned.Deployment, 'web'), objects: web };
const deletion = { name: 'delete', act: deletes('web'), objects: [], collected: true };

/** One child, whose number of pods is scaled. */
export const helloApp: Life = {
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
export const cronTab: Life = {
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
export const sampleResource: Life = {
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
export const foo: Life = {
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
