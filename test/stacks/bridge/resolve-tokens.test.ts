import * as pulumi from '@pulumi/pulumi';
import { Chart, JsonPatch, Size } from 'cdk8s';
import type { App } from 'cdk8s';
import * as kplus from 'cdk8s-plus-27';
import { k8s } from 'cdk8s-plus-27';
import { ConstructResources, outputs } from '../../../stacks/bridge';
import { named, run, wrapped, type Registration } from './engine';
import { object } from './objects';

const out = <T>(value: T): pulumi.Output<T> => pulumi.output(value) as pulumi.Output<T>;

function runTree(build: (chart: Chart) => void): Promise<readonly Registration[]> {
  return run(() => new ConstructResources('tree', { build, namespace: 'apps' }));
}

describe('Outputs in generated constructs', () => {
  it('stand raw at leaves, in maps, and within IntOrString and Quantity', async () => {
    const registrations = await runTree((chart) => {
      new k8s.KubeService(chart, 's', {
        metadata: { name: outputs.any(out('web')), labels: { app: outputs.any(pulumi.secret('a')) } },
        spec: {
          selector: { app: outputs.any(Promise.resolve('later')) },
          ports: [
            { port: outputs.any(out(80)), targetPort: k8s.IntOrString.fromNumber(outputs.number(out(8080))) },
            { port: 81, targetPort: k8s.IntOrString.fromString(outputs.text(out('http'))) },
          ],
        },
      });
      new k8s.KubeResourceQuota(chart, 'q', {
        metadata: { name: 'q' },
        spec: { hard: { 'requests.cpu': k8s.Quantity.fromString(outputs.text(out('2'))) } },
      });
    });
    expect(named(registrations, 'tree/s').object).toEqual({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', namespace: 'apps', labels: { app: wrapped('a') } },
      spec: {
        selector: { app: 'later' },
        ports: [
          { port: 80, targetPort: 8080 },
          { port: 81, targetPort: 'http' },
        ],
      },
    });
    expect(named(registrations, 'tree/q').object['spec']).toEqual({ hard: { 'requests.cpu': '2' } });
  });

  it('stand in cdk8s-plus, sizes included', async () => {
    const registrations = await runTree((chart) => {
      const secret = new kplus.Secret(chart, 'secret', {
        stringData: { password: outputs.text(pulumi.secret('x"y')) },
      });
      new kplus.Deployment(chart, 'web', {
        replicas: outputs.number(out(3)),
        containers: [
          {
            image: `registry.test/web:${outputs.text(out('1.2'))}`,
            portNumber: outputs.number(out(8080)),
            envVariables: { P: secret.envValue('password'), URL: kplus.EnvValue.fromValue(outputs.text(out('u'))) },
            resources: { memory: { limit: Size.mebibytes(outputs.number(out(64))) } },
          },
        ],
      });
    });
    const { spec } = named(registrations, 'tree/web/Resource').object as {
      spec: { replicas: number; template: { spec: { containers: readonly Record<string, unknown>[] } } };
    };
    expect(spec.replicas).toBe(3);
    expect(spec.template.spec.containers[0]).toMatchObject({
      image: 'registry.test/web:1.2',
      ports: [{ containerPort: 8080 }],
      env: [{ name: 'P' }, { name: 'URL', value: 'u' }],
      resources: { limits: { memory: '64Mi' } },
    });
    expect(named(registrations, 'tree/secret/Resource').object['stringData']).toEqual({ password: wrapped('x"y') });
  });

  it('stand whole for lists and objects in plain objects', async () => {
    const registrations = await runTree((chart) => {
      object(chart, 'o', {
        data: outputs.any(out({ a: 'b' })),
        list: [outputs.any(out(['x', 'y']))],
        mixed: outputs.any({ a: pulumi.secret('s') as pulumi.Input<string>, b: 'p' }),
        flag: outputs.any(out(true)),
      });
    });
    expect(named(registrations, 'tree/o').object).toMatchObject({
      data: { a: 'b' },
      list: [['x', 'y']],
      flag: true,
      mixed: { a: wrapped('s'), b: 'p' },
    });
  });

  it('are the namespace of a tree', async () => {
    const registrations = await run(
      () => new ConstructResources('tree', { build: (chart) => object(chart, 'o'), namespace: out('apps') }),
    );
    expect(named(registrations, 'tree/o').object['metadata']).toEqual({ name: 'o', namespace: 'apps' });
  });

  it('leave texts that only look alike as they are', async () => {
    const text = 'at 2100000001 and 21000000011, aGVsbG8gd29ybGQsIGhlbGxvIHdvcmxk';
    const registrations = await runTree((chart) =>
      object(chart, 'o', { data: { text }, n: outputs.number(out(2100000001)) }),
    );
    expect(named(registrations, 'tree/o').object).toMatchObject({ data: { text }, n: 2100000001 });
  });
});

