import { childTypes } from '../../../constructs/kind/kind';
import { resourceName } from '../../../constructs/kube/resource-type';
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
const env = useTestEnv();
jest.setTimeout(180_000);

describe('HelloApp', () => helloAppTests(env));
describe('DemoMicroService', () => demoMicroServiceTests(env));
describe('MicroServiceDeploy', () => {
  microServiceDeployTests(env);
  microServiceSharedTests(env);
  microServiceConfigTests(env);
  microServiceScalingTests(env);
});
describe('CronTab', () => cronTabTests(env));
describe('SampleResource', () => sampleResourceTests(env));
describe('Foo', () => fooTests(env));

test('nothing was refused to the operator, and it logged no error', async () => {
  expect((await env.auditLog()).refusals()).toEqual([]);
  expect(env.operator.log.errors()).toEqual([]);
});

test('nothing was granted in vain', async () => {
  const unused = (await env.auditLog()).unusedRules(env.platform.rules);
  // Lists are for servers without streaming ones, finalizers for an admission plugin: the operator's own tests need both.
  const elsewhere = (grant: string): boolean => grant.startsWith('list ') || grant.includes('/finalizers.');
  // A child is read when it has changed since it was cached, which comes about by chance.
  const childReads = new Set(kinds.flatMap(childTypes).map((type) => `get ${resourceName(type)}`));
  expect(unused.filter((grant) => !elsewhere(grant) && !childReads.has(grant))).toEqual([]);
});
