import * as pulumi from '@pulumi/pulumi';
import { kinds } from '../../../constructs/kinds';
import { DEFAULT_NAMESPACE } from '../../../constructs/platform';
import { version } from '../../../package.json';
import type { ProgramOutputs } from '../../../stacks/program';
import { named, run, wrapped } from '../bridge/engine';
import type { Registration } from '../bridge/engine';
import { KUBECONFIG, MINIMAL, useKubeconfigFile } from '../platform/kubeconfigs';

useKubeconfigFile();

type Program = ProgramOutputs;

const SSH_KEY = '-----BEGIN OPENSSH PRIVATE KEY-----\nCANARY-key\n-----END OPENSSH PRIVATE KEY-----\n';
const node = (address: string, ...roles: readonly string[]): object => ({
  ...{ address, user: 'root', roles },
  hostKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0',
});
const cluster = {
  ...{ name: 'prod', distribution: 'k3s', version: 'v1.30.4+k3s1' },
  nodes: [node('10.0.0.1', 'controlplane', 'etcd', 'worker'), node('10.0.0.2', 'worker')],
};

/** Modules of libraries that the program imports, which stay the same in each run of it. */
const libraries: readonly (readonly [name: string, module: object])[] = [
  ['@pulumi/pulumi', pulumi],
  ...[
    ...['@pulumi/kubernetes/core/v1', '@pulumi/kubernetes/provider', '@pulumi/kubernetes/utilities'],
    ...['cdk8s', 'cdk8s-plus-27', 'constructs', 'js-yaml', 'openid-client', 'pino', 'prom-client', 'undici', 'zod'],
    ...['@kubernetes/client-node/dist/config.js', '@kubernetes/client-node/dist/config_types.js', '@pulumi/command'],
  ].map((name) => [name, jest.requireActual<object>(name)] as const),
];

interface Ran {
  readonly registrations: readonly Registration[];
  readonly outputs: Program;
}

/** Images, of which the program does not warn as of its defaults. */
const images = { operatorImage: 'kindred-operator:test', provisionerImage: 'kindred-provisioner:test' };

