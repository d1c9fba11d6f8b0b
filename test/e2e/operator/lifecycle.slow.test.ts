import { awayTests, leadershipTests, permissionTests, readinessTests, restartTests } from './lifecycle';
import { useTestEnv } from '../../support/test-env';

// Without streaming lists the operator lists in pages, as it must on older servers; the other files run with them.
const env = useTestEnv({ operator: false, apiServerArgs: ['--feature-gates=WatchList=false'] });
jest.setTimeout(240_000);

describe('readiness', () => readinessTests(env));
describe('restart', () => restartTests(env));
describe('away', () => awayTests(env));
describe('leadership', () => leadershipTests(env));

test('nothing was refused to the operator, and every list that is granted was asked for', async () => {
  const audit = await env.auditLog();
  expect(audit.refusals()).toEqual([]);
  expect(audit.unusedRules(env.platform.rules).filter((grant) => grant.startsWith('list '))).toEqual([]);
});

// The last one: here something is refused.
describe('permissions', () => permissionTests(env));
