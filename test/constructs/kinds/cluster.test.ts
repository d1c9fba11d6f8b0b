import { buildEffectRun, selectEffects, type EffectRun, type InputReader } from '../../../constructs/kind/effects';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { resolveReads } from '../../../constructs/kind/reads';
import { withDefaults } from '../../../constructs/kind/render';
import { validateObject } from '../../../constructs/kind/validate';
import { crdManifest } from '../../../constructs/crd';
import { operatorRules } from '../../../constructs/rbac';
import { Cluster, Kubeconfig, allKinds, kinds, provisionerKinds } from '../../../constructs/kinds';
import { clusterSpecs, full, k3s, rke, rke2 } from './cluster-specs';
import { manifestOf } from './support';

const { apiVersion, kind } = Cluster;

function cluster(spec: object, status?: object): KubeObject {
  return { apiVersion, kind, metadata: { name: 'aws', uid: 'u' }, spec, ...(status === undefined ? {} : { status }) };
}

const path = { configPath: 'config/aws.yml' };
const secret = { configSecretRef: { namespace: 'clusters', name: 'aws', key: 'cluster.yml' } };

describe('the spec of a Cluster', () => {
  test.each(clusterSpecs)('with %s (valid: %p)', (_, valid, spec) => {
    const judge = (): unknown => validateObject(Cluster, cluster(spec));
    if (valid) expect(judge).not.toThrow();
    else expect(judge).toThrow('Cluster aws is invalid');
  });

  test('has defaults', () => {
    expect(withDefaults(Cluster, cluster(path)).spec).toEqual({ ...path, deletionPolicy: 'Delete', maxAttempts: 5 });
    const { nodes, sshKeySecretRef } = withDefaults(
      Cluster,
      cluster({ ...rke2, sshKeySecretRef: { namespace: 'n', name: 's' } }),
    ).spec;
    expect(nodes?.[0]?.port).toBe(22);
    expect(sshKeySecretRef?.key).toBe('ssh-privatekey');
  });

  test('is refused with the words of the rule', () => {
    expect(() => validateObject(Cluster, cluster({ ...rke2, ...path }))).toThrow(
      'give exactly one of configPath, configSecretRef and nodes',
    );
  });
});

describe('the children of a Cluster', () => {
  const kubeconfigRef = { namespace: 'clusters', name: 'aws-kubeconfig', key: 'kubeconfig' };

  test('are none before it is provisioned', () => {
    expect(manifestOf(Cluster, cluster(path))).toBe('');
    expect(manifestOf(Cluster, cluster(path, { attempts: 1 }))).toBe('');
  });

  test('are its Kubeconfig afterwards', () => {
    expect(`\n${manifestOf(Cluster, cluster(path, { kubeconfigRef }))}`).toMatchInlineSnapshot(`
"
apiVersion: clusterprovisioner.rke.io/v1alpha1
kind: Kubeconfig
metadata:
  name: aws
spec:
  secretRef:
    key: kubeconfig
    name: aws-kubeconfig
    namespace: clusters
"
`);
  });
});

describe('what a Cluster looks at', () => {
  const reads = (spec: object): readonly string[] =>
    resolveReads(Cluster.reads, withDefaults(Cluster, cluster(spec))).map(
      ({ name, type, ref }) => `${name}: ${type.kind} ${String(ref.namespace)}/${ref.name}`,
    );

  test('follows from its source', () => {
    expect(reads(path)).toEqual([]);
    expect(reads(secret)).toEqual(['config: Secret clusters/aws']);
    expect(reads(k3s)).toEqual(['ssh-key: Secret clusters/ssh-key']);
  });

  test.each(Object.entries(full))('has the credentials of %s', (_, spec) => {
    expect(reads(spec)).toEqual(['ssh-key: Secret clusters/ssh-key', 'credentials: Secret clusters/credentials']);
  });
});

