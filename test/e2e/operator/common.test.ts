import { contestTests, namespaceEndTests, ownershipTests } from './ownership';
import { restartTests, takeoverTests } from './lifecycle';
import { restoreTests } from './restore';
import { peopleTests, undecodableTests } from './users';
import { useTestEnv } from '../../support/test-env';

// One control plane for what is common to all kinds.
const env = useTestEnv();
jest.setTimeout(180_000);

// First, since others leave objects behind that are not Ready. lifecycle.slow.test.ts has these on a server without streaming lists,
// and more about replicas.
describe('restart', () => restartTests(env));
describe('leadership', () => takeoverTests(env));
describe('ownership', () => ownershipTests(env));
describe('a restore', () => restoreTests(env));
describe('people', () => peopleTests(env));
describe('contests', () => contestTests(env));
describe('undecodable', () => undecodableTests(env));
describe('the end of a namespace', () => namespaceEndTests(env));

test('nothing was refused to the operator, and it logged no error', async () => {
  expect((await env.auditLog()).refusals()).toEqual([]);
  expect(env.operator.log.errors()).toEqual([]);
});
