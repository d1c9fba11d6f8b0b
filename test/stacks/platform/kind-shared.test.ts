import * as pulumi from '@pulumi/pulumi';
import { HelloApp, MicroServiceDeploy } from '../../../constructs';
import { KindComponent } from '../../../stacks/components';
import type { WithOutputs } from '../../../stacks/components';
import { run } from '../bridge/engine';
import type { Registration } from '../bridge/engine';

const spec = (fullName: string) => ({ msName: 'shop', fullName, version: '1.0', path: 'v1', image: 'shop:1.0' });

const make = (name: string, namespace: pulumi.Input<string>, msName: WithOutputs<string> = 'shop') =>
  new KindComponent(name, {
    kind: MicroServiceDeploy,
    metadata: { name, namespace },
    spec: { ...spec(name), msName },
    as: 'children',
  });

const sharedNames = (registrations: readonly Registration[]): readonly string[] =>
  registrations
    .filter(({ custom, object }) => custom && (object['metadata'] as { readonly name?: string }).name === 'shop')
    .map(({ name }) => name);

test('what objects share is called the same, whichever of them goes', async () => {
  const both = sharedNames(await run(() => ['a', 'b'].forEach((name) => make(name, 'apps'))));
  expect(both.length).toBeGreaterThan(0);
  expect(sharedNames(await run(() => make('b', 'apps')))).toEqual(both);
});

test('an Output that would name it is refused, with where and what to do, before anything is registered', async () => {
  const registrations = await run(() => {
    expect(() => make('a', pulumi.output('apps'))).toThrow(
      "MicroServiceDeploy a is invalid:\n  metadata.namespace: an Output cannot stand for it with as: 'children', since the service that " +
        'objects of the kind MicroServiceDeploy share is named by it; give the value itself',
    );
    expect(() => make('a', 'apps', pulumi.output('shop'))).toThrow(/spec\.msName: an Output cannot stand for it/);
  });
  expect(registrations.filter(({ type }) => type !== 'pulumi:pulumi:Stack')).toEqual([]);
});

test('where nothing is shared, and in an object itself, it may stand', async () => {
  const namespace = pulumi.output('apps');
  const registrations = await run(() => {
    const metadata = { name: 'web', namespace };
    new KindComponent('web', { kind: HelloApp, metadata, spec: { image: 'nginx' }, as: 'children' });
    const shop = { kind: MicroServiceDeploy, metadata: { name: 'shop-v1', namespace }, spec: spec('shop-v1') };
    new KindComponent('shop', shop);
  });
  const namespaces = registrations.filter(({ custom }) => custom).map(({ object }) => object['metadata']);
  expect(namespaces).toHaveLength(2);
  for (const metadata of namespaces) expect(metadata).toMatchObject({ namespace: 'apps' });
});
