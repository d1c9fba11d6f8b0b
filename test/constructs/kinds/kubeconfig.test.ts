import { buildEffectRun } from '../../../constructs/kind/effects';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { resolveReads } from '../../../constructs/kind/reads';
import { withDefaults } from '../../../constructs/kind/render';
import { validateObject } from '../../../constructs/kind/validate';
import { Kubeconfig } from '../../../constructs/kinds';
import { kubeconfigSpecs } from './cluster-specs';
import { manifestOf } from './support';

const path = { configPath: 'config/kube_config.yml' };
const secret = { secretRef: { namespace: 'clusters', name: 'aws-kubeconfig', key: 'kubeconfig' } };

function kubeconfig(spec: object): KubeObject {
  const { apiVersion, kind } = Kubeconfig;
  return { apiVersion, kind, metadata: { name: 'aws', uid: 'u' }, spec };
}

test.each(kubeconfigSpecs)('a Kubeconfig with %s (valid: %p)', (_, valid, spec) => {
  const judge = (): unknown => validateObject(Kubeconfig, kubeconfig(spec));
  if (valid) expect(judge).not.toThrow();
  else expect(judge).toThrow('Kubeconfig aws is invalid');
});

test('it has no children', () => {
  expect(manifestOf(Kubeconfig, kubeconfig(secret))).toBe('');
});

test('it looks at its Secret', () => {
  const reads = (spec: object) => resolveReads(Kubeconfig.reads, withDefaults(Kubeconfig, kubeconfig(spec)));
  expect(reads(path)).toEqual([]);
  expect(reads(secret)).toMatchObject([{ name: 'kubeconfig', ref: { namespace: 'clusters', name: 'aws-kubeconfig' } }]);
});

test('its probe runs again and again, and at once when the kubeconfig changed', () => {
  const probe = (spec: object) => {
    const self = withDefaults(Kubeconfig, kubeconfig(spec));
    const reader = { digest: () => 'of the Secret', fileDigest: () => 'of the file' };
    return Kubeconfig.effects.map((effect) => buildEffectRun(effect, self, reader));
  };
  const common = { name: 'probe', phase: 'apply', plan: 'kubeconfig.probe', timeoutSeconds: 30, maxAttempts: 3 };
  expect(probe(path)).toEqual([
    { ...common, everySeconds: 300, input: { file: path.configPath, digest: 'of the file' } },
  ]);
  expect(probe(secret)).toMatchObject([{ input: { secret: secret.secretRef, digest: 'of the Secret' } }]);
});

test('the sample is that of the original', () => {
  expect(Kubeconfig.samples).toEqual([
    { name: 'clusteraws-user', spec: { configPath: 'config/rkespec/kube_config_cluster_aws.yml' } },
  ]);
});
