import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as pulumi from '@pulumi/pulumi';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { z } from 'zod';
import {
  CronTab,
  CustomResource,
  CustomResourceDefinition,
  defineKind,
  HelloApp,
  MicroServiceDeploy,
  owned,
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

describe('children that rendering changes or refuses', () => {
  const Login = defineKind({
    group: 'test.example.com',
    version: 'v1',
    kind: 'Login',
    plural: 'logins',
    scope: 'Namespaced',
    description: 'A login.',
    spec: z.object({
      password: z.string().describe('Password.'),
      port: z.int().default(1).describe('Port.'),
      encoded: z.string().default('YQ==').describe('In base64.'),
      names: z.array(z.string()).default([]).describe('Names of variables.'),
    }),
    owns: [owned.Secret, owned.Deployment],
    children(scope, { metadata: { name }, spec: { password, port, encoded, names } }) {
      const metadata = { name };
      const stringData = { port: String(port), uri: `db://u:${password}@host:${port}` };
      new ApiObject(scope, 's', { apiVersion: 'v1', kind: 'Secret', metadata, data: { encoded }, stringData });
      const env = names.map((variable) => ({ name: variable, value: password }));
      const template = { spec: { containers: [{ name, env }] } };
      new ApiObject(scope, 'd', { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { template } });
    },
  });
  const login = (spec: object): KubeObject => ({
    ...{ apiVersion: Login.apiVersion, kind: 'Login', metadata: { name: 'x', namespace: 'apps' } },
    spec,
  });
  const build = (spec: () => object): Promise<Awaited<ReturnType<typeof run>>> =>
    run(() => new ConstructResources('tree', { build: (chart) => void addKindChildren(chart, Login, login(spec())) }));
  const base64 = (text: string): string => Buffer.from(text).toString('base64');

  it('keep the Outputs in a Secret that was given as texts: alone, within a text, and encoded before', async () => {
    const registrations = await build(() => ({
      password: outputs.text(pulumi.secret('p')),
      port: outputs.number(pulumi.output(5432)),
      encoded: outputs.text(pulumi.secret(base64('e'))),
    }));
    const { object } = named(registrations, 'tree/Secret-x');
    expect(object).not.toHaveProperty('stringData');
    expect(object['data']).toEqual({
      encoded: wrapped(base64('e')),
      port: wrapped(base64('5432')),
      uri: wrapped(base64('db://u:p@host:5432')),
    });
  });

  it('are in the preview what the operator makes, as data', async () => {
    const spec = { password: 'p' };
    const { object } = named(await build(() => spec), 'tree/Secret-x');
    const [manifest] = renderChildren(Login, login(spec));
    const data = manifest?.manifest.data as Readonly<Record<string, string>>;
    expect(data).toEqual({ encoded: 'YQ==', port: base64('1'), uri: base64('db://u:p@host:1') });
    expect(object['data']).toEqual(Object.fromEntries(Object.entries(data).map(([key, text]) => [key, wrapped(text)])));
  });

  it('are refused with an Output that JavaScript turned into text, which base64 would hide', async () => {
    // oxlint-disable-next-line typescript/no-base-to-string -- the mistake that is to be refused
    const spec = (): object => ({ password: pulumi.output('canary').toString() });
    await expect(build(spec)).rejects.toThrow('an Output was turned into text by JavaScript');
  });

  it('are refused with a key twice, and the message has the placeholder of a secret and not the secret', async () => {
    const refused = build(() => ({ password: outputs.text(pulumi.secret('canary')), names: ['A', 'A'] }));
    await expect(refused).rejects.toThrow('Deployment "x" has list items with the same key');
    await expect(refused).rejects.toThrow(
      'spec.template.spec.containers[0].env[1]: the key name="A" is at [0] already',
    );
    await expect(refused).rejects.not.toThrow('canary');
  });
});
