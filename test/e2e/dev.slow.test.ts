import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { App } from 'cdk8s';
import { INVENTORY_NAME, installPlatform } from '../../cli/install-platform';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { Cluster, HelloApp, kinds } from '../../constructs/kinds';
import { Platform } from '../../constructs/platform';
import { useControlPlane } from '../support/use-control-plane';
import { kubectl } from '../../testing/kubectl';
import type { ApiClient } from '../../operator/client/api-client';
import { createApiClient } from '../../operator/client/http-api-client';
import { loadClusterAccess } from '../../operator/client/kubeconfig';
import { Start, expectNothingLeft, folder, helloApp, manifest, processesOf, startTimeoutMs } from './dev-process';

// The gate keeps the samples of every kind: start.test.ts.

/** It is never Ready. */
const cluster = {
  ...{ apiVersion: Cluster.apiVersion, kind: 'Cluster', metadata: { name: 'nowhere' } },
  spec: { configPath: 'none.yml' },
};

describe('kindred dev --once', () => {
  test(
    'runs the provisioner too, which says what it cannot do without machines, and leaves nothing behind',
    async () => {
      const start = new Start(
        '--operator=provisioner',
        '--installer=apply',
        '--timeout=20',
        `--file=${manifest('c.yaml', cluster)}`,
      );
      await start.says('Log of the provisioner: ');
      expect(start.stdout).toContain('under the ServiceAccount kindred-system/kindred-provisioner and its RBAC alone');
      expect(start.stdout).toMatch(/^Files that its objects may name are read from \S+config$/m);
      expect(start.stdout).toMatch(/^Kubeconfig this Ready=True/m);
      expect(start.stdout).toMatch(/^Cluster nowhere Ready=False \(ErrFile\)/m);
      expect(start.stdout).toMatch(
        /Cluster nowhere.*"none.yml" is not read: it cannot be found in the configured directory/s,
      );
      start.signal('SIGINT');
      expect(await start.ended).toMatchObject({ stderr: '' });
      expectNothingLeft(start);
    },
    startTimeoutMs,
  );

  test(
    'prints what is not Ready in time as JSON too',
    async () => {
      const file = manifest('nowhere.yaml', cluster);
      const start = new Start(
        ...['--once', '-o', 'json', '--no-samples', '--operator=provisioner', '--timeout=5', '--installer=apply'],
        `--file=${file}`,
      );
      const { code, stdout, stderr } = await start.ended;
      expect(code).toBe(1);
      expect(stderr).toContain('1 of 1 objects are not Ready after 5 s:');
      expect(JSON.parse(stdout)).toMatchObject({ objects: [{ kind: 'Cluster', isReady: false, reason: 'ErrFile' }] });
    },
    startTimeoutMs,
  );

  test.each(['warn', 'error'])(
    'does so too where the operator logs no more than --log-level=%s',
    async (level) => {
      const log = join(folder, `${level}.log`);
      const start = new Start('--once', '-o', 'json', `--log-level=${level}`, '--installer=apply', `--log-file=${log}`);
      const { code, stdout, stderr } = await start.ended;
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('objects are Ready') as string });
      const { objects } = JSON.parse(stdout) as { readonly objects: readonly object[] };
      expect(objects).toContainEqual(expect.objectContaining({ kind: 'Foo', isReady: true, reason: 'Ready' }));
      expect(readFileSync(log, 'utf8')).not.toContain('"level":"info"');
      expectNothingLeft(start);
    },
    startTimeoutMs,
  );

  test(
    "an object that the schema refuses is told in the server's words, before any sample is applied",
    async () => {
      const file = manifest(
        'bad.yaml',
        helloApp('many', { image: 'nginx', size: -1 }),
        helloApp('typo', { imagee: '' }),
      );
      const start = new Start('--once', `--file=${file}`);
      const { code, stderr, stdout } = await start.ended;
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /^kindred: \S+bad\.yaml, document 1: HelloApp many was refused by the API server: .*spec\.size.* greater than or equal to 0/,
      );
      expect(stderr).toMatch(
        /^\S+bad\.yaml, document 2: HelloApp typo was refused.*\.spec\.imagee: field not declared/m,
      );
      expect(stderr).not.toContain(' at ');
      expect(stdout).not.toContain('helloapp-sample');
      expectNothingLeft(start);
    },
    startTimeoutMs,
  );

  test(
    'an object that does not become Ready is named with its reason at the deadline; the log is kept where asked',
    async () => {
      const obstacle = {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: 'taken' },
      };
      const spec = { msName: 'taken', fullName: 'taken-1', version: '1', path: 'v1', image: 'nginx' };
      const blocked = {
        apiVersion: 'custom.ops/v1',
        kind: 'MicroServiceDeploy',
        metadata: { name: 'blocked' },
        spec,
      };
      const log = join(folder, 'kept.log');
      const file = manifest('blocked.yaml', obstacle, blocked);
      const start = new Start('--once', '--no-samples', '--timeout=8', `--file=${file}`, `--log-file=${log}`);
      const { code, stderr } = await start.ended;
      expect(code).toBe(1);
      expect(stderr).toMatch(/^kindred: 1 of 1 objects are not Ready after 8 s:/);
      expect(stderr).toMatch(
        /^ {2}MicroServiceDeploy kindred-samples\/blocked: Ready=False \(ErrResourceExists\): .*taken.* already exists/m,
      );
      expect(existsSync(log)).toBe(true);
    },
    startTimeoutMs,
  );
});

