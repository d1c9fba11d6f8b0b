import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { useControlPlane } from '../support/use-control-plane';
import { kubectl, kubectlOrThrow } from '../../testing/kubectl';
import { goToolsUnavailable } from '../support/go-tools/build';
import { helm, helmOrThrow, helmVersions } from '../support/helm';
import { temporaryFolder } from '../support/temporary-folder';

jest.setTimeout(300_000);

const why = goToolsUnavailable();
if (why !== undefined) console.warn(why);

const root = join(__dirname, '..', '..');
const cli = join(root, 'dist', 'cli.cjs');
const synth = (...flags: readonly string[]): string => {
  const out = temporaryFolder('kindred-helm-');
  execFileSync(process.execPath, [cli, `--project=${root}`, 'synth', `--out=${out}`, '--image=operator:1', ...flags], {
    stdio: 'pipe',
  });
  return out;
};

(why === undefined ? describe : describe.skip).each(helmVersions)('the chart in a cluster, with %s', (version) => {
  const plane = useControlPlane({ components: 'full' });
  let chart: string;
  beforeAll(() => (chart = synth('--format=helm')));

  const run = (...args: readonly string[]): string => helmOrThrow(version, args, plane.adminKubeconfig);
  const names = async (...args: readonly string[]): Promise<readonly string[]> => {
    const printed = await kubectlOrThrow(plane, ['get', ...args, '-o', 'name', '--ignore-not-found']);
    return printed.split('\n').filter((line) => line !== '');
  };
  const uidOf = (...ref: readonly string[]): Promise<string> =>
    kubectlOrThrow(plane, ['get', ...ref, '-o', 'jsonpath={.metadata.uid}']);
  const sample = `{"apiVersion": "apps.anupam.com/v1", "kind": "HelloApp", "metadata": {"name": "x", "namespace": "kindred-samples"}, "spec": {"image": "i"}}`;
  const part = 'app.kubernetes.io/part-of=kindred';

  test('install, upgrade, uninstall and install again leave what is of users alone', async () => {
    expect(run('install', 'kindred', chart, '--wait', '--timeout=2m')).toContain(
      'is installed in the namespace kindred-system.',
    );
    await kubectlOrThrow(plane, ['apply', '-f', '-'], sample);
    const [object, crd, namespace] = [
      ['helloapp', 'x', '-n', 'kindred-samples'],
      ['crd', 'helloapps.apps.anupam.com'],
      ['namespace', 'kindred-system'],
    ] as const;
    const uids = (): Promise<readonly string[]> => Promise.all([object, crd, namespace].map((ref) => uidOf(...ref)));
    const before = await uids();

    run('upgrade', 'kindred', chart, '--set', 'operator.replicas=1,provisioner.enabled=true', '--wait', '--timeout=2m');
    const replicas = ['get', 'deployment', '-n', 'kindred-system', '-o', 'jsonpath={.items[*].spec.replicas}'];
    expect(await kubectlOrThrow(plane, replicas)).toBe('1 2');
    run('upgrade', 'kindred', chart, '--set', 'crds.enabled=false', '--wait', '--timeout=2m');
    expect(await uids()).toEqual(before);
    expect(await names('deployment', '-n', 'kindred-system')).toEqual(['deployment.apps/kindred-operator']);

    run('uninstall', 'kindred', '--wait');
    expect(await uids()).toEqual(before);
    const removable = 'deployment,service,serviceaccount,role,rolebinding,clusterrole,clusterrolebinding,resourcequota';
    expect(await names(removable, '-A', '-l', part)).toEqual([]);

    run('install', 'kindred', chart, '--wait', '--timeout=2m');
    expect(await uids()).toEqual(before);
    run('uninstall', 'kindred', '--wait');
  });

  test('a release in a namespace of its own, which Helm makes, and over what kubectl applied', async () => {
    const manifests = synth();
    for (const file of ['1-crds.yaml', '2-platform.yaml']) {
      await kubectlOrThrow(plane, ['apply', '--server-side', '--force-conflicts', '-f', join(manifests, file)]);
    }
    const before = await uidOf('clusterrole', 'kindred-operator');

    const args = ['install', 'platform', chart, '-n', 'platform', '--create-namespace', '--wait', '--timeout=2m'];
    const refused = helm(version, args, plane.adminKubeconfig);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toMatch(/invalid ownership metadata/);
    expect(await names('deployment', '-n', 'platform')).toEqual([]);

    const notes = run(...args, '--take-ownership', ...(version === 'helm4' ? ['--force-conflicts'] : []));
    expect(notes).toContain('kubectl label namespace platform pod-security.kubernetes.io/enforce=restricted');
    expect(await uidOf('clusterrole', 'kindred-operator')).toBe(before);
    expect(await names('deployment', '-n', 'platform')).toEqual(['deployment.apps/kindred-operator']);
    const lease = ['get', 'deployment', 'kindred-operator', '-n', 'platform', '-o', 'jsonpath={..args}'];
    expect(await kubectlOrThrow(plane, lease)).toContain('--lease-namespace=platform');
    run('uninstall', 'platform', '-n', 'platform', '--wait');
    expect((await kubectl(plane, ['get', 'namespace', 'platform'])).code).toBe(0);
  });

  test('an image that no registry has is a warning of Helm, and only that', () => {
    const unnamed = temporaryFolder('kindred-helm-');
    execFileSync(process.execPath, [cli, 'synth', '--format=helm', `--out=${unnamed}`], { stdio: 'pipe' });
    const notes = (...settings: readonly string[]): string =>
      run('install', 'dry', unnamed, '--dry-run=client', '--take-ownership', ...settings);
    expect(notes()).toMatch(/WARNING: no registry has kindred-operator:\S+, .* --set operator\.image=REF/);
    expect(notes('--set', 'operator.image=mine:1')).not.toContain('WARNING');
    // Nobody is told to restrict what others run in.
    expect(notes('-n', 'team')).toContain('kubectl label namespace team');
    for (const shared of ['default', 'kube-system']) {
      expect(notes('-n', shared, '--set', `namespace=${shared}`)).not.toContain('kubectl label');
    }
    expect(notes('--set', 'operator.image=mine:1,provisioner.enabled=true')).toMatch(
      /WARNING: no registry has kindred-provisioner:\S+, .* --set provisioner\.image=REF/,
    );
  });
});
