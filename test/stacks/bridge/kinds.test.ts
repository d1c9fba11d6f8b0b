import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as pulumi from '@pulumi/pulumi';
import { Construct } from 'constructs';
import {
  CronTab,
  CustomResource,
  CustomResourceDefinition,
  HelloApp,
  MicroServiceDeploy,
  renderChildren,
  type KubeObject,
} from '../../../constructs';
import { ConstructResources, KindResource, addKindChildren, outputs } from '../../../stacks/bridge';
import { UNKNOWN, named, run, wrapped } from './engine';

describe('an object of a kind', () => {
  it('renders as without the bridge, and after its CRD', async () => {
    const registrations = await run(
      () =>
        new ConstructResources('tree', {
          namespace: 'apps',
          build: (chart) => {
            const props = { metadata: { name: 'web' }, spec: { image: 'nginx', size: 2 } };
            new CustomResource(new Construct(chart, 'plain'), 'app', { kind: HelloApp, ...props });
            new KindResource(chart, 'app', { kind: HelloApp, ...props, metadata: { name: 'web2' } });
            new CustomResourceDefinition(chart, 'crd', { kind: HelloApp });
          },
        }),
    );
    const { object, dependencies } = named(registrations, 'tree/app');
    expect(object).toEqual({
      ...named(registrations, 'tree/plain/app').object,
      metadata: { name: 'web2', namespace: 'apps' },
    });
    expect(dependencies).toEqual([named(registrations, 'tree/crd').urn]);
  });

  it('takes Outputs for any field, whatever its schema', async () => {
    const app = (image: pulumi.Input<string>, size: pulumi.Input<number>): Promise<unknown> =>
      run(
        () =>
          new ConstructResources('tree', {
            namespace: 'apps',
            build: (chart) =>
              new KindResource(chart, 'app', { kind: HelloApp, metadata: { name: 'web' }, spec: { image, size } }),
          }),
        { preview: true },
      ).then((registrations) => named(registrations, 'tree/app').object['spec']);
    expect(await app(pulumi.secret('nginx'), pulumi.output(3))).toEqual({ image: wrapped('nginx'), size: 3 });
    expect(await app('nginx', pulumi.output(pulumi.unknown as number))).toEqual({ image: 'nginx', size: UNKNOWN });
  });

  it('takes text and number tokens where CustomResource checks the schema', async () => {
    const registrations = await run(
      () =>
        new ConstructResources('tree', {
          namespace: 'apps',
          build: (chart) =>
            new CustomResource(chart, 'app', {
              kind: HelloApp,
              metadata: { name: outputs.text(pulumi.output('web')) },
              spec: { image: `r/${outputs.text(pulumi.output('nginx'))}`, size: outputs.number(pulumi.output(4)) },
            }),
        }),
    );
    expect(named(registrations, 'tree/app').object).toMatchObject({
      metadata: { name: 'web' },
      spec: { image: 'r/nginx', size: 4 },
    });
  });

  it('is refused for what is known to be wrong, with the Outputs left out', async () => {
    const wrong = run(
      () =>
        new ConstructResources('tree', {
          namespace: 'apps',
          build: (chart) =>
            new KindResource(chart, 'cron', {
              kind: CronTab,
              metadata: { name: 'x' },
              spec: { cronSpec: 'never', image: pulumi.output('busybox') },
            }),
        }),
    );
    await expect(wrong).rejects.toThrow(/cron: [^]*CronTab apps\/x is invalid:\s+spec\.cronSpec:/);
  });

  it('is refused once its Outputs are known to be wrong, before it is registered; secrets are not told', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      '--import',
      'tsx',
      join(__dirname, 'wrong-objects.ts'),
    ]);
    expect(JSON.parse(stdout)).toEqual([
      {
        registered: ['tree'],
        error: 'HelloApp tree/app is invalid:\n  spec.size: Too small: expected number to be >=0',
      },
      {
        registered: ['tree'],
        error:
          'HelloApp tree/app is invalid:\n  spec.size: is invalid; why is not said, because the object holds secrets',
      },
      {
        registered: ['web', 'web'],
        error: 'HelloApp web is invalid:\n  spec.size: Too small: expected number to be >=0',
      },
      { registered: ['tree', 'tree/app'], error: null },
    ]);
  }, 60_000);
});

/** A Service without the annotation that has Pulumi not wait for its pods; other objects as they are. */
function withoutSkipAwait(object: Readonly<Record<string, unknown>>): object {
  if (object['kind'] !== 'Service') return object;
  const { annotations = {}, ...metadata } = (object as unknown as KubeObject).metadata;
  const { 'pulumi.com/skipAwait': skipped, ...others } = annotations;
  expect(skipped).toBe('true');
  return { ...object, metadata: { ...metadata, ...(Object.keys(others).length === 0 ? {} : { annotations: others }) } };
}

describe('the children of an object', () => {
  const sample: KubeObject = {
    apiVersion: MicroServiceDeploy.apiVersion,
    kind: MicroServiceDeploy.kind,
    metadata: { name: 'ms-sample-v1s0', namespace: 'apps' },
    spec: MicroServiceDeploy.samples[0]?.spec,
  };

  it('are what the operator makes; seeded fields are left alone afterwards', async () => {
    const registrations = await run(
      () =>
        new ConstructResources('tree', {
          build: (chart) => void addKindChildren(chart, MicroServiceDeploy, sample, { shared: false }),
        }),
    );
    const objects = registrations.filter(({ custom }) => custom);
    const byKind = (all: readonly object[]): object[] =>
      [...all].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
    const manifests = renderChildren(MicroServiceDeploy, sample).map(({ manifest }) => manifest);
    expect(objects.length).toBeGreaterThan(2);
    expect(byKind(objects.map(({ object }) => withoutSkipAwait(object)))).toEqual(byKind(manifests));
    expect(named(registrations, 'tree/Deployment-ms-sample-v1s0').ignoreChanges).toEqual(['spec.replicas']);
    expect(objects.filter(({ ignoreChanges }) => ignoreChanges.length > 0)).toHaveLength(1);
    expect(objects.filter(({ type }) => type.endsWith(':Service'))).toHaveLength(1);
  });

  it('include the shared ones, and take tokens', async () => {
    const spec = { ...(sample['spec'] as object), autoscaling: false };
    const registrations = await run(
      () =>
        new ConstructResources('tree', {
          build: (chart) => {
            const image = outputs.text(pulumi.secret('private'));
            addKindChildren(chart, MicroServiceDeploy, { ...sample, spec: { ...spec, image } });
          },
        }),
    );
    expect(named(registrations, 'tree/ServiceAccount-ms-sample').object['metadata']).toMatchObject({
      namespace: 'apps',
    });
    const deployment = named(registrations, 'tree/Deployment-ms-sample-v1s0');
    // No autoscaler, so nobody else writes the number.
    expect(deployment.ignoreChanges).toEqual([]);
    expect(deployment.object).toMatchObject({
      spec: { template: { spec: { containers: [{ image: wrapped('private') }] } } },
    });
  });
});