/** Runs stacks/index.ts from its first line, as `pulumi up` does. */
async function runStack(
  values: Readonly<Record<string, unknown>>,
  { secretKeys = [], preview = false }: { secretKeys?: readonly string[]; preview?: boolean } = {},
): Promise<Ran> {
  const given = Object.entries<unknown>({ ...images, ...values }).filter(([, value]) => value !== undefined);
  const texts = given.map(([key, value]) => [
    `kindred:${key}`,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  let outputs: Program | undefined;
  const registrations = await run(
    () => {
      pulumi.runtime.setAllConfig(
        Object.fromEntries(texts) as Record<string, string>,
        secretKeys.map((key) => `kindred:${key}`),
      );
      jest.isolateModules(() => {
        // What holds the run's state stays the same, and so do the other libraries, whose loading takes seconds.
        for (const [name, library] of libraries) jest.doMock(name, () => library);
        outputs = jest.requireActual<Program>('../../../stacks');
      });
    },
    { preview },
  );
  if (outputs === undefined) throw new Error('the program did not run');
  return { registrations, outputs };
}

async function valueOf<T>(output: pulumi.Output<T>): Promise<{ value: T; secret: boolean }> {
  const value = await new Promise<T>((resolve) => void output.apply((plain) => resolve(plain)));
  return { value, secret: await pulumi.isSecret(output) };
}

const objects = (registrations: readonly Registration[]): readonly Registration[] =>
  registrations.filter(({ type, custom }) => custom && type.startsWith('kubernetes:'));

const ofKind = (registrations: readonly Registration[], kind: string): readonly Registration[] =>
  registrations.filter(({ type }) => type.endsWith(`:${kind}`));

describe('on an existing cluster', () => {
  test('a context: the platform, and nothing else', async () => {
    const { registrations, outputs } = await runStack({ context: 'prod' });
    for (const name of ['kindred-cluster', 'kindred-retained']) {
      expect(named(registrations, name).object['kubeconfig']).toEqual(wrapped(MINIMAL));
    }
    expect(ofKind(registrations, 'CustomResourceDefinition')).toHaveLength(kinds.length);
    expect(ofKind(registrations, 'Deployment')).toHaveLength(1);
    expect(objects(registrations).filter(({ name }) => name.startsWith('sample-'))).toEqual([]);
    // Not even undefined, of which Pulumi would warn.
    expect(Object.keys(outputs).sort()).toEqual(['crdVersions', 'installedKinds', 'namespace', 'operatorImages']);
    expect(await valueOf(outputs.namespace)).toEqual({ value: DEFAULT_NAMESPACE, secret: false });
    expect((await valueOf(outputs.installedKinds)).value).toEqual(kinds.map(({ crdName }) => crdName).sort());
    expect((await valueOf(outputs.crdVersions)).value).toMatchObject({ 'foos.samplecontroller.k8s.io': ['v1alpha1'] });
    expect((await valueOf(outputs.operatorImages)).value).toEqual({
      operator: expect.stringMatching(/^kindred-operator:/) as unknown,
    });
  });

  test('an image that is in no registry is a warning of the preview, with what to do, until an image is named', async () => {
    const warn = jest.spyOn(pulumi.log, 'warn').mockResolvedValue(undefined);
    try {
      await runStack(
        { context: 'a', provisioner: true, operatorImage: undefined, provisionerImage: undefined },
        { preview: true },
      );
      const words = warn.mock.calls.map(([message]) => message);
      expect(words).toEqual([
        expect.stringMatching(
          /^no registry has kindred-operator:.* make the image with npm run image -- --push=REF/,
        ) as unknown,
        expect.stringMatching(
          / -- --operator=provisioner --push=REF and name it with pulumi config set kindred:provisionerImage REF/,
        ) as unknown,
      ]);
      warn.mockClear();
      await runStack({ context: 'a', operatorImage: `kindred-operator:${version}` });
      await runStack({ context: 'a', operatorImage: undefined, replicas: 0 });
      expect(warn).not.toHaveBeenCalled();
    } finally {
      warn.mockRestore();
    }
  });

  test('a kubeconfig is an output, and a secret; it stands in the clear nowhere', async () => {
    const { registrations, outputs } = await runStack({ kubeconfig: KUBECONFIG }, { secretKeys: ['kubeconfig'] });
    expect(await valueOf(outputs.kubeconfig!)).toEqual({ value: KUBECONFIG, secret: true });
    expect(named(registrations, 'kindred-cluster').object['kubeconfig']).toEqual(wrapped(MINIMAL));
    expect(JSON.stringify(registrations).split('CANARY')).toHaveLength(5);
  });

  test('a namespace of the samples that is guarded with numbers keeps them, and is guarded once', async () => {
    const guarded = { name: 'demo', quota: { 'limits.cpu': 8 } };
    const { registrations } = await runStack({
      ...{ context: 'a', samples: true, samplesNamespace: 'demo', guardedNamespaces: [guarded] },
    });
    const quotas = ofKind(registrations, 'ResourceQuota').map(({ object }) => object['spec']);
    expect(quotas).toEqual([{ hard: expect.objectContaining({ 'limits.cpu': '8' }) as unknown }]);
  });

  test('samples come after the operator, in a namespace of their own', async () => {
    const { registrations } = await runStack({
      ...{ context: 'a', samples: true, samplesNamespace: 'demo', timeoutSeconds: 90 },
    });
    const samples = objects(registrations).filter(({ name }) => name.startsWith('sample-'));
    expect(samples.map(({ type }) => type.replace(/^.*:/, '')).sort()).toEqual(
      kinds.flatMap(({ kind, samples: own }) => own.map(() => kind)).sort(),
    );
    const deployment = ofKind(registrations, 'Deployment')[0];
    for (const sample of samples) {
      expect(sample.dependencies).toContain(deployment?.urn);
      expect(sample.object['metadata']).toMatchObject({ namespace: 'demo' });
      expect(sample.timeouts).toEqual(['90s', '90s', '90s']);
    }
    expect(deployment?.timeouts).toEqual(['90s', '90s', '90s']);
    expect(named(registrations, 'kindred/guardrails/demo/namespace').retainOnDelete).toBe(true);
  });

  test('kinds, namespaces, replicas, images, monitoring', async () => {
    const { registrations } = await runStack({
      ...{ context: 'a', namespace: 'ops', kinds: ['HelloApp'], replicas: 3, operatorImage: 'r/op:2' },
      ...{ watchNamespaces: ['shop'], monitoring: true, monitoringLabels: { release: 'p' }, protect: true },
    });
    const [crd, ...others] = ofKind(registrations, 'CustomResourceDefinition');
    expect(others).toEqual([]);
    expect(crd?.protect).toBe(true);
    expect(ofKind(registrations, 'Deployment')[0]?.object).toMatchObject({
      metadata: { namespace: 'ops' },
      spec: { replicas: 3, template: { spec: { containers: [{ image: 'r/op:2' }] } } },
    });
    expect(JSON.stringify(ofKind(registrations, 'Deployment')[0]?.object)).toContain('--namespaces=shop');
    expect(ofKind(registrations, 'PodMonitor')[0]?.object).toMatchObject({ metadata: { labels: { release: 'p' } } });
  });

  test('the provisioner is an operator of its own', async () => {
    const { registrations } = await runStack({
      ...{ context: 'a', provisioner: true, provisionerImage: 'r/pro:1' },
      ...{ namespace: 'sys', provisionerSecretNamespaces: ['machines'] },
      ...{ provisionerConfigSecret: 'files', provisionerConfigFiles: { 'clusters/aws.yml': 'aws.yml' } },
    });
    const deployments = ofKind(registrations, 'Deployment');
    expect(deployments).toHaveLength(2);
    const deployment = JSON.stringify(deployments);
    for (const part of [
      'r/pro:1',
      '--state-namespace=sys',
      '--secret-namespaces=machines',
      '--config-dir=/etc/kindred/config',
    ]) {
      expect(deployment).toContain(part);
    }
    expect(deployment).toContain('"items":[{"key":"aws.yml","path":"clusters/aws.yml"}],"secretName":"files"');
    const readsSecrets = ofKind(registrations, 'Role').filter(({ object }) =>
      JSON.stringify(object).includes('"secrets"'),
    );
    expect(readsSecrets.map(({ object }) => (object.metadata as { namespace?: string }).namespace).sort()).toEqual([
      'machines',
      'sys',
    ]);
    expect(ofKind(registrations, 'CustomResourceDefinition')).toHaveLength(kinds.length + 2);
  });
});

describe('on machines', () => {
  const values = { cluster, sshKey: SSH_KEY, operatorImage: 'r/op:1' };

  test('the cluster comes first, and the platform goes to it', async () => {
    const { registrations, outputs } = await runStack(values, { secretKeys: ['sshKey'], preview: true });
    const commands = registrations.filter(({ type }) => type === 'command:remote:Command');
    expect(commands.length).toBeGreaterThan(1);
    for (const name of ['kindred-cluster', 'kindred-retained']) {
      const { object, dependencies } = named(registrations, name);
      expect(object).toMatchObject({ clusterIdentifier: 'prod' });
      for (const { urn } of commands) expect(dependencies).toContain(urn);
    }
    expect(commands.filter((command) => command.protect).length).toBeGreaterThan(1);
    expect(await pulumi.isSecret(outputs.kubeconfig!)).toBe(true);
  });

  test('may be taken down when they are no longer protected', async () => {
    const { registrations } = await runStack(
      { ...values, protectMachines: false },
      { secretKeys: ['sshKey'], preview: true },
    );
    expect(registrations.filter((one) => one.protect)).toEqual([]);
  });

  test('the key stands in the clear nowhere', async () => {
    const { registrations } = await runStack(values, { secretKeys: ['sshKey'], preview: true });
    const strip = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(strip);
      if (typeof value !== 'object' || value === null) return value;
      if (pulumi.runtime.specialSigKey in value) return '[secret]';
      return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, strip(field)]));
    };
    expect(JSON.stringify(registrations)).toContain('CANARY-key');
    expect(JSON.stringify(strip(registrations))).not.toContain('CANARY');
  });
});

test('a configuration that is wrong ends it before anything is registered, without a stack trace', async () => {
  const failed = runStack({ replicas: 'two' }).catch((error: unknown) => error);
  expect(await failed).toMatchObject({
    name: 'Error',
    message: expect.stringMatching(/^the configuration of this stack is not valid:\n {2}kindred:replicas: /) as string,
    __pulumiRunError: true,
  });
});