describe('an interruption', () => {
  test.each([
    ['SIGINT', 'is ready at https'],
    ['SIGTERM', 'The operator runs as a process'],
  ] as const)(
    '%s after "%s" ends everything, and leaves nothing behind',
    async (signal, text) => {
      const start = new Start('--once');
      await start.says(text);
      start.signal(signal);
      const { code, stderr } = await start.ended;
      expect({ code, stderr }).toEqual({ code: 130, stderr: `kindred: stopped by ${signal}\n` });
      expectNothingLeft(start);
    },
    startTimeoutMs,
  );

  test(
    'once all is Ready, Ctrl-C is the way to end it',
    async () => {
      const start = new Start();
      await start.says(/The control plane stays until Ctrl-C[^]*Metrics of the operator: \S+/);
      const metrics = /Metrics of the operator: (\S+)/.exec(start.stdout)?.[1] ?? '';
      expect(await (await fetch(metrics)).text()).toContain('controller_runtime_reconcile_total');
      start.signal('SIGINT');
      expect(await start.ended).toMatchObject({ code: 0, stderr: '' });
      expectNothingLeft(start);
    },
    startTimeoutMs,
  );

  test(
    'the operator that dies ends the command, with the last lines of its log',
    async () => {
      const start = new Start();
      await start.says('The control plane stays until Ctrl-C');
      // The next one, which waits for the next version, was started after it.
      const operator = processesOf(start).find((line) => line.includes('runMain'));
      expect(operator).toMatch(/^ *[1-9]/);
      process.kill(Number.parseInt(operator!, 10), 'SIGKILL');
      const { code, stderr } = await start.ended;
      expect(code).toBe(1);
      expect(stderr).toMatch(/^kindred: the operator was ended by SIGKILL\. The last lines of \S+operator\.log:\n\{/);
      expectNothingLeft(start);
    },
    startTimeoutMs,
  );
});

describe('installing the platform', () => {
  const plane = useControlPlane({ components: 'api' });
  const namespace = 'kindred-system';
  let client: ApiClient;

  beforeAll(() => {
    client = createApiClient(loadClusterAccess({ path: plane.adminKubeconfig }));
  });
  afterAll(() => client.close());

  const install = (guardedNamespaces: readonly string[], served = kinds) => {
    const operators = [{ name: 'operator', image: 'operator', kinds: served }];
    const objects = new Platform(new App(), 'kindred', { operators, guardedNamespaces }).toJson() as KubeObject[];
    return installPlatform({ client, objects, namespace, signal: new AbortController().signal });
  };
  const versionOf = async (type: string, ...args: readonly string[]): Promise<string> =>
    (await kubectl(plane, ['get', type, ...args, '-o', 'jsonpath={.metadata.resourceVersion}'])).stdout;

  test('is repeatable, and prunes what the platform no longer has: never CRDs, never what others took over', async () => {
    await install(['default', 'kube-public', namespace]);
    const before = await versionOf('deployment', 'kindred-operator', '-n', namespace);
    const { pruned } = await install(['default', 'kube-public', namespace]);
    expect(pruned).toEqual([]);
    expect(await versionOf('deployment', 'kindred-operator', '-n', namespace)).toBe(before);

    // Somebody has made a quota of that name their own.
    const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'default-resource-quota' } };
    await kubectl(plane, ['delete', 'resourcequota', 'default-resource-quota', '-n', 'kube-public']);
    await kubectl(plane, ['create', '-n', 'kube-public', '-f', '-'], { input: JSON.stringify(quota) });

    const third = await install(['default'], [HelloApp]);
    const names = third.pruned.map(({ kind, namespace: at, name }) => [kind, at, name].join(' '));
    expect(names).toEqual(
      expect.arrayContaining([
        `ResourceQuota ${namespace} default-resource-quota`,
        `LimitRange ${namespace} default-limit-range`,
        'LimitRange kube-public default-limit-range',
      ]),
    );
    const kept = third.kept.map(({ entry: { kind, name }, why }) => `${kind} ${name}: ${why}`);
    expect(kept).toContain(
      'CustomResourceDefinition foos.samplecontroller.k8s.io: deleting it would delete every object of its kind',
    );
    expect(kept).toContainEqual(expect.stringMatching(/^ResourceQuota default-resource-quota: it is no longer the/));
    expect(await versionOf('limitrange', 'default-limit-range', '-n', namespace)).toBe('');
    expect(await versionOf('limitrange', 'default-limit-range', '-n', 'default')).not.toBe('');
    expect(await versionOf('resourcequota', 'default-resource-quota', '-n', 'kube-public')).not.toBe('');
    expect(await versionOf('crd', 'foos.samplecontroller.k8s.io')).not.toBe('');
    expect(await versionOf('configmap', INVENTORY_NAME, '-n', namespace)).not.toBe('');
  }, 60_000);

  test('an object that the server refuses is named', async () => {
    const bad = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'bad', namespace }, dada: {} };
    const signal = new AbortController().signal;
    await expect(installPlatform({ client, objects: [bad], namespace, signal })).rejects.toThrow(
      /^the platform cannot be installed: ConfigMap kindred-system\/bad was refused by https:.*\.dada: field not declared/,
    );
  });
});
