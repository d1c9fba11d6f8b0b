import { Provider } from '@pulumi/kubernetes/provider';
import * as pulumi from '@pulumi/pulumi';
import { ApiObject, App, Chart } from 'cdk8s';
import { z } from 'zod';
import {
  cel,
  Cluster,
  Foo,
  HelloApp,
  InvalidObjectError,
  Kubeconfig,
  MicroServiceDeploy,
  defineKind,
  renderChildren,
  withRule,
} from '../../../constructs';
import type { KindSpec, KubeObject } from '../../../constructs';
import { KindComponent, addKindChildren } from '../../../stacks/components';
import { UNKNOWN, dependencyNames, run, wrapped } from '../bridge/engine';
import type { Registration } from '../bridge/engine';
import { unknownOutput } from './unknown';

const metadata = { name: 'web', namespace: 'shop' };
const spec = { image: 'nginx:1.27', size: 2 };
const custom = (registrations: readonly Registration[]): readonly Registration[] =>
  registrations.filter(({ type }) => type.startsWith('kubernetes:'));

const typeOf = ({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }) => ({ apiVersion, kind });

const ms = (fullName: string, more: Partial<KindSpec<typeof MicroServiceDeploy>> = {}) => ({
  ...{ msName: 'shop', fullName, version: '1.0', path: 'v1', image: 'shop:1.0' },
  ...more,
});

describe('as a resource', () => {
  test('registers the object, and waits until it is Ready', async () => {
    const registrations = await run(
      () =>
        new KindComponent('web', {
          kind: HelloApp,
          metadata: { ...metadata, labels: { a: 'b' } },
          spec,
          timeoutSeconds: 90,
        }),
    );
    expect(custom(registrations)).toEqual([
      expect.objectContaining({
        type: 'kubernetes:apps.anupam.com/v1:HelloApp',
        object: {
          apiVersion: 'apps.anupam.com/v1',
          kind: 'HelloApp',
          metadata: { ...metadata, labels: { a: 'b' }, annotations: { 'pulumi.com/waitFor': 'condition=Ready' } },
          spec,
        },
        timeouts: ['90s', '90s', '90s'],
      }),
    ]);
  });

  test('does not wait when told so', async () => {
    const [object] = custom(
      await run(() => new KindComponent('web', { kind: HelloApp, metadata, spec, waitUntilReady: false })),
    );
    expect(object?.object['metadata']).toEqual(metadata);
  });

  test('Outputs stay leaves: secrets secret, unknowns unknown', async () => {
    const unknown = unknownOutput<number>();
    const program = () =>
      new KindComponent('web', {
        kind: HelloApp,
        metadata: { name: 'web', namespace: pulumi.output('later') },
        spec: { image: pulumi.secret('private:1'), size: unknown },
      });
    const [object] = custom(await run(program, { preview: true }));
    expect(object?.object).toMatchObject({
      metadata: { name: 'web', namespace: 'later' },
      spec: { image: wrapped('private:1'), size: UNKNOWN },
    });
  });

  test('a null that its schema takes is said to the server, whose default it would get otherwise', async () => {
    const note = z.string().nullable().default('x').describe('A note; null for none.');
    const Noted = defineKind({
      ...{ group: 'notes.example.com', version: 'v1', kind: 'Noted', plural: 'noteds', scope: 'Namespaced' },
      ...{ description: 'A note.', spec: z.object({ note }), owns: [], children: () => undefined },
    });
    const [object] = custom(await run(() => new KindComponent('web', { kind: Noted, metadata, spec: { note: null } })));
    expect(object?.object['spec']).toEqual({ note: null });
  });

  test('a rule across fields is asked when all of them are known', async () => {
    const limits = z.object({ least: z.int().describe('Least.'), most: z.int().describe('Most.') });
    const ordered = cel('self.least <= self.most', 'is less than least', { fieldPath: '.most' });
    const Limited = defineKind({
      ...{ group: 'notes.example.com', version: 'v1', kind: 'Limited', plural: 'limiteds', scope: 'Namespaced' },
      ...{ description: 'Limits.', owns: [], children: () => undefined },
      spec: withRule(limits, ordered, ({ least, most }) => least <= most),
    });
    const limited = (least: number) =>
      run(() => {
        const spec = { least: pulumi.output(least), most: 3 };
        new KindComponent('web', { kind: Limited, metadata, spec });
      });
    expect(custom(await limited(2))[0]?.object['spec']).toEqual({ least: 2, most: 3 });
  });

  test('an object of the cluster bears no namespace', async () => {
    const args = { kind: Kubeconfig, metadata: { name: 'prod' }, spec: { configPath: 'prod.yaml' } };
    const [object] = custom(await run(() => new KindComponent('prod', args)));
    expect(object?.object['metadata']).toMatchObject({ name: 'prod' });
    expect(object?.object['metadata']).not.toHaveProperty('namespace');
  });

  test('what is known is checked, all at once, before anything is registered', async () => {
    const registrations = await run(() => {
      const wrong = { image: '', size: -1, imagee: 'x' } as never;
      expect(() => new KindComponent('web', { kind: HelloApp, metadata, spec: wrong })).toThrow(
        /HelloApp shop\/web is invalid:[^]*spec\.imagee: is no field[^]*spec\.image: [^]*spec\.size: /,
      );
      const partly = { image: pulumi.output('x'), size: -1 };
      expect(() => new KindComponent('web', { kind: HelloApp, metadata, spec: partly })).toThrow(
        /invalid:\n {2}spec\.size: [^\n]*$/,
      );
    });
    expect(registrations.filter(({ type }) => type !== 'pulumi:pulumi:Stack')).toEqual([]);
  });

  test.each([
    [{ kind: HelloApp, metadata: { name: 'web' }, spec }, 'metadata.namespace: is required'],
    [
      { kind: Kubeconfig, metadata: { name: 'a', namespace: 'b' }, spec: { configPath: 'a' } },
      'metadata.namespace: leave it out',
    ],
  ])('its namespace is explicit: %#', async (args, message) => {
    await run(() => {
      expect(() => new KindComponent('web', args as never)).toThrow(message);
    });
  });
});

