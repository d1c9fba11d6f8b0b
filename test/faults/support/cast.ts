import type { AnyKind } from '../../../constructs/kind/kind';
import {
  CronTab,
  DemoMicroService,
  Foo,
  HelloApp,
  MicroServiceDeploy,
  SampleResource,
} from '../../../constructs/kinds';

/** What one kind does in a load. */
export interface Role {
  readonly kind: AnyKind;
  /** The spec that an object begins with. */
  readonly spec: (name: string) => object;
  /** Then these are merged into it, one after the other: an update, and where the kind can scale, another size. */
  readonly changes: (name: string) => readonly [object, object];
}

/** Never while a test runs: a Job would change the status of its CronTab at a time of its own. */
const SELDOM = '0 0 29 2 *';

/** All instances of a namespace share the Service and the ServiceAccount of this name. */
const SHARED = 'service';

/** The six kinds, each with the changes that take the most writes. */
export const cast: readonly Role[] = [
  {
    kind: HelloApp,
    spec: () => ({ image: 'nginx:1', size: 1 }),
    changes: () => [{ image: 'nginx:2' }, { size: 2 }],
  },
  {
    kind: DemoMicroService,
    spec: () => ({ image: 'podinfo:1' }),
    changes: () => [{ image: 'podinfo:2' }, { image: 'podinfo:3' }],
  },
  {
    kind: MicroServiceDeploy,
    spec: (name) => ({
      ...{ msName: SHARED, fullName: name, version: '1.0', path: 'v1', image: 'service:1', replicas: 2 },
      config: 'a=1',
    }),
    // The number of pods is handed over to the autoscaler, and an instance is renamed.
    changes: (name) => [
      { autoscaling: true, config: 'a=2' },
      { autoscaling: false, replicas: 1, fullName: `${name}-renamed` },
    ],
  },
  {
    kind: CronTab,
    spec: () => ({ cronSpec: SELDOM, image: 'busybox:1' }),
    changes: () => [{ image: 'busybox:2' }, { suspend: true }],
  },
  {
    kind: SampleResource,
    spec: () => ({ podImage: 'nginx:1' }),
    changes: () => [{ podImage: 'nginx:2' }, { podImage: 'nginx:3' }],
  },
  {
    kind: Foo,
    spec: (name) => ({ deploymentName: `${name}-old`, replicas: 1 }),
    changes: (name) => [{ deploymentName: `${name}-new` }, { replicas: 2 }],
  },
];
