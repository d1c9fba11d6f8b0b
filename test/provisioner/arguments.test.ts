import { Cluster, HelloApp, Kubeconfig } from '../../constructs/kinds';
import { UsageError, parseArguments } from '../../operator/arguments';
import { parseProvisionerArguments, provisionerUsage, type ProvisionerArguments } from '../../provisioner/arguments';

const known = [HelloApp, Cluster, Kubeconfig];
const defaults = [Cluster, Kubeconfig];

function parsed(...argv: string[]): ProvisionerArguments {
  const result = parseProvisionerArguments(argv, known, defaults);
  if (result === 'help') throw new Error('only help was asked for');
  return result;
}

test('runs the kinds that act on machines by default, and others when they are named', () => {
  expect(parsed().kinds).toEqual(defaults);
  expect(parsed(`--kinds=${HelloApp.crdName},${Cluster.crdName}`).kinds).toEqual([HelloApp, Cluster]);
});

test('its own options have defaults', () => {
  expect(parsed()).toMatchObject({ secretNamespaces: [], runs: 4, drainSeconds: 3600, trustOnFirstUse: true });
  const { stateNamespace, configDir, keyDir } = parsed();
  expect([stateNamespace, configDir, keyDir]).toEqual([undefined, undefined, undefined]);
});

test("takes its own options and every operator's", () => {
  const argv = [
    '--state-namespace=vault',
    '--secret-namespaces=a, b,a',
    '--config-dir=/config',
    '--key-dir=/keys',
    '--runs=1',
    '--drain-seconds=60',
    '--require-host-keys',
    '--concurrency=2',
  ];
  expect(parsed(...argv)).toMatchObject({
    stateNamespace: 'vault',
    secretNamespaces: ['a', 'b'],
    configDir: '/config',
    keyDir: '/keys',
    runs: 1,
    drainSeconds: 60,
    trustOnFirstUse: false,
    concurrency: 2,
  });
});

test.each<[argument: string, message: string]>([
  ['--state-namespace=A', '--state-namespace: "A" must be'],
  ['--secret-namespaces=a,', '--secret-namespaces: "" must be'],
  ['--config-dir=', '--config-dir=: it must name a directory'],
  ['--key-dir=', '--key-dir=: it must name a directory'],
  ['--runs=0', '--runs=0: it must be a whole number from 1 to 1000'],
  ['--drain-seconds=86401', '--drain-seconds=86401: it must be a whole number from 1 to 86400'],
  ['--concurrency=0', '--concurrency=0: it must be a whole number from 1 to 1000'],
  ['--nonsense', "'--nonsense'"],
])('%s is rejected with what it may be', (argument, message) => {
  expect(() => parsed(argument)).toThrow(UsageError);
  expect(() => parsed(argument)).toThrow(message);
});

test('--help names its own options', () => {
  expect(parseProvisionerArguments(['--help'], known, defaults)).toBe('help');
  const text = provisionerUsage(known, defaults);
  const own = [
    'state-namespace',
    'secret-namespaces',
    'config-dir',
    'key-dir',
    'runs',
    'drain-seconds',
    'require-host-keys',
  ];
  for (const name of [...own, 'kinds', 'leader-elect']) expect(text).toContain(`--${name}`);
});

test('the operator knows none of them', () => {
  expect(() => parseArguments(['--state-namespace=vault'], known)).toThrow("'--state-namespace'");
});
