import * as pulumi from '@pulumi/pulumi';
import { DeploymentError, Engine } from './index';
import { diffConfig } from './providers/kubernetes-diff';
import { Thing, ToyCloud } from './providers/toy';

test('a Stash keeps its first value, in previews too, until it goes', async () => {
  const engine = new Engine({ providers: [] });
  const program = (input: string) => () => {
    const stash = new pulumi.Stash('s', { input });
    return { first: stash.output, last: stash.input };
  };
  expect((await engine.preview(program('a'))).output('first')).toBe('a');
  await engine.up(program('a'));
  for (const run of [await engine.preview(program('b')), await engine.up(program('b'))]) {
    expect([run.output('first'), run.output('last')]).toEqual(['a', 'b']);
  }
  expect((await engine.up(program('b'))).summary).toEqual([]);
  await engine.destroy();
  expect((await engine.up(program('b'))).output('first')).toBe('b');
});

test('an error in an apply ends the program, though resources wait for what it was to give', async () => {
  const cloud = new ToyCloud();
  const engine = new Engine({ providers: [cloud.package()] });
  const failed = engine.up(() => {
    const refused = pulumi.output('x').apply((): string => {
      throw new pulumi.RunError('not this one');
    });
    new Thing('b', { value: new Thing('a', { value: refused }).computed });
  });
  await expect(failed).rejects.toThrow(DeploymentError);
  await expect(failed).rejects.toThrow('not this one');
  expect(cloud.names).toEqual([]);
});

test('protection is taken away and the thing replaced in one run', async () => {
  const cloud = new ToyCloud();
  const engine = new Engine({ providers: [cloud.package()] });
  const thing = (key: string, protect: boolean) => () => ({ id: new Thing('a', { key }, { protect }).id });
  await engine.up(thing('x', true));
  await expect(engine.up(thing('y', true))).rejects.toThrow(/cannot be replaced/);
  expect((await engine.up(thing('y', false))).summary).toEqual(['delete-replaced a', 'replace a']);
});

describe('which changes replace a provider of kubernetes', () => {
  const kubeconfig = (server: string, more: object = {}): string =>
    JSON.stringify({
      'current-context': 'one',
      contexts: ['one', 'two'].map((name) => ({ name, context: { cluster: name } })),
      clusters: ['one', 'two'].map((name) => ({ name, cluster: { server: `${server}/${name}`, ...more } })),
    });
  const [a, b] = [kubeconfig('https://a'), kubeconfig('https://b')];
  test.each([
    ['another kubeconfig', { kubeconfig: a }, { kubeconfig: b }, ['kubeconfig']],
    ['another authority', { kubeconfig: a }, { kubeconfig: kubeconfig('https://a', { ca: '1' }) }, ['kubeconfig']],
    ['another context of a kubeconfig', { kubeconfig: a }, { kubeconfig: a, context: 'two' }, ['context']],
    ['another context without a kubeconfig', { context: 'one' }, { context: 'two' }, []],
    ['a kubeconfig for a context', { context: 'one' }, { kubeconfig: a }, []],
    ['an empty context', { kubeconfig: a }, { kubeconfig: b, context: '' }, []],
    ['an identifier that comes', { kubeconfig: a }, { kubeconfig: a, clusterIdentifier: 'x' }, []],
    [
      'one that comes with another kubeconfig',
      { kubeconfig: a },
      { kubeconfig: b, clusterIdentifier: 'x' },
      ['kubeconfig'],
    ],
    ['one that stays', { kubeconfig: a, clusterIdentifier: 'x' }, { kubeconfig: b, clusterIdentifier: 'x' }, []],
    ['another one', { clusterIdentifier: 'x' }, { clusterIdentifier: 'y' }, ['clusterIdentifier']],
  ])('%s', (_, before, after, replace) => {
    expect(diffConfig(before as Record<string, string>, after as Record<string, string>).replace).toEqual(replace);
  });

  test('an old kubeconfig that is the path of no file is an error', () => {
    expect(() => diffConfig({ kubeconfig: '/nosuch:/file' }, { kubeconfig: a })).toThrow(/failed to parse kubeconfig/);
  });
});
