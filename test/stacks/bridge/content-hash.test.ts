import * as pulumi from '@pulumi/pulumi';
import type { Chart } from 'cdk8s';
import { ConstructResources, outputs, resourceOptions } from '../../../stacks/bridge';
import { UNKNOWN, dependencyNames, named, run, wrapped, type Registration } from './engine';
import { object } from './objects';

function runTree(build: (chart: Chart) => void, preview = false): Promise<readonly Registration[]> {
  return run(() => new ConstructResources('tree', { build, namespace: 'apps' }), { preview });
}

const spec = (config: string, secret: string): object => ({
  imagePullSecrets: [{ name: secret }],
  volumes: [
    { name: 'a', configMap: { name: config } },
    { name: 'b', secret: { secretName: secret } },
    { name: 'c', projected: { sources: [{ configMap: { name: config } }, { secret: { name: secret } }] } },
    { name: 'd', csi: { driver: 'd', nodePublishSecretRef: { name: secret } } },
  ],
  initContainers: [{ name: 'i', envFrom: [{ configMapRef: { name: config } }, { secretRef: { name: secret } }] }],
  containers: [
    {
      name: 'c',
      // Names that merely look the same stay.
      image: 'config',
      env: [
        { name: 'x', valueFrom: { configMapKeyRef: { name: config, key: 'k' } } },
        { name: 'y', valueFrom: { secretKeyRef: { name: secret, key: 'k' } } },
      ],
    },
  ],
});

function content(data: Record<string, unknown>, secretData: Record<string, unknown>): (chart: Chart) => void {
  return (chart) => {
    resourceOptions(chart, { contentHashedName: true });
    object(chart, 'config', { data });
    object(chart, 'secret', { kind: 'Secret', stringData: secretData });
    const template = { spec: spec('config', 'secret') };
    object(chart, 'web', { apiVersion: 'apps/v1', kind: 'Deployment', spec: { template } });
    object(chart, 'job', {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      spec: { jobTemplate: { spec: { template: { spec: { volumes: [{ configMap: { name: 'config' } }] } } } } },
    });
    object(chart, 'account', { kind: 'ServiceAccount', imagePullSecrets: [{ name: 'secret' }] });
    object(chart, 'ingress', {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      spec: { tls: [{ secretName: 'secret' }] },
    });
    object(chart, 'elsewhere', { kind: 'Pod', namespace: 'other', spec: spec('config', 'secret') });
  };
}

const nameIn = (registrations: readonly Registration[], id: string): string =>
  (named(registrations, `tree/${id}`).object['metadata'] as { name: string }).name;

describe('names by content', () => {
  it('change with the content, and what refers to them follows', async () => {
    const one = await runTree(content({ k: 'v' }, { k: 's' }));
    const [config, secret] = [nameIn(one, 'config'), nameIn(one, 'secret')];
    expect(config).toMatch(/^config-[0-9a-f]{10}$/);
    expect(secret).toMatch(/^secret-[0-9a-f]{10}$/);
    expect(named(one, 'tree/web').object['spec']).toEqual({ template: { spec: spec(config, secret) } });
    expect(named(one, 'tree/job').object['spec']).toMatchObject({
      jobTemplate: { spec: { template: { spec: { volumes: [{ configMap: { name: config } }] } } } },
    });
    expect(named(one, 'tree/account').object['imagePullSecrets']).toEqual([{ name: secret }]);
    expect(named(one, 'tree/ingress').object['spec']).toEqual({ tls: [{ secretName: secret }] });
    expect(named(one, 'tree/elsewhere').object['spec']).toEqual(spec('config', 'secret'));
    expect([...dependencyNames(one, 'tree/web')].sort()).toEqual(['tree/config', 'tree/secret']);

    const other = await runTree(content({ k: 'w' }, { k: 's' }));
    expect(nameIn(other, 'config')).not.toBe(config);
    expect(nameIn(other, 'secret')).toBe(secret);
    expect(named(other, 'tree/config').urn).toBe(named(one, 'tree/config').urn);
  });

  it('follow from the values of Outputs: secret of secret ones, unknown of unknown ones', async () => {
    const plain = await runTree(content({ k: 'v' }, { k: 's' }));
    const resolved = await runTree((chart) => {
      content({ k: outputs.text(pulumi.output('v')) }, { k: outputs.text(pulumi.secret('s')) })(chart);
    });
    expect(nameIn(resolved, 'config')).toBe(nameIn(plain, 'config'));
    expect(nameIn(resolved, 'secret')).toEqual(wrapped(nameIn(plain, 'secret')));
    const unknown = pulumi.output(pulumi.unknown as string);
    const preview = await runTree(content({ k: unknown, plain: 'x' }, { k: 's' }), true);
    expect(nameIn(preview, 'config')).toBe(UNKNOWN);
    expect(named(preview, 'tree/config').object['data']).toEqual({ k: UNKNOWN, plain: 'x' });
    expect(nameIn(preview, 'secret')).toBe(nameIn(plain, 'secret'));
  });

  it('are not made unless asked for; immutability is explicit', async () => {
    const registrations = await runTree((chart) => {
      object(chart, 'config', { data: { k: 'v' } });
      resourceOptions(object(chart, 'fixed', { data: {} }), { immutable: true });
    });
    expect(named(registrations, 'tree/config').object).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'config', namespace: 'apps' },
      data: { k: 'v' },
    });
    expect(named(registrations, 'tree/fixed').object['immutable']).toBe(true);
  });

  it('are refused where they get too long', async () => {
    const long = runTree((chart) => {
      resourceOptions(object(chart, 'config', { name: 'n'.repeat(250) }), { contentHashedName: true });
    });
    await expect(long).rejects.toThrow(/too long to add a hash: at most 253/);
  });
});
