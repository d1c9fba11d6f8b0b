import * as pulumi from '@pulumi/pulumi';
import { HelloApp } from '../../../constructs';
import { ConstructResources, KindComponent, PlatformComponent } from '../../../stacks/components';
import type { PlatformComponentArgs } from '../../../stacks/components';
import { Secret } from '../../support/pulumi-engine';
import { dependencyNames, run } from '../bridge/engine';
import { KUBECONFIG, ObservedCluster } from '../memory-cluster';

const args: PlatformComponentArgs = {
  kubeconfig: KUBECONFIG,
  operators: [{ name: 'operator', image: 'op:1', kinds: [HelloApp] }],
  guardedNamespaces: ['shop'],
};

const program =
  (opts: pulumi.ComponentResourceOptions = {}) =>
  () => {
    const platform = new PlatformComponent('kindred', args, opts);
    const metadata = { name: 'web', namespace: 'shop' };
    const spec = { image: pulumi.secret('CANARY'), size: 2 };
    new KindComponent('sample', { kind: HelloApp, metadata, spec }, { parent: platform });
    new ConstructResources('tree', { namespace: 'shop', build: () => undefined });
    return {};
  };

test('components give their arguments and what they made to the state; no way to the cluster is among them', async () => {
  const { engine } = new ObservedCluster();
  await engine.up(program());
  const of = (name: string, type: string) => {
    const found = engine.state.resources.find((one) => one.urn.endsWith(`${type}::${name}`));
    return { inputs: found?.inputs, outputs: found?.outputs };
  };
  expect(of('kindred', 'PlatformComponent')).toEqual({
    inputs: {
      operators: [{ name: 'operator', image: 'op:1', kinds: [HelloApp.crdName] }],
      guardedNamespaces: ['shop'],
    },
    outputs: expect.objectContaining({ namespace: 'kindred-system', installedKinds: [HelloApp.crdName] }) as unknown,
  });
  expect(of('sample', 'KindComponent')).toEqual({
    inputs: {
      ...{ apiVersion: HelloApp.apiVersion, kind: 'HelloApp', metadata: { name: 'web', namespace: 'shop' } },
      spec: { image: new Secret('CANARY'), size: 2 },
    },
    outputs: { resources: [''] },
  });
  expect(of('tree', 'ConstructResources')).toEqual({ inputs: { namespace: 'shop' }, outputs: { resources: [] } });
});

test('transformations see the arguments, those of the program too', async () => {
  const seen = new Map<string, unknown>();
  const look: pulumi.ResourceTransformation = ({ name, type, props }) => {
    seen.set(`${type.replace(/^.*:/, '')} ${name}`, props);
    return undefined;
  };
  await run(program({ transformations: [look] }));
  expect(seen.get('PlatformComponent kindred')).toMatchObject({ guardedNamespaces: ['shop'] });
  expect(seen.get('KindComponent sample')).toMatchObject({ kind: 'HelloApp', metadata: { name: 'web' } });
  expect([...seen.keys()]).toContain('Deployment kindred/operators/operator/deployment');
});

test('a stack whose components gave nothing to the state yet changes nothing on the cluster', async () => {
  const { engine, done } = new ObservedCluster();
  // What an earlier SDK did. Source: @pulumi/pulumi, `ComponentResource`.
  process.env['PULUMI_NODEJS_SKIP_COMPONENT_INPUTS'] = '1';
  try {
    await engine.up(program());
  } finally {
    delete process.env['PULUMI_NODEJS_SKIP_COMPONENT_INPUTS'];
  }
  done.length = 0;
  expect((await engine.up(program())).summary).toEqual([]);
  expect(done).toEqual([]);
});

test('an object below a platform that stands below another belongs to the nearest', async () => {
  const registrations = await run(() => {
    const outer = new PlatformComponent('outer', args);
    const team = new pulumi.ComponentResource('test:index:Team', 'team', {}, { parent: outer });
    const inner = new PlatformComponent('inner', args, { parent: team });
    const metadata = { name: 'web', namespace: 'shop' };
    new KindComponent('web', { kind: HelloApp, metadata, spec: { image: 'nginx' } }, { parent: inner });
  });
  const object = registrations.find(({ type }) => type.endsWith(':HelloApp'));
  const after = registrations.filter(({ urn }) => object?.dependencies.includes(urn)).map(({ name }) => name);
  expect(after).toEqual(['inner/operators/operator/deployment']);
  expect(dependencyNames(registrations, 'inner/operators/operator/deployment').join()).not.toContain('outer');
});
