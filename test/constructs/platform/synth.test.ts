import { parseAllDocuments } from 'yaml';
import { allKinds, kinds, provisionerKinds } from '../../../constructs/kinds';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { manifests } from '../../../cli/synth';
import { kindredPlatform, testImages } from '../../support/kindred-project';

const withProvisioner = kindredPlatform({ images: testImages });
const operatorAlone = kindredPlatform({ images: ['kindred-operator:test'] });

function objectsOf(file: string, platform = operatorAlone): readonly KubeObject[] {
  return parseAllDocuments(manifests(platform).get(file) ?? '').map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS() as KubeObject;
  });
}

describe('kindred synth', () => {
  test('twice the same bytes', () => {
    expect([...manifests(withProvisioner)]).toEqual([...manifests(withProvisioner)]);
    expect([...manifests(withProvisioner).keys()]).toEqual([
      ...['1-crds.yaml', '2-platform.yaml', '3-samples.yaml'],
      'argo-cd.yaml',
    ]);
  });

  test('a CRD for every kind, and nothing else in the first file', () => {
    expect(objectsOf('1-crds.yaml').map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual(
      allKinds.map(({ crdName }) => `CustomResourceDefinition ${crdName}`),
    );
  });

  test('namespaces come before what is in them', () => {
    const made = new Set<string | undefined>([undefined]);
    for (const { kind, metadata } of objectsOf('2-platform.yaml')) {
      if (kind === 'Namespace') made.add(metadata.name);
      expect(made).toContain(metadata.namespace);
    }
    expect(made).toContain('kindred-samples');
  });

  test('every sample of every kind, where its kind belongs', () => {
    const samples = objectsOf('3-samples.yaml');
    expect(samples).toHaveLength(kinds.flatMap((kind) => kind.samples).length);
    for (const { kind, metadata } of samples) {
      const scope = kinds.find((known) => known.kind === kind)?.scope;
      expect(metadata.namespace).toBe(scope === 'Namespaced' ? 'kindred-samples' : undefined);
    }
  });

  test('every kind has an operator, and the provisioner holds its own kinds only', () => {
    const args = objectsOf('2-platform.yaml', withProvisioner)
      .filter(({ kind }) => kind === 'Deployment')
      .map((deployment) => /--kinds=([^"]*)"/.exec(JSON.stringify(deployment))?.[1]?.split(',') ?? []);
    const namesOf = (some: typeof kinds): string[] => some.map(({ crdName }) => crdName).sort();
    expect(args).toEqual([namesOf(kinds), namesOf(provisionerKinds)]);
  });

  test('without its image, only the CRDs of the provisioner', () => {
    const crds = objectsOf('1-crds.yaml').map(({ metadata }) => metadata.name);
    expect(crds).toEqual([...kinds, ...provisionerKinds].map(({ crdName }) => crdName));
    expect(objectsOf('2-platform.yaml').filter(({ kind }) => kind === 'Deployment')).toHaveLength(1);
  });

  test('the provisioner writes Secrets in its own namespace only, and nobody else does', () => {
    const secretRules = objectsOf('2-platform.yaml', withProvisioner).filter(
      (object) => object.kind.endsWith('Role') && JSON.stringify(object).includes('"secrets"'),
    );
    expect(secretRules.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`)).toEqual([
      'Role kindred-system/kindred-provisioner',
    ]);
  });
});
