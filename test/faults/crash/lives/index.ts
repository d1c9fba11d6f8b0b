import type { Life } from '../life';
import { microServiceDeploy, sharedMicroService } from './micro-service-deploy';
import { cronTab, demoMicroService, foo, helloApp, sampleResource } from './small-kinds';

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
