import { ApiObject } from 'cdk8s';
import { z } from 'zod';
import { defineKind } from '../../../constructs/kind/kind';
import { owned } from '../../../constructs/kube/resource-type';
import { Harness } from './harness';

const { Deployment, Service } = owned;
const names = z.array(z.string()).default([]).describe('Names of variables.');

/** A kind whose own child and whose shared child can be given a key twice. */
const App = defineKind({
  group: 'test.example.com',
  version: 'v1',
  kind: 'App',
  plural: 'apps',
  scope: 'Namespaced',
  description: 'An app.',
  spec: z.object({ names, service: z.string().default('one').describe('Name of the Service.') }),
  owns: [Deployment],
  children(scope, { metadata: { name }, spec }) {
    const env = spec.names.map((variable, i) => ({ name: variable, value: String(i) }));
    const template = { spec: { containers: [{ name, env }] } };
    new ApiObject(scope, 'd', { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name }, spec: { template } });
  },
  shared: [
    {
      name: 'service',
      owns: [Service],
      key: ({ spec }) => spec.service,
      children(scope, key) {
        const ports = [{ port: 80 }, { port: key === 'twice' ? 80 : 81, protocol: 'TCP' }];
        new ApiObject(scope, 's', { apiVersion: 'v1', kind: 'Service', metadata: { name: key }, spec: { ports } });
      },
    },
  ],
});

describe('a child with a key twice', () => {
  it('stalls its object before anything is written, until the spec is another', async () => {
    const harness = new Harness(App);
    await harness.add('a', { names: ['A', 'B', 'A'] });
    const { next, writes } = await harness.reconcile('a');
    expect(writes).toEqual(['APPLY App a/status (kindred)']);
    expect(next).toMatchObject({ action: 'wait', failed: { reason: 'ErrRender' } });
    expect(harness.conditions('a')).toEqual(['Ready=False ErrRender', 'Stalled=True ErrRender']);
    const message =
      'spec.template.spec.containers[0].env[2]: the key name="A" is at [0] already, with {"value":"0"} there and {"value":"2"} here';
    expect(harness.message('a')).toContain(message);
    expect(harness.events).toMatchObject([{ regarding: 'a', type: 'Warning', reason: 'ErrRender' }]);
    expect((await harness.reconcile('a')).writes).toEqual([]);
    harness.respec('a', { names: ['A', 'B'] });
    expect((await harness.reconcile('a')).writes).toContain('POST Deployment a (kindred)');
  });

  it('leaves a child alone that was made before, and what is no longer rendered', async () => {
    const harness = new Harness(App);
    await harness.add('a', { names: ['A'] });
    await harness.reconcile('a');
    harness.respec('a', { names: ['A', 'A'] });
    expect((await harness.reconcile('a')).writes).toEqual(['APPLY App a/status (kindred)']);
    expect(harness.live(Deployment, 'a').spec).toHaveProperty('template.spec.containers.0.env', [
      { name: 'A', value: '0' },
    ]);
  });

  it('fails a shared key, and is told to its objects', async () => {
    const harness = new Harness(App);
    await harness.add('a', { service: 'twice' });
    const { result, writes } = await harness.reconcileShared('twice');
    expect(writes).toEqual([]);
    expect(result).toMatchObject({
      state: { state: 'failed', readiness: { state: 'stalled', reason: 'ErrRender' } },
      failed: { message: expect.stringContaining('spec.ports[1]: the key port=80,protocol="TCP"') as string },
    });
  });
});