describe('the effects of a Cluster', () => {
  const reader: InputReader = {
    digest: ({ kind: type }, { namespace, name, key }) => `digest of ${type} ${String(namespace)}/${name}/${key}`,
    fileDigest: (file) => `digest of ${file}`,
  };
  const blind: InputReader = {
    digest: () => {
      throw new Error('it is gone');
    },
    fileDigest: () => {
      throw new Error('it is gone');
    },
  };
  const runs = (spec: object, phase: 'apply' | 'remove', read = reader): readonly EffectRun[] => {
    const self = withDefaults(Cluster, cluster(spec));
    return selectEffects(Cluster.effects, self, phase).map((effect) => buildEffectRun(effect, self, read));
  };

  test.each([
    ['a path', path, 'config-path', 'rke'],
    ['a Secret', secret, 'config-secret', 'rke'],
    ['RKE nodes', rke, 'rke', 'rke'],
    ['RKE2 nodes', full.rke2, 'rke2', 'rke2'],
    ['K3s nodes', full.k3s, 'k3s', 'k3s'],
  ])('are one a phase with %s', (_, spec, name, plan) => {
    expect(runs(spec, 'apply')).toMatchObject([{ name: `provision-${name}`, plan: `${plan}.up`, maxAttempts: 5 }]);
    // What it was made of may be gone by then.
    expect(runs(spec, 'remove', blind)).toMatchObject([{ name: `remove-${name}`, plan: `${plan}.remove` }]);
  });

  test('remove nothing that is to be retained', () => {
    expect(runs({ ...rke2, deletionPolicy: 'Retain' }, 'remove')).toEqual([]);
  });

  test('are told what is wanted', () => {
    expect(runs(path, 'apply')[0]?.input).toEqual({
      cluster: 'aws',
      file: path.configPath,
      digests: { config: 'digest of config/aws.yml' },
    });
    expect(runs(secret, 'apply')[0]?.input).toEqual({
      cluster: 'aws',
      secret: secret.configSecretRef,
      digests: { config: 'digest of Secret clusters/aws/cluster.yml' },
    });
    expect(runs(full.k3s, 'apply')[0]?.input).toMatchObject({
      cluster: 'aws',
      nodes: [{ address: '10.18.74.175', port: 22 }, { address: 'node-1.example.com' }],
      version: 'v1.30.4+k3s1',
      options: { flannelBackend: 'wireguard-native' },
      sshKey: { namespace: 'clusters', name: 'ssh-key' },
      digests: Object.fromEntries(
        ['accessKey', 'secretKey', 'ca.crt', 'username', 'password'].map((key) => [
          `clusters/credentials/${key}`,
          `digest of Secret clusters/credentials/${key}`,
        ]),
      ),
    });
  });

  test('name the file that they depend on, and no other has one', () => {
    const self = withDefaults(Cluster, cluster(path));
    const files = Cluster.effects.flatMap((effect) => effect.files?.(self) ?? []);
    expect(files).toEqual([path.configPath]);
  });

  test('do not run again for an SSH key or a policy', () => {
    const changed = { ...rke2, sshKeySecretRef: { ...rke2.sshKeySecretRef }, deletionPolicy: 'Retain', maxAttempts: 9 };
    expect(runs(changed, 'apply')[0]?.input).toEqual(runs(rke2, 'apply')[0]?.input);
  });
});

describe('the definition of a Cluster', () => {
  test('owns its Kubeconfig, and is removed before it goes', () => {
    expect(Cluster.owns).toEqual([Kubeconfig.type]);
    expect(Cluster.finalizer?.name).toBe('clusterprovisioner.rke.io/cluster');
  });

  test('needs no rights on Secrets in general', () => {
    expect(operatorRules(provisionerKinds).flatMap((rule) => [...rule.resources])).not.toContain('secrets');
  });

  test('belongs to the provisioner and not to the operator', () => {
    expect(provisionerKinds.map(({ kind: name }) => name)).toEqual(['Cluster', 'Kubeconfig']);
    expect(kinds).toHaveLength(6);
    expect(allKinds).toEqual([...kinds, ...provisionerKinds]);
  });

  test('is a CRD of a size that client-side apply can bear', () => {
    // It keeps the whole object in an annotation, and all annotations together have 256 KiB.
    expect(JSON.stringify(crdManifest(Cluster)).length).toBeLessThan(200_000);
  });

  test('has the sample of the original', () => {
    expect(Cluster.samples).toEqual([
      { name: 'clusteraws', labels: { rke: 'true' }, spec: { configPath: 'config/rkespec/cluster_aws.yml' } },
    ]);
  });
});