describe('as children', () => {
  test('registers what the kind renders, byte for byte, and not the object', async () => {
    const registrations = await run(() => new KindComponent('web', { kind: HelloApp, metadata, spec, as: 'children' }));
    const object: KubeObject = { apiVersion: HelloApp.apiVersion, kind: HelloApp.kind, metadata, spec };
    const rendered = renderChildren(HelloApp, object).map(({ manifest }) => manifest);
    expect(custom(registrations).map((one) => one.object)).toEqual(rendered);
  });

  test('a seeded field is left alone after creation', async () => {
    const replicasOf = async (autoscaling: boolean): Promise<readonly string[] | undefined> => {
      const args = {
        kind: MicroServiceDeploy,
        metadata,
        spec: ms('shop-v1', { autoscaling }),
        as: 'children',
      } as const;
      const registrations = await run(() => new KindComponent('web', args));
      return registrations.find(({ type }) => type === 'kubernetes:apps/v1:Deployment')?.ignoreChanges;
    };
    expect(await replicasOf(true)).toEqual(['spec.replicas']);
    expect(await replicasOf(false)).toEqual([]);
  });

  test('what two objects share is registered once, and belongs to neither', async () => {
    const registrations = await run(() => {
      for (const version of ['v1', 'v2']) {
        const args = {
          kind: MicroServiceDeploy,
          metadata: { name: version, namespace: 'shop' },
          spec: ms(`shop-${version}`),
        };
        new KindComponent(version, { ...args, as: 'children' });
      }
    });
    const accounts = registrations.filter(({ type }) => type === 'kubernetes:core/v1:ServiceAccount');
    expect(accounts).toHaveLength(1);
    expect(accounts[0]?.name).not.toMatch(/^v[12]\//);
    for (const version of ['v1', 'v2']) {
      expect(dependencyNames(registrations, `${version}/Deployment-shop-${version}`)).toContain(accounts[0]?.name);
    }
  });

  describe('on several clusters', () => {
    const orders = (name: string, opts: pulumi.ComponentResourceOptions = {}) =>
      new KindComponent(name, { kind: MicroServiceDeploy, metadata, spec: ms('shop-v1'), as: 'children' }, opts);
    const ID = `${MicroServiceDeploy.crdName}/service/shop/shop`;
    const sharedTrees = (registrations: readonly Registration[]) =>
      registrations.filter(({ type, name }) => type.endsWith(':ConstructResources') && name.endsWith(ID));

    test('what is shared stands on each, under the name of the way to it', async () => {
      const registrations = await run(() => {
        for (const name of ['eu', 'us']) orders(`orders-${name}`, { provider: new Provider(name, {}) });
      });
      const accounts = registrations.filter(({ type }) => type === 'kubernetes:core/v1:ServiceAccount');
      expect(accounts.map(({ provider }) => /::(eu|us)::/.exec(provider)?.[1])).toEqual(['eu', 'us']);
      expect(new Set(registrations.map(({ urn }) => urn)).size).toBe(registrations.length);
      for (const name of ['eu', 'us']) {
        const account = accounts.find(({ provider }) => provider.includes(`::${name}::`));
        expect(dependencyNames(registrations, `orders-${name}/Deployment-shop-v1`)).toContain(account?.name);
      }
    });

    test('takes over what was registered without the name of its way', async () => {
      const registrations = await run(() => orders('orders', { provider: new Provider('eu', {}) }));
      expect(sharedTrees(registrations)).toEqual([expect.objectContaining({ name: `eu/${ID}`, aliasNames: [ID] })]);
    });

    test('the default provider needs no name, and what it has is left to it', async () => {
      const registrations = await run(() => {
        orders('orders');
        orders('orders-eu', { provider: new Provider('eu', {}) });
      });
      expect(sharedTrees(registrations).map(({ name, aliasNames }) => [name, aliasNames])).toEqual([
        [ID, []],
        [`eu/${ID}`, []],
      ]);
    });
  });

  test('Outputs of texts and numbers reach the children, as secret and as unknown as they are', async () => {
    const unknown = unknownOutput<number>();
    const program = () =>
      new KindComponent('web', {
        ...{ kind: HelloApp, metadata, as: 'children' },
        spec: { image: pulumi.secret('private:1'), size: unknown },
      });
    const [deployment] = custom(await run(program, { preview: true }));
    expect(deployment?.object).toMatchObject({
      metadata: { name: 'web', namespace: 'shop' },
      spec: { replicas: UNKNOWN, template: { spec: { containers: [{ image: wrapped('private:1') }] } } },
    });
  });

  test.each([Cluster, Kubeconfig] as const)(
    'of a kind that acts by effects are an error, before anything is registered: %#',
    async (kind) => {
      const object = { metadata: { name: 'prod' }, spec: { configPath: 'prod.yml' } };
      const registrations = await run(() => {
        expect(() => new KindComponent('p', { kind, ...object, as: 'children' } as never)).toThrow(
          new RegExp(`^KindComponent p: a ${kind.kind} acts by effects, which only its operator .* RemoteCluster$`),
        );
        expect(() => addKindChildren(new Chart(new App(), 'chart'), kind, { ...typeOf(kind), ...object })).toThrow(
          `${kind.kind} prod: a ${kind.kind} acts by effects`,
        );
      });
      expect(registrations.filter(({ type }) => type !== 'pulumi:pulumi:Stack')).toEqual([]);
    },
  );

  test('of the cluster may be of custom kinds, shared ones too: the kind says their scope', async () => {
    const own = { apiVersion: 'teams.example.com/v1', kind: 'Badge', plural: 'badges', scope: 'Cluster' } as const;
    const common = { ...own, kind: 'Pool', plural: 'pools' };
    const Team = defineKind({
      ...{ group: 'teams.example.com', version: 'v1', kind: 'Team', plural: 'teams', scope: 'Cluster' },
      ...{ description: 'A team.', spec: z.object({}), owns: [own] },
      shared: [
        {
          ...{ name: 'pool', owns: [common], key: () => 'all' },
          children(scope, name) {
            new ApiObject(scope, 'pool', { ...typeOf(common), metadata: { name } });
          },
        },
      ],
      children(scope, { metadata: { name } }) {
        new ApiObject(scope, 'badge', { ...typeOf(own), metadata: { name } });
      },
    });
    const registrations = await run(
      () => new KindComponent('a', { kind: Team, metadata: { name: 'a' }, spec: {}, as: 'children' }),
    );
    expect(custom(registrations).map(({ object }) => object)).toEqual([
      { ...typeOf(common), metadata: { name: 'all' } },
      { ...typeOf(own), metadata: { name: 'a' } },
    ]);
  });

  test('an Output that the children follow from is refused, where it stands', async () => {
    await run(() => {
      const args = { kind: MicroServiceDeploy, metadata, as: 'children' } as const;
      expect(
        () => new KindComponent('web', { ...args, spec: { ...ms('shop-v1'), autoscaling: pulumi.output(true) } }),
      ).toThrow(/spec\.autoscaling: an Output cannot stand for it with as: 'children'/);
      expect(
        () =>
          new KindComponent('foo', {
            kind: Foo,
            metadata,
            as: 'children',
            spec: { deploymentName: 'a', replicas: pulumi.output(2) },
          }),
      ).toThrow(/spec\.replicas: an Output cannot stand for it/);
    });
  });
});

describe('one object, one component', () => {
  const make = (name: string, as: 'resource' | 'children', opts: pulumi.ComponentResourceOptions = {}) =>
    new KindComponent(name, { kind: HelloApp, metadata, spec, as }, opts);

  test.each([
    ['resource', 'children'],
    ['children', 'resource'],
    ['resource', 'resource'],
  ] as const)('%s and then %s is an error', async (first, second) => {
    await run(() => {
      make('one', first);
      expect(() => make('two', second)).toThrow(
        /^KindComponent two: helloapps\.apps\.anupam\.com shop\/web belongs to the KindComponent one/,
      );
    });
  });

  test.each(['resource', 'children'] as const)(
    'two clusters may each have it as %s, and so may two runs of a process',
    async (as) => {
      for (let time = 1; time <= 2; time += 1) {
        const registrations = await run(() => {
          make('one', as, { provider: new Provider('a', {}) });
          make('two', as, { provider: new Provider('b', {}) });
        });
        const found = custom(registrations);
        expect(found).toHaveLength(2);
        expect(new Set(found.map(({ urn }) => urn)).size).toBe(2);
      }
    },
  );
});

test('the type of the spec follows from the kind', () => {
  const check = (): void => {
    // @ts-expect-error -- image is required
    new KindComponent('a', { kind: HelloApp, metadata, spec: { size: 1 } });
    // @ts-expect-error -- size is a number
    new KindComponent('a', { kind: HelloApp, metadata, spec: { image: 'a', size: 'b' } });
    // @ts-expect-error -- there is no such field
    new KindComponent('a', { kind: HelloApp, metadata, spec: { image: 'a', replicas: 1 } });
    // @ts-expect-error -- a spec is required
    new KindComponent('a', { kind: HelloApp, metadata });
    new KindComponent('a', { kind: HelloApp, metadata, spec: { image: pulumi.output('a'), size: Promise.resolve(1) } });
  };
  expect(check).toBeInstanceOf(Function);
  expect(InvalidObjectError).toBeDefined();
});
