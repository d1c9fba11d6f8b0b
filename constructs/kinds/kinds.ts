import type { AnyKind } from '../kind/kind';
import { CronTab } from './cron-tab';
import { DemoMicroService } from './demo-micro-service';
import { Foo } from './foo';
import { HelloApp } from './hello-app';
import { MicroServiceDeploy } from './micro-service-deploy';
import { SampleResource } from './sample-resource';

export { CronTab, DemoMicroService, Foo, HelloApp, MicroServiceDeploy, SampleResource };

/**
 * The kinds that the operator runs, in the order in which they are documented. The provisioner's are not in this
 * file, so that the operator's bundle does not contain them.
 */
export const kinds: readonly AnyKind[] = Object.freeze([
  HelloApp,
  DemoMicroService,
  MicroServiceDeploy,
  CronTab,
  SampleResource,
  Foo,
]);
