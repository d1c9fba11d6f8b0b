import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { owned } from '../../../constructs/kube/resource-type';
import { OperatorProcess } from '../../../testing';
import { findCondition, hasCondition, isReadyNow } from '../../support/assertions';
import { temporaryFolder } from '../../support/temporary-folder';
import { useTestEnv } from '../../support/test-env';
import { Bucket, Region } from './bucket-operator';

// An operator with kinds that have effects, as a kind author writes it, under the permissions that are derived from the kinds.
// test/operator/run-plans.test.ts has what needs no cluster.

jest.setTimeout(120_000);

const kinds = [Bucket, Region];
const env = useTestEnv({ kinds, operator: false });
const folder = temporaryFolder('kindred-buckets-');
const program = join(folder, 'operator.cjs');
let operator: OperatorProcess;
let namespace: string;

async function start(): Promise<void> {
  operator = await OperatorProcess.start({
    file: program,
    kubeconfig: await env.plane.kubeconfigFor(env.platform.account, { expirationSeconds: 3600 }),
    args: [...env.platform.args, '--drain-seconds=5'],
    env: { ...env.platform.env, BUCKETS: folder },
  });
  await operator.waitUntilReconciling();
}

function log(): readonly string[] {
  const file = join(folder, 'log');
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
}

const runsOf = (name: string): readonly string[] => log().filter((line) => line.split(' ')[1] === name);
const bucket = (name: string) => ({ namespace, name });
const state = (name: string) => ({ namespace, name: `${name}.buckets.e2e.example.com` });

beforeAll(async () => {
  buildSync({
    entryPoints: [join(__dirname, 'bucket-operator.ts')],
    outfile: program,
    ...{ bundle: true, platform: 'node', format: 'cjs', target: 'node20', logLevel: 'error' },
  });
  namespace = await env.namespace('buckets');
  await start();
}, 120_000);

afterAll(async () => {
  await operator.kill();
});

test('what an object asks for is made, reported, and not made again by another process', async () => {
  await env.create(owned.Secret, bucket('input'), { stringData: { password: 'open sesame' } });
  await env.createOfKind(Bucket, bucket('a'), { size: 2, secretName: 'input' });
  const made = await env.waitUntil(Bucket.type, bucket('a'), 'Ready', isReadyNow);
  expect(made.status).toMatchObject({ path: join(folder, `${namespace}_a`), attempts: 1 });
  expect(hasCondition(made, 'Made', 'True')).toBe(true);
  expect(readFileSync(join(folder, `${namespace}_a`, 'size'), 'utf8')).toBe('2');
  const { metadata } = await env.get(owned.ConfigMap, state('a'));
  expect(metadata.ownerReferences).toMatchObject([{ kind: 'Bucket', name: 'a' }]);
  expect(await operator.stop()).toMatchObject({ code: 0 });
  await start();
  await env.patchSpec(Bucket, bucket('a'), { size: 3 });
  await env.eventually('the run for the new size', () => Promise.resolve(runsOf('a').length > 1 || undefined));
  await env.waitUntil(Bucket.type, bucket('a'), 'Ready', isReadyNow);
  expect(runsOf('a')).toEqual(['make a 2', 'make a 3']);
});

test('it is removed with the object, by the values that were stored, and its state goes', async () => {
  // The input may be gone by then.
  await env.client.delete(owned.Secret, bucket('input'));
  await env.deleteAndWait(Bucket.type, bucket('a'));
  expect(runsOf('a').at(-1)).toBe('remove a with the password open sesame');
  expect(existsSync(join(folder, `${namespace}_a`))).toBe(false);
  await env.waitUntilGone(owned.ConfigMap, state('a'));
});

test('it stays when the object is deleted with --cascade=orphan', async () => {
  await env.createOfKind(Bucket, bucket('kept'));
  await env.waitUntil(Bucket.type, bucket('kept'), 'Ready', isReadyNow);
  const { code, stderr } = await env.kubectl(['-n', namespace, 'delete', 'bucket', 'kept', '--cascade=orphan']);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  await env.waitUntilGone(Bucket.type, bucket('kept'));
  expect(runsOf('kept')).toEqual(['make kept 1']);
  expect(existsSync(join(folder, `${namespace}_kept`))).toBe(true);
  expect((await env.get(owned.ConfigMap, state('kept'))).metadata.ownerReferences ?? []).toEqual([]);
});

test('what a plan refuses is the reason and message of Ready', async () => {
  await env.createOfKind(Bucket, bucket('unlucky'), { size: 13 });
  const stalled = await env.waitUntil(Bucket.type, bucket('unlucky'), 'Stalled', (object) =>
    hasCondition(object, 'Stalled', 'True'),
  );
  expect(findCondition(stalled, 'Ready')).toMatchObject({ reason: 'ErrSize' });
  expect(findCondition(stalled, 'Ready')?.message).toContain('No bucket has the size 13. Name another.');
  await env.deleteAndWait(Bucket.type, bucket('unlucky'));
});

test('a process that is killed is followed by one that removes what the first one made', async () => {
  await env.createOfKind(Bucket, bucket('b'));
  await env.waitUntil(Bucket.type, bucket('b'), 'Ready', isReadyNow);
  await operator.kill();
  await env.client.delete(Bucket.type, bucket('b'));
  await start();
  await env.waitUntilGone(Bucket.type, bucket('b'));
  expect(runsOf('b')).toEqual(['make b 1', 'remove b with the password none']);
});

test('the state of a cluster-scoped object is in the namespace of the operator', async () => {
  await env.createOfKind(Region, { name: 'eu' });
  await env.waitUntil(Region.type, { name: 'eu' }, 'Ready', isReadyNow);
  const ref = { namespace: env.platform.account.namespace, name: 'eu.regions.e2e.example.com' };
  expect(await env.get(owned.Secret, ref)).toBeDefined();
  await env.deleteAndWait(Region.type, { name: 'eu' });
  await env.waitUntilGone(owned.Secret, ref);
});

test('its permissions are those that it needs: no request was refused, and none was granted for nothing', async () => {
  const audit = await env.auditLog();
  expect(audit.refusals()).toEqual([]);
  // Lists are for servers without streaming ones; the right to delete is what an admission plugin asks for (OwnerReferencesPermissionEnforcement).
  const unused = audit.unusedRules(env.platform.rules).filter((grant) => !grant.startsWith('list '));
  expect(unused).toEqual(['delete configmaps', 'delete secrets']);
  expect(operator.log.errors()).toEqual([]);
});
