import * as pulumi from '@pulumi/pulumi';
import { Cluster, HelloApp, provisioner } from '../../../constructs';
import { PlatformComponent, outputs } from '../../../stacks/components';
import type { PlatformComponentArgs } from '../../../stacks/components';
import { UNKNOWN, named, run, wrapped } from '../bridge/engine';
import type { Registration } from '../bridge/engine';
import { KUBECONFIG, ObservedCluster } from '../memory-cluster';
import { unknownOutput } from './unknown';

const operator = { name: 'operator', image: 'op:1', kinds: [HelloApp] };

const platform = (args: Partial<PlatformComponentArgs>) =>
  new PlatformComponent('kindred', { kubeconfig: KUBECONFIG, operators: [operator], ...args });

/** What is registered, by type and by name in the cluster: a resource of an Output has another name in the state. */
function objects(registrations: readonly Registration[]): Readonly<Record<string, unknown>> {
  const found = registrations.filter(({ type, custom }) => custom && type.startsWith('kubernetes:'));
  return Object.fromEntries(
    found.map(({ type, object }) => {
      const metadata = object['metadata'] as Readonly<Record<string, unknown>>;
      const { name, namespace = '', annotations } = metadata as Readonly<Record<string, string>>;
      const shown = { ...(annotations as unknown as object), 'kindred.dev/pulumi-resource': '' };
      return [`${type} ${namespace}/${name}`, { ...object, metadata: { ...metadata, annotations: shown } }];
    }),
  );
}

describe('Outputs in the arguments of a platform', () => {
  const plain = {
    namespace: 'ops',
    operators: [{ ...operator, replicas: 3 }],
    guardedNamespaces: ['shop', { name: 'made', create: true }, 'ops'],
  };

  test('make the same objects as their values', async () => {
    const later = () => {
      const namespace = pulumi.output('ops');
      const made = { name: pulumi.output('made'), create: true };
      return {
        namespace,
        operators: [{ ...operator, replicas: pulumi.output(3) }],
        guardedNamespaces: [Promise.resolve('shop'), made, namespace],
      };
    };
    const expected = objects(await run(() => platform(plain)));
    expect(Object.keys(expected).length).toBeGreaterThan(15);
    expect(objects(await run(() => platform(later())))).toEqual(expected);
  });

  test('stay as secret and as unknown as they are', async () => {
    const args = () => ({
      namespace: unknownOutput<string>(),
      operators: [{ ...operator, replicas: pulumi.secret(3) }],
    });
    const registrations = await run(() => platform(args()), { preview: true });
    expect(named(registrations, 'kindred/namespace').object['metadata']).toMatchObject({ name: UNKNOWN });
    expect(named(registrations, 'kindred/operators/operator/deployment').object['spec']).toMatchObject({
      replicas: wrapped(3),
    });
  });

  test('tell the provisioner where its state is', async () => {
    const registrations = await run(() => {
      const namespace = pulumi.output('ops');
      const keeper = provisioner({ image: 'pro:1', kinds: [Cluster], namespace: outputs.text(namespace) });
      platform({ namespace, operators: [operator, keeper] });
    });
    expect(named(registrations, 'kindred/namespace').retainOnDelete).toBe(true);
    expect(JSON.stringify(named(registrations, 'kindred/operators/provisioner/deployment'))).toContain(
      '--state-namespace=ops"',
    );
  });

  test('in place of a value change nothing that is installed', async () => {
    const { engine, done } = new ObservedCluster();
    const program = (namespace: pulumi.Input<string>, replicas: pulumi.Input<number>) => () => {
      platform({ namespace, operators: [{ ...operator, replicas }] });
      return {};
    };
    await engine.up(program('ops', 3));
    done.length = 0;
    expect((await engine.up(program(pulumi.output('ops'), pulumi.output(3)))).summary).toEqual([]);
    expect((await engine.up(program('ops', 3))).summary).toEqual([]);
    expect(done).toEqual([]);
    const scaled = await engine.up(program(pulumi.output('ops'), pulumi.output(4)));
    expect(scaled.summary).toEqual(['update kindred/operators/operator/deployment']);
    await expect(engine.up(program('ops', pulumi.output(11)))).rejects.toThrow(
      /PlatformComponent kindred has invalid props:\n {2}operator operator: replicas: 11 must be an integer from 0 to 10/,
    );
  });
});