describe('refused', () => {
  const cases: Record<string, readonly [build: (chart: Chart) => unknown, message: RegExp]> = {
    'an Output for an IntOrString': [
      (chart) =>
        new k8s.KubeService(chart, 's', {
          metadata: { name: 's' },
          spec: { ports: [{ port: 1, targetPort: out('http') as unknown as k8s.IntOrString }] },
        }),
      /s#spec\.ports\.0\.targetPort: an Output stands where the construct reads the value itself/,
    ],
    'an Output for the containers': [
      (chart) => new k8s.KubePod(chart, 'p', { metadata: { name: 'p' }, spec: { containers: outputs.any(out([])) } }),
      /p: .*an Output stands where the construct reads the value itself/,
    ],
    'a spread Output': [
      (chart) => object(chart, 'o', { data: { ...out({}) } }),
      /an Output was spread into an object at data/,
    ],
    'an Output in a template string': [
      // oxlint-disable-next-line typescript/no-base-to-string -- the mistake that is to be refused
      (chart) => object(chart, 'o', { data: { a: `http://${out('x').toString()}` } }),
      /o#data\.a: an Output was turned into text by JavaScript/,
    ],
    'an Output in a JSON patch': [
      (chart) => object(chart, 'o', { data: {} }).addJsonPatch(JsonPatch.add('/data/a', out('x'))),
      /o#data\.a: an Output was turned into text by JavaScript/,
    ],
    'an Output as a key': [
      (chart) => object(chart, 'o', { data: { [outputs.text(out('x'))]: 'a' } }),
      /o#data: a key holds an Output/,
    ],
    'an Output as a kind': [
      (chart) => object(chart, 'o', { kind: outputs.text(out('Secret')), namespace: 'a' }),
      /o: its apiVersion or kind is an Output/,
    ],
    'a token that was cut': [
      (chart) => object(chart, 'o', { data: { a: outputs.text(out('x')).slice(0, 20) } }),
      /o#data\.a: it holds a token that was cut or changed/,
    ],
    'a token of another program': [
      (chart) => object(chart, 'o', { data: { a: `x-pulumi-output-${'0'.repeat(20)}` }, port: 2100000001 }),
      /o#data\.a: it holds a token that this program did not make[^]*o#port: it is a number of the range that stands for Outputs/,
    ],
    'a token that stands nowhere': [
      (chart) => object(chart, 'o', { data: { length: outputs.text(out('x')).length } }),
      /1 of the tokens made for this tree stands in none of its objects/,
    ],
  };

  it.each(Object.entries(cases))('%s', async (_, [build, message]) => {
    await expect(runTree(build)).rejects.toThrow(message);
  });

  it('a token of an earlier run', async () => {
    let token = '';
    await run(() => (token = outputs.text(out('x'))));
    await expect(runTree((chart) => object(chart, 'o', { data: { token } }))).rejects.toThrow(/did not make/);
  });

  it('a construct outside of an App, and both or none of the ways to give constructs', async () => {
    const lone = new Chart(undefined as unknown as App, 'lone');
    await expect(run(() => new ConstructResources('tree', { constructs: lone }))).rejects.toThrow(
      /stand in a cdk8s App/,
    );
    await expect(run(() => new ConstructResources('tree', {}))).rejects.toThrow(/one of `build` and `constructs`/);
  });
});

describe('tokens', () => {
  it('are the same in every run, whatever else the process did', async () => {
    const tokensOf = async (before: () => void): Promise<readonly (string | number)[]> => {
      const tokens: (string | number)[] = [];
      await run(() => {
        before();
        new ConstructResources('tree', {
          namespace: 'apps',
          build: (chart) => {
            tokens.push(outputs.text(out('a')), outputs.number(out(1)), outputs.text(out('b'), { id: 'stable' }));
            object(chart, 'o', { data: { all: tokens } });
          },
        });
      });
      return tokens;
    };
    const first = await tokensOf(() => undefined);
    const second = await tokensOf(() => {
      for (let i = 0; i < 5; i++) outputs.text(out('other'));
      new ConstructResources('other', {
        build: (chart) => object(chart, 'x', { namespace: 'a', data: outputs.text(out('x')) }),
      });
    });
    expect(second).toEqual(first);
    expect(new Set(first).size).toBe(3);
  });

  it('are one an Output, and plain values are none', async () => {
    await run(() => {
      const output = out('x');
      expect(outputs.text(output)).toBe(outputs.text(output));
      expect(outputs.text('plain')).toBe('plain');
      expect(outputs.number(3)).toBe(3);
      expect(outputs.text(out('y'))).toMatch(/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/);
      expect(Number.isSafeInteger(outputs.number(out(1)))).toBe(true);
    });
  });
});
