import { childTypes } from '../../../constructs/kind/kind';
import { groupOf, type ResourceType } from '../../../constructs/kube/resource-type';
import { kinds } from '../../../constructs/kinds';
import { useTestEnv } from '../../support/test-env';
import { cronTabTests } from './cron-tab';
import { demoMicroServiceTests } from './demo-micro-service';
import { fooTests } from './foo';
import { helloAppTests } from './hello-app';
import { microServiceConfigTests } from './micro-service-config';
import { microServiceDeployTests } from './micro-service-deploy';
import { microServiceScalingTests } from './micro-service-scaling';
import { microServiceSharedTests } from './micro-service-shared';
import { sampleResourceTests } from './sample-resource';

// One control plane for all of them: starting one takes longer than most of these tests.
const bench = useTestEnv();
jest.setTimeout(180_000);

describe('HelloApp', () => helloAppTests(bench));
describe('DemoMicroService', () => demoMicroServiceTests(bench));
describe('MicroServiceDeploy', () => {
  microServiceDeployTests(bench);
  microServiceSharedTests(bench);
  microServiceConfigTests(bench);
  microServiceScalingTests(bench);
});
describe('CronTab', () => cronTabTests(bench));
describe('SampleResource', () => sampleResourceTests(bench));
describe('Foo', () => fooTests(bench));

test('nothing was refused to the operator, and it logged no error', async () => {
  expect((await bench.auditLog()).refusals()).toEqual([]);
  expect(bench.operator.log.errors()).toEqual([]);
});

test('nothing was granted in vain', async () => {
  const unused = (await bench.auditLog()).unusedRules(bench.platform.rules);
  // Lists are for servers without streaming ones, finalizers for an admission plugin: the operator's own tests need both.
  const elsewhere = (grant: string): boolean => grant.startsWith('list ') || grant.includes('/finalizers.');
  // A child is read when it has changed since it was cached, which comes about by chance.
  const childReads = new Set(kinds.flatMap(childTypes).map((type) => `get ${resourceOf(type)}`));
  expect(unused.filter((grant) => !elsewhere(grant) && !childReads.has(grant))).toEqual([]);
});

/** A type as the audit names it: `deployments.apps`. */
function resourceOf(type: ResourceType): string {
  const group = groupOf(type);
  return group === '' ? type.plural : `${type.plural}.${group}`;
}
