import { MANAGED_BY_LABEL } from '../../../../constructs/kube/envelope';
import { owned } from '../../../../constructs/kube/resource-type';
import { MicroServiceDeploy } from '../../../../constructs/kinds';
import { all, changes, deletes, edits, editsDeployment, loses, makes } from '../acts';
import type { Life } from '../life';

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
export const microServiceDeploy: Life = {
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
export const sharedMicroService: Life = {
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
