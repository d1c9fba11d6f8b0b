import type { AnyKind } from '../kind/kind';
import { Cluster } from './cluster';
import { CronTab } from './cron-tab';
import { DemoMicroService } from './demo-micro-service';
import { Foo } from './foo';
import { HelloApp } from './hello-app';
import { Kubeconfig } from './kubeconfig';
import { kinds } from './kinds';
import { MicroServiceDeploy } from './micro-service-deploy';
import { SampleResource } from './sample-resource';

export { Cluster, CronTab, DemoMicroService, Foo, HelloApp, Kubeconfig, MicroServiceDeploy, SampleResource, kinds };

/**
 * The kinds that the provisioner runs, the only operator with keys to machines. See `provisioner` of the
 * platform.
 */
export const provisionerKinds: readonly AnyKind[] = Object.freeze([Cluster, Kubeconfig]);

/** Every kind that Kindred comes with. */
export const allKinds: readonly AnyKind[] = Object.freeze([...kinds, ...provisionerKinds]);
