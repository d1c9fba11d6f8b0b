import { writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import {
  FAKE_INSTALLER,
  hostsAvailable,
  buildFakeDistributions,
  startHosts,
  type Hosts,
  type TestHost,
} from '../../support/hosts';
import { temporaryFolder } from '../../support/temporary-folder';
import { encodingsOf } from '../../support/hosts/leaks';
import { RealStack, pulumiVersion } from './pulumi-cli';

/** The whole stack by the real CLI, its providers and its state: first the cluster on machines, then the platform on it. */

const why = pulumiVersion() === undefined ? 'there is no working `pulumi` on PATH' : hostsAvailable();
if (why !== undefined) console.log(`skipped: ${why}, so no machines were set up by the real CLI`);
const describeWhere = why === undefined ? describe : describe.skip;

jest.setTimeout(900_000);

/** What a run that must fail said. */
async function refusal(run: Promise<unknown>): Promise<string> {
  const said = await run.then(
    () => undefined,
    (error: unknown) => (error as Error).message,
  );
  if (said === undefined) throw new Error('it did not fail');
  return said;
}

describeWhere('machines under the real pulumi CLI', () => {
  const code = temporaryFolder('kindred-stand-in-');
  let hosts: Hosts;
  let one: TestHost;
  let stack: RealStack;
  const secrets: string[] = [];

  beforeAll(async () => {
    const parts = await buildFakeDistributions(code);
    hosts = await startHosts({ names: ['one'], mounts: parts.mounts });
    one = hosts.get('one');
    await parts.setUp(one);
    stack = new RealStack();
    const { address, hostKey } = one;
    const cluster = {
      ...{ name: 'prod', distribution: 'k3s', version: 'v1.33.4+k3s1', installer: { path: FAKE_INSTALLER } },
      nodes: [{ address, hostKey, user: 'root', roles: ['controlplane', 'etcd', 'worker'] }],
    };
    await stack.init({ cluster, kinds: ['HelloApp'], replicas: 1 }, { sshKey: one.privateKey });
    secrets.push(one.privateKey.split('\n')[2] ?? '');
  });
  afterAll(async () => {
    stack.remove();
    await hosts.end();
  });

  /** Changes the version in the stack's own file, as a person does with an editor. */
  function setVersion(from: string, to: string): void {
    const file = stack.files().find(({ path }) => path.endsWith('/Pulumi.test.yaml'));
    if (!file?.text.includes(from)) throw new Error(`the configuration of the stack does not have ${from}`);
    writeFileSync(file.path, file.text.replace(from, to));
  }

  /** Nothing of a secret lies on disk in the clear, but where the provider puts the kubeconfig for itself; nor was it said. */
  function expectNoSecrets(said: string): void {
    const files = stack.files().filter(({ path }) => !/\/kubeconfig\d*$/.test(path));
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(16);
      for (const form of encodingsOf(secret)) {
        expect(files.filter(({ text }) => text.includes(form)).map(({ path }) => path)).toEqual([]);
        expect(said.includes(form)).toBe(false);
      }
    }
  }

  test('a preview needs no machine', async () => {
    await one.stopSshd();
    const { code: status, text } = await stack.preview();
    await one.startSshd();
    expect({ status, text }).toEqual({
      status: 0,
      text: expect.stringContaining(`prod/${one.address}/install`) as string,
    });
    expectNoSecrets(text);
  });

  test('what is wrong with the machine is said, and nothing more', async () => {
    await one.exec('mkdir -p /var/lib/kindred && mv /usr/bin/flock /usr/bin/flock.away');
    const said = await refusal(stack.up());
    await one.exec('mv /usr/bin/flock.away /usr/bin/flock');
    expect(said).toContain('the program flock: is missing; install it');
    expectNoSecrets(said);
  });

  test('up makes the cluster, and installs the platform on it', async () => {
    expect(Object.keys(await stack.up())).toEqual(['create']);
    const kubeconfig = parse(String(await stack.output('kubeconfig'))) as {
      readonly users: readonly { readonly user: Readonly<Record<string, string>> }[];
    };
    secrets.push(kubeconfig.users[0]?.user['client-key-data'] ?? '', await one.exec('cat /var/lib/kindred/prod/token'));
    const kubectl = 'k3s kubectl --kubeconfig /etc/rancher/k3s/k3s.yaml';
    expect(
      await one.exec(`${kubectl} get deployments -n kindred-system -o 'jsonpath={.items[*].status.readyReplicas}'`),
    ).toBe('1');
    expectNoSecrets('');
  });

  test('a second up changes nothing', async () => {
    expect(await stack.up()).toEqual({});
  });

  test('a version that the cluster cannot go to is refused by the machine', async () => {
    setVersion('v1.33.4+k3s1', 'v1.35.0+k3s1');
    const said = await refusal(stack.up());
    expect(said).toContain('skips a minor version: K3s v1.33.4+k3s1 is installed. Go to a v1.34 first');
    expectNoSecrets(said);
    setVersion('v1.35.0+k3s1', 'v1.33.4+k3s1');
    // The inputs of the component, which the refused run has changed; it has nothing on the machine.
    expect(await stack.up()).toEqual({ update: 1 });
    expect(await stack.up()).toEqual({});
  });

  test('destroy is refused while the machines are protected, and then cleans them', async () => {
    const said = await refusal(stack.destroy());
    expect(said).toMatch(/protect/);
    await stack.set('protectMachines', 'false');
    await stack.up();
    expect(Object.keys(await stack.destroy())).toEqual(['delete']);
    const left = 'ls -d /usr/local/bin/k3s /etc/rancher/k3s /var/lib/rancher/k3s/server 2>/dev/null || echo nothing';
    expect(await one.exec(left)).toBe('nothing\n');
    expectNoSecrets('');
  });
});
