import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dump, load } from 'js-yaml';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { kubectl } from '../../../testing/kubectl';
import { OperatorProcess } from '../../../testing';
import { parseConfig } from '../../../stacks/config/parse';
import { program } from '../../../stacks/program';
import { FAKE_INSTALLER, buildFakeDistributions, startHosts, type Hosts, type TestHost } from '../../support/hosts';
import { Engine, commandProvider, kubernetesProvider, type Result } from '../../support/pulumi-engine';
import { temporaryFolder } from '../../support/temporary-folder';
import { encodingsOf } from '../../support/hosts/leaks';
import { describeOnHosts } from '../../support/hosts/describe-on-hosts';

/**
 * The whole stack, from bare machines to an app that runs. The machines are namespaces of this one, the installers stand-ins that start a real
 * control plane; the operator's pods are KWOK's, so its bundle runs here, as the Deployment's ServiceAccount and with its arguments.
 */
jest.setTimeout(600_000);

interface OperatorDeployment extends KubeObject {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly serviceAccountName: string;
        readonly containers: readonly { readonly args: string[] }[];
      };
    };
  };
}

interface Kubeconfig {
  readonly users: readonly { readonly name: string }[];
}

describeOnHosts('from bare machines to a running HelloApp', () => {
  const folder = temporaryFolder('kindred-bare-');
  const code = temporaryFolder('kindred-stand-in-');
  let hosts: Hosts;
  let one: TestHost;
  let two: TestHost;
  let engine: Engine;
  let operator: OperatorProcess | undefined;

  beforeAll(async () => {
    const parts = await buildFakeDistributions(code);
    hosts = await startHosts({ names: ['one', 'two'], mounts: parts.mounts });
    await Promise.all(hosts.all.map((host) => parts.setUp(host)));
    [one, two] = [hosts.get('one'), hosts.get('two')];
    await two.exec('cat >>/etc/ssh/keys/authorized', await one.exec('cat /etc/ssh/keys/authorized'));
    engine = new Engine({ providers: [commandProvider(), kubernetesProvider()] });
  });
  afterAll(async () => {
    await operator?.kill();
    await hosts.end();
  });

  const stack = (more: Readonly<Record<string, string>> = {}) => {
    const node = ({ address, hostKey }: TestHost, roles: readonly string[]) => ({
      address,
      hostKey,
      user: 'root',
      roles,
    });
    const cluster = {
      name: 'prod',
      distribution: 'rke2',
      version: 'v1.34.1+rke2r1',
      nodes: [node(one, ['controlplane', 'etcd', 'worker']), node(two, ['worker'])],
      installer: { path: FAKE_INSTALLER },
    };
    const values = {
      cluster: JSON.stringify(cluster),
      sshKey: one.privateKey,
      kinds: JSON.stringify(['HelloApp']),
      replicas: '1',
      ...more,
    };
    return () => ({ ...program(parseConfig({ values, secretKeys: new Set(['sshKey']) })) });
  };

  const onCluster = async (...args: readonly string[]): Promise<string> => {
    const {
      code: status,
      stdout,
      stderr,
    } = await kubectl({ adminKubeconfig: join(folder, 'kubeconfig'), dataDir: folder }, args);
    if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
    return stdout;
  };

  /** The operator as its Deployment has it: its arguments, as its account. */
  async function startOperator(kubeconfig: string): Promise<OperatorProcess> {
    const found = await onCluster('get', 'deployments', '-n', 'kindred-system', '-o', 'json');
    const [deployment] = (JSON.parse(found) as { readonly items: readonly OperatorDeployment[] }).items;
    const { serviceAccountName, containers } = deployment!.spec.template.spec;
    const token = await onCluster('create', 'token', serviceAccountName, '-n', 'kindred-system');
    const known = load(kubeconfig) as Kubeconfig;
    const users = known.users.map(({ name }) => ({ name, user: { token: token.trim() } }));
    const file = join(folder, 'operator');
    writeFileSync(file, dump({ ...known, users }), { mode: 0o600 });
    const started = await OperatorProcess.start({ kubeconfig: file, args: containers[0]!.args });
    await started.waitUntilReconciling();
    return started;
  }

  /** What a run changed. */
  const changed = (result: Result): readonly string[] => result.changes.map(({ op, name }) => `${op} ${name}`);

  function expectNoSecrets(result: Result, secrets: readonly string[]): void {
    const text = result.plainText();
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(16);
      for (const form of encodingsOf(secret)) expect(text.includes(form)).toBe(false);
    }
  }

  test('the cluster comes up, then the platform on it', async () => {
    const made = await engine.up(stack());
    const kubeconfig = made.output('kubeconfig');
    if (typeof kubeconfig !== 'string' || !made.isSecret('kubeconfig')) throw new Error('no secret kubeconfig');
    writeFileSync(join(folder, 'kubeconfig'), kubeconfig, { mode: 0o600 });
    expect((await onCluster('get', 'nodes', '-o', 'name')).trim().split('\n').sort()).toEqual(['node/one', 'node/two']);

    // Nothing of the platform was begun before the last machine was ready.
    const names = made.changes.map(({ name }) => name);
    const ready = names.indexOf(`prod/${two.address}/ready`);
    expect(ready).toBeGreaterThan(0);
    expect(names.findIndex((name) => name.includes('helloapps'))).toBeGreaterThan(ready);

    const token = await one.exec('cat /var/lib/kindred/prod/token');
    const key = /client-key-data: "?([A-Za-z0-9+/=]{40,})/.exec(kubeconfig)?.[1] ?? '';
    expectNoSecrets(made, [one.privateKey.split('\n')[2] ?? '', token, key.slice(0, 60)]);
    expect(changed(await engine.up(stack()))).toEqual([]);
    operator = await startOperator(kubeconfig);
  });

  test('an app is created through the same stack, and runs', async () => {
    const result = await engine.up(stack({ samples: 'true' }));
    expect(result.summary.filter((line) => /HelloApp|helloapp/i.test(line))).not.toEqual([]);
    const ready = await onCluster(
      ...['get', 'helloapps', '-n', 'kindred-samples'],
      ...['-o', 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}'],
    );
    expect(ready).toBe('True');
    const pods = await onCluster('get', 'pods', '-n', 'kindred-samples', '-o', 'jsonpath={.items[*].status.phase}');
    expect(pods).toMatch(/^Running/);
    expect(changed(await engine.up(stack({ samples: 'true' })))).toEqual([]);
  });

  test('all of it goes, in the reverse order, once the machines are unprotected', async () => {
    await expect(engine.destroy()).rejects.toThrow(/protect/);
    await engine.up(stack({ samples: 'true', protectMachines: 'false' }));
    const result = await engine.destroy();
    const names = result.changes.map(({ name }) => name);
    const app = names.findIndex((name) => name.startsWith('sample-helloapp'));
    const uninstalled = names.indexOf(`prod/${one.address}/install/removal`);
    expect(app).toBeGreaterThanOrEqual(0);
    expect(uninstalled).toBeGreaterThan(app);
    expect(engine.state.resources).toEqual([]);
    for (const host of [one, two]) {
      const left =
        'ls -d /usr/local/bin/rke2 /etc/rancher/rke2 /var/lib/rancher/rke2/server 2>/dev/null || echo nothing';
      expect(await host.exec(left)).toBe('nothing\n');
    }
  });
});
