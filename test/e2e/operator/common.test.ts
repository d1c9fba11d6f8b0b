import { contestTests, namespaceEndTests, ownershipTests } from './ownership';
import { restartTests, takeoverTests } from './lifecycle';
import { peopleTests, undecodableTests } from './users';
import { useTestEnv } from '../../support/test-env';

// One control plane for what is common to all kinds.
const bench = useTestEnv();
jest.setTimeout(180_000);

// First, since others leave objects behind that are not Ready. lifecycle.slow.test.ts has these on a server without streaming lists,
// and more about replicas.
describe('restart', () => restartTests(bench));
describe('leadership', () => takeoverTests(bench));
describe('ownership', () => ownershipTests(bench));
describe('people', () => peopleTests(bench));
describe('contests', () => contestTests(bench));
describe('undecodable', () => undecodableTests(bench));
describe('the end of a namespace', () => namespaceEndTests(bench));

test('nothing was refused to the operator, and it logged no error', async () => {
  expect((await bench.auditLog()).refusals()).toEqual([]);
  expect(bench.operator.log.errors()).toEqual([]);
});
