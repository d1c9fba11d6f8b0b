import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { K3sInput, Rke2Input } from '../../../provision';
import {
  recordImmutableSettings,
  checkImmutableSettings,
  checkVersionSkew,
} from '../../../provision/rke2-k3s/immutable';
import { preflightFunctions } from '../../../provision/shell/preflight';
import { buildScript } from '../../../provision/shell/script';
import { temporaryFolder } from '../../support/temporary-folder';
import { inputOf, node, type GivenInput } from '../inputs';
import { missingShells, runScript, shells } from '../shells';

/** What a machine refuses to become, asked of folders of this one, under each shell that is here. */

if (missingShells.length > 0) console.warn(`not tested, because not installed: ${missingShells.join(', ')}`);

type ServerInput = K3sInput | Rke2Input;
const input = (given: GivenInput): ServerInput => inputOf({ distribution: 'k3s', ...given }) as ServerInput;
const ALONE = [node('10.0.0.1')];

describe.each(shells)('%s', (_, shell) => {
  /** A machine that was installed as `before` says, then looked at with `after` in mind. @returns what is wrong with it */
  function refusals(before: ServerInput, after: ServerInput, at = 0): readonly string[] {
    const stateFolder = temporaryFolder('unchangeable-');
    const [was, now] = [before.nodes[at]!, after.nodes[at]!];
    const props = { cluster: 'prod', id: 'a', doing: 'looking', stateFolder };
    const bin = join(stateFolder, 'bin');
    mkdirSync(bin);
    for (const program of ['rke2', 'k3s']) {
      writeFileSync(
        join(bin, program),
        `#!/bin/sh\necho '${program} version ${before.version} (abc)'\necho 'go version'\n`,
      );
      chmodSync(join(bin, program), 0o755);
    }
    const env = { ...process.env, PATH: `${bin}:${process.env['PATH'] ?? ''}` };
    const noted = runScript(shell, buildScript(props, [recordImmutableSettings(before, was), 'finish']), [], env);
    expect(noted.answer).toEqual({ ok: true, changed: false });
    writeFileSync(join(stateFolder, 'prod', 'installation'), `${before.distribution} server\n`);
    const looks = [
      preflightFunctions(now.address),
      checkImmutableSettings(after, now),
      checkVersionSkew(after),
      `[ "$count" -gt 0 ] || finish`,
      'report',
    ];
    const { answer, stderr } = runScript(shell, buildScript(props, looks), [], env);
    expect([stderr, answer.changed]).toEqual(['', false]);
    return answer.ok ? [] : (answer.message ?? '').split('\n').slice(1);
  }

  test('the same again, and what may change, is fine', () => {
    const before = input({ nodes: ALONE });
    expect(refusals(before, before)).toEqual([]);
    const options = { clusterCidrs: ['10.42.0.0/16'], clusterDomain: 'cluster.local', writeKubeconfigMode: undefined };
    expect(refusals(before, input({ nodes: [node('10.0.0.1', { internalAddress: '10.0.0.1' })], options }))).toEqual(
      [],
    );
    expect(refusals(before, input({ nodes: [node('10.0.0.1', { roles: ['controlplane', 'etcd'] })] }))).toEqual([]);
  });

  test('options that a cluster has for life, all at once', () => {
    const after = input({ nodes: ALONE, options: { clusterCidrs: ['10.99.0.0/16'], dataDir: '/data/k3s' } });
    expect(refusals(input({ nodes: ALONE }), after)).toEqual([
      expect.stringMatching(
        /^ {2}- clusterCidrs: is to change from 10\.42\.0\.0\/16 to 10\.99\.0\.0\/16\. A cluster has it for life: put it back/,
      ),
      expect.stringMatching(/^ {2}- dataDir: is to change from nothing to \/data\/k3s\./),
    ]);
    const [cni] = refusals(
      input({ distribution: 'rke2', nodes: ALONE }),
      input({ distribution: 'rke2', nodes: ALONE, options: { cni: 'cilium' } }),
    );
    expect(cni).toContain('cni: is to change from canal to cilium');
  });

  test('what a node is', () => {
    const before = input({ nodes: [node('10.0.0.1'), node('10.0.0.2', { roles: ['worker'] })] });
    const after = input({
      nodes: [
        node('10.0.0.1'),
        node('10.0.0.2', { roles: ['worker'], internalAddress: '10.1.0.2', hostnameOverride: 'two' }),
      ],
      // Only servers are asked for the cluster's options.
      options: { clusterDomain: 'other.example' },
    });
    expect(refusals(before, after, 1)).toEqual([
      expect.stringMatching(
        /internalAddress: is to change from 10\.0\.0\.2 to 10\.1\.0\.2\. Put it back, or remove the machine/,
      ),
      expect.stringMatching(/hostnameOverride: is to change from nothing to two\./),
    ]);
    const [distribution, ...more] = refusals(input({ nodes: ALONE }), input({ distribution: 'rke2', nodes: ALONE }));
    expect(distribution).toContain('distribution: is to be rke2, but k3s is installed');
    expect(more).toEqual([]);
  });

  test.each([
    ['v1.33.4+k3s1', 'v1.34.1+k3s1', undefined],
    ['v1.33.4+k3s1', 'v1.33.10+k3s1', undefined],
    ['v1.33.4-rc2+k3s1', 'v1.33.4+k3s1', undefined],
    ['v1.33.4+k3s1', 'v1.33.4+k3s12', undefined],
    ['v1.9.4+k3s1', 'v1.10.1+k3s1', undefined],
    ['a build of ours', 'v1.34.1+k3s1', undefined],
    [
      'v1.33.4+k3s1',
      'v1.35.0+k3s1',
      'version: v1.35.0+k3s1 skips a minor version: K3s v1.33.4+k3s1 is installed. Go to a v1.34 first',
    ],
    ['v1.34.1+k3s1', 'v1.33.9+k3s1', 'version: v1.33.9+k3s1 is older than v1.34.1+k3s1'],
    ['v1.34.10+k3s1', 'v1.34.9+k3s1', 'is older than'],
    ['v1.34.1+k3s10', 'v1.34.1+k3s9', 'is older than'],
    ['v1.34.1+k3s1', 'v1.34.1-rc3+k3s1', 'is older than'],
  ])('from %s to %s', (from, to, message) => {
    const found = refusals({ ...input({ nodes: ALONE }), version: from }, { ...input({ nodes: ALONE }), version: to });
    expect(found).toEqual(message === undefined ? [] : [expect.stringContaining(message)]);
  });

  test('what is noted once is not noted again', () => {
    const stateFolder = temporaryFolder('unchangeable-');
    const props = { cluster: 'prod', id: 'a', doing: 'noting', stateFolder };
    for (const clusterDomain of ['one.example', 'two.example']) {
      const given = input({ nodes: ALONE, options: { clusterDomain } });
      runScript(shell, buildScript(props, [recordImmutableSettings(given, given.nodes[0]!), 'finish']));
    }
    expect(readFileSync(join(stateFolder, 'prod', 'unchangeable'), 'utf8')).toContain('clusterDomain=one.example\n');
  });
});
