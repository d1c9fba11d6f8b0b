import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { HelloApp, kinds } from '../../../constructs/kinds';
import { useControlPlane } from '../../support/use-control-plane';
import { kubectl } from '../../../testing/kubectl';
import { RealStack, pulumiVersion } from './pulumi-cli';

const version = pulumiVersion();
if (version === undefined) {
  console.log('skipped: there is no working `pulumi` on PATH, so the stack was not run by the real CLI');
}
const describeWhere = version === undefined ? describe.skip : describe;

jest.setTimeout(900_000);

describeWhere('the stack under the real pulumi CLI', () => {
  const plane = useControlPlane();
  const other = useControlPlane();
  let stack: RealStack;

  beforeAll(async () => {
    stack = new RealStack();
    const config = { guardedNamespaces: ['default', { name: 'shop', create: true }] };
    await stack.init(config, { kubeconfig: readFileSync(plane.adminKubeconfig, 'utf8') });
  });

  afterAll(() => stack.remove());

  const get = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await kubectl(plane, ['get', ...args]);
    return code === 0 ? stdout.trim() : stderr.trim();
  };

  test('up installs the platform', async () => {
    const changes = await stack.up();
    expect(Object.keys(changes)).toEqual(['create']);
    const crds = await get('crd', '-o', 'jsonpath={.items[*].metadata.name}');
    expect(crds.split(' ').sort()).toEqual(kinds.map(({ crdName }) => crdName).sort());
    expect(await get('deployment', '-n', 'kindred-system', '-o', 'jsonpath={.items[*].status.readyReplicas}')).toBe(
      '2',
    );
    expect(await stack.output('installedKinds')).toEqual(kinds.map(({ crdName }) => crdName).sort());
    expect(await stack.output('kubeconfig')).toBe(readFileSync(plane.adminKubeconfig, 'utf8').trimEnd());
  });

  test('a second up changes nothing, and a refresh finds no change', async () => {
    expect(await stack.up()).toEqual({});
    expect(await stack.refresh('--expect-no-changes')).toMatchObject({ code: 0 });
  });

  test('an up that would store that unreachable objects are forgotten is refused', async () => {
    process.env['PULUMI_K8S_DELETE_UNREACHABLE'] = 'true';
    try {
      await expect(stack.up()).rejects.toThrow(
        'PULUMI_K8S_DELETE_UNREACHABLE is set, which is for `pulumi destroy` only',
      );
    } finally {
      delete process.env['PULUMI_K8S_DELETE_UNREACHABLE'];
    }
    expect(await stack.up()).toEqual({});
  });

  test('a changed configuration changes what follows from it, and nothing else', async () => {
    await stack.set('replicas', '3');
    // The Deployment, and the inputs of the component, which has no object in the cluster.
    expect(await stack.up()).toEqual({ update: 2 });
    expect(await get('deployment', '-n', 'kindred-system', '-o', 'jsonpath={.items[*].spec.replicas}')).toBe('3');
  });

  describe('a run that is killed', () => {
    const objects = async (): Promise<readonly string[]> => {
      const types = 'clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,services,deployments';
      const names = await get(types, '-A', '-l', 'app.kubernetes.io/part-of=kindred', '-o', 'name');
      return names.split('\n').filter((name) => name !== '');
    };

    test.each([/ClusterRoleBinding .* creating/, /ServiceAccount .* creating/, /Deployment .* creating/])(
      'at %s is finished by the next up, and removed by destroy',
      async (said) => {
        await stack.destroy();
        await stack.killUp(said);
        expect(await objects()).not.toEqual([]);
        await stack.up();
        expect(await stack.up()).toEqual({});
        await stack.destroy();
        await stack.killUp(said);
        await stack.destroy();
        expect(await objects()).toEqual([]);
      },
    );

    test('in a change of the namespace is finished by the next up', async () => {
      await stack.up();
      for (const namespace of ['ops', 'kindred-system']) {
        await stack.set('namespace', namespace);
        await stack.killUp(/creating replacement/);
        await stack.up();
        expect(await stack.up()).toEqual({});
        const deployments = await get('deployments', '-A', '-o', 'jsonpath={.items[*].metadata.namespace}');
        expect(deployments).toBe(namespace);
      }
    });

    test('leaves pending operations, which a refresh removes', async () => {
      expect((await stack.refresh('--clear-pending-creates')).code).toBe(0);
      expect((await stack.preview()).text).not.toContain('pending operations');
    });
  });

  test('destroy leaves the CRDs, the namespaces and the objects; up takes them over', async () => {
    const object = {
      ...{ apiVersion: HelloApp.apiVersion, kind: HelloApp.kind },
      ...{ metadata: { name: 'kept', namespace: 'shop' }, spec: { image: 'nginx' } },
    };
    expect(await kubectl(plane, ['create', '-f', '-'], { input: JSON.stringify(object) })).toMatchObject({ code: 0 });
    const uid = ['helloapp', 'kept', '-n', 'shop', '-o', 'jsonpath={.metadata.uid}'];
    const before = await get(...uid);

    const namespace = ['namespace', 'kindred-system', '-o', 'jsonpath={.metadata.uid}'];
    const home = await get(...namespace);

    await stack.destroy();
    expect(await get('all', '-n', 'kindred-system', '-o', 'name')).toBe('');
    expect(await get(...namespace)).toBe(home);
    expect(await get(...uid)).toBe(before);
    // Somebody has changed in the meantime what stayed behind, and owns the field now.
    const patch = JSON.stringify({ spec: { names: { categories: ['other'] } } });
    await kubectl(plane, ['patch', 'crd', HelloApp.crdName, '--type=merge', '-p', patch]);
    const categories = ['crd', HelloApp.crdName, '-o', 'jsonpath={.spec.names.categories}'];
    expect(await get(...categories)).toBe('["other"]');

    const changes = await stack.up();
    expect(Object.keys(changes)).toEqual(['create']);
    expect(await get(...categories)).toBe('["kindred"]');
    expect(await get(...uid)).toBe(before);
    expect(await stack.up()).toEqual({});
  });

  test('no key of the kubeconfig stands on disk in the clear but where the provider puts it for itself', () => {
    const key = /client-key-data: (\S+)/.exec(readFileSync(plane.adminKubeconfig, 'utf8'))?.[1] ?? '';
    expect(key.length).toBeGreaterThan(100);
    // The provider writes the kubeconfig to files of its own in TMPDIR, with mode 0600.
    const found = stack.files().filter(({ path, text }) => text.includes(key) && !/\/kubeconfig\d*$/.test(path));
    expect(found.map(({ path }) => path)).toEqual([]);
  });

  test('a context that is not there fails the preview; another kubeconfig of the same cluster replaces nothing', async () => {
    await stack.set('context', 'nosuch');
    const { code, text } = await stack.preview();
    expect(code).not.toBe(0);
    expect(text).toContain('there is no context "nosuch" in the kubeconfig; there are ');
    const config = parse(readFileSync(plane.adminKubeconfig, 'utf8')) as {
      contexts: { name: string }[];
      'current-context': string;
    };
    const [context] = config.contexts.filter(({ name }) => name === config['current-context']);
    const renamed = { ...config, contexts: [...config.contexts, { ...context, name: 'nosuch' }] };
    await stack.setSecret('kubeconfig', stringify(renamed));
    expect(await stack.up()).toEqual({});
    await stack.set('context', config['current-context']);
    expect(await stack.up()).toEqual({});
  });

  test('another cluster is refused, and loses and gets nothing; destroy and up move the platform there', async () => {
    const there = async (): Promise<string> =>
      (await kubectl(other, ['get', 'deployments', '-A', '-l', 'app.kubernetes.io/part-of=kindred', '-o', 'name']))
        .stdout;
    const here = ['deployments', '-n', 'kindred-system', '-o', 'name'];
    const config = parse(readFileSync(other.adminKubeconfig, 'utf8')) as { 'current-context': string };
    await stack.setSecret('kubeconfig', readFileSync(other.adminKubeconfig, 'utf8'));
    await stack.set('context', config['current-context']);
    const installed = await get(...here);
    expect(installed).not.toBe('');
    const refusal = (await stack.preview()).text;
    expect(refusal).toMatch(
      /^ +error: PlatformComponent kindred: the kubeconfig leads to another cluster than the one/m,
    );
    expect(refusal).not.toMatch(/serializing|^ +at /m);
    await expect(stack.up()).rejects.toThrow('leads to another cluster than the one');
    expect([await get(...here), await there()]).toEqual([installed, '']);
    await stack.destroy();
    expect(await get(...here)).toBe('');
    await stack.up();
    expect(await there()).not.toBe('');
    expect(await stack.up()).toEqual({});
  });

  test('destroy, at last', async () => {
    const changes = await stack.destroy();
    // Pulumi discards what it has only read: the namespace by which the cluster is known.
    expect(Object.keys(changes).sort()).toEqual(['delete', 'discard']);
  });
});
