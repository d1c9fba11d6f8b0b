import { UsageError } from '../../cli/errors';
import { assertConversion, platformOperator, projectPlatform, requiredOperator } from '../../cli/project-platform';
import { Cluster, Foo, HelloApp } from '../../constructs/kinds';
import { Shop } from '../constructs/kind/versions-kind';
import { kindredPlatform, kindredProject, noChoices, projectOf } from '../support/kindred-project';

test('what is not said follows from the name of the package', () => {
  const { namespace, samplesNamespace, operators } = projectPlatform(projectOf('web-shop', {}), noChoices);
  expect({ namespace, samplesNamespace }).toEqual({
    namespace: 'web-shop-system',
    samplesNamespace: 'web-shop-samples',
  });
  expect(operators).toMatchObject([{ image: 'web-shop-operator:1.2.3', isDefaultImage: true, isInstalled: true }]);
});

test('a version with metadata of a build is a tag that registries take', () => {
  const project = { ...projectOf('shop', {}), version: '1.0.0+b1' };
  expect(projectPlatform(project, noChoices).operators).toMatchObject([{ image: 'shop-operator:1.0.0_b1' }]);
});

test('settings that cannot be made are said in one line', () => {
  const settings = () => {
    throw new Error('no luck');
  };
  const { operators } = projectPlatform(projectOf('shop', { settings }), noChoices);
  expect(() => platformOperator(operators[0]!, 'sys')).toThrow(
    'the settings of the operator shop cannot be made: no luck',
  );
});

test('an optional operator is installed when its image is named', () => {
  const installed = (images: readonly string[]) =>
    kindredPlatform({ images }).operators.map(({ image, isInstalled }) => [image, isInstalled]);
  expect(installed(['o:1', 'provisioner=p:1'])).toEqual([
    ['o:1', true],
    ['p:1', true],
  ]);
  expect(installed(['operator=o:1'])).toEqual([
    ['o:1', true],
    [expect.stringMatching(/^kindred-provisioner:/), false],
  ]);
});

test.each([
  [{ images: [''] }, /^--image=: it is no image: give one such as registry\.example\.com\/name:tag, without spaces$/],
  [{ images: ['not an image'] }, /^--image=not an image: it is no image: /],
  [{ images: ['provisioner='] }, /^--image=: it is no image: /],
  [{ images: ['a:1', 'operator=b:1'] }, /^--image=operator=b:1: operator was given one before$/],
  [{ images: ['other=b:1'] }, /^--image=other=b:1: there is no operator other; there is operator, provisioner$/],
  [
    { configSecret: 'files' },
    /^--config-secret=files: it is for provisioner, .*: name its image too, --image=provisioner=REF$/,
  ],
  [
    { images: ['provisioner=p'], configFiles: { a: 'b' } },
    /^--config-file=a=b: name the Secret too, with --config-secret$/,
  ],
  [{ images: ['provisioner=p'], configSecret: 'UP' }, /^--config-secret=UP: a Secret's name must be /],
  [{ namespace: 'x', samplesNamespace: 'x' }, /^--samples-namespace=x: it is the operator's own namespace: /],
  [{ samplesNamespace: 'kindred-system' }, /^--samples-namespace=kindred-system: it is the operator's own/],
  [{ namespace: 'kindred-samples' }, /^--namespace=kindred-samples: it is where the samples go: name another one/],
])('%j is a mistake of the command line', (args, message) => {
  expect(() => kindredPlatform(args)).toThrow(message);
  expect(() => kindredPlatform(args)).toThrow(UsageError);
});

describe('of several operators', () => {
  const [a] = projectOf('a', { kinds: [HelloApp] }).operators;
  const [b] = projectOf('b', { kinds: [Foo] }).operators;
  const project = { ...projectOf('shop', {}), operators: [a!, b!] };

  test('a flag must say which one is meant', () => {
    expect(() => projectPlatform(project, { ...noChoices, images: ['x:1'] })).toThrow(
      '--image=x:1: say for which operator, as --image=NAME=x:1; there is a, b',
    );
    expect(() => projectPlatform(project, { ...noChoices, configSecret: 's' })).toThrow(
      '--config-secret=s: no operator needs one. Name it if you mean one of a, b: --config-secret=NAME=s',
    );
    expect(() => requiredOperator(project, undefined)).toThrow(
      'say which operator, with --operator=NAME; there is a, b',
    );
    expect(() => requiredOperator(project, 'c')).toThrow('--operator=c: there is no such operator; there is a, b');
    expect(requiredOperator(project, 'b')).toBe(b);
    expect(requiredOperator(kindredProject, undefined).name).toBe('operator');
  });

  test('each has an image of its own by default', () => {
    const { operators } = projectPlatform(project, noChoices);
    expect(operators.map(({ image }) => image)).toEqual(['shop-a:1.2.3', 'shop-b:1.2.3']);
  });
});

describe("an operator's entry in the platform", () => {
  const entryOf = (settings: object, args: Partial<typeof noChoices> = {}) => {
    const { operators } = projectPlatform(projectOf('shop', { kinds: [Cluster], settings }), { ...noChoices, ...args });
    return platformOperator(operators[0]!, 'sys');
  };

  test('has the settings of the project, but its own name, image and kinds', () => {
    expect(entryOf({ memoryLimitMiB: 300, name: 'x', image: 'x', kinds: [] })).toEqual({
      ...{ memoryLimitMiB: 300, name: 'shop', image: 'shop-operator:1.2.3', kinds: [Cluster] },
    });
  });

  test('has the files of a Secret', () => {
    expect(entryOf({ args: ['--runs=2'] }, { configSecret: 'files', configFiles: { 'a/b': 'b' } })).toMatchObject({
      args: ['--runs=2', '--config-dir=/etc/kindred/config'],
      configDirectory: { path: '/etc/kindred/config', secretName: 'files', files: { 'a/b': 'b' } },
    });
  });
});

test('a kind of several versions needs certificates', () => {
  const project = projectOf('shop', { kinds: [Shop] });
  expect(() => assertConversion(projectPlatform(project, noChoices))).toThrow(
    /^Shop has several versions, .*: add --cert-manager where cert-manager is installed/,
  );
  expect(() => assertConversion(projectPlatform(project, noChoices), 'kind-a')).toThrow(
    /^Shop has several versions: the API server of context kind-a would .*kindred synth --cert-manager$/,
  );
  expect(() => assertConversion(projectPlatform(project, { ...noChoices, certManager: true }))).not.toThrow();
});
