import { useTestEnv } from '../../support/test-env';
import { crashedEverywhere } from './crashed-everywhere';
import { demoMicroService } from './lives';

// The whole lives of all kinds are in sweep.slow.test.ts. This kind has a child and a finalizer.
const env = useTestEnv({ operator: false });
const stages = ['create', 'update', 'delete'];

crashedEverywhere(env, [
  { ...demoMicroService, stages: demoMicroService.stages.filter(({ name }) => stages.includes(name)) },
]);

test('nothing was refused to the operators', async () => {
  expect((await env.auditLog()).refusals()).toEqual([]);
});
