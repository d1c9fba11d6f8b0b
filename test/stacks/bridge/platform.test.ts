import { App, Testing } from 'cdk8s';
import type { Chart } from 'cdk8s';
import { HelloApp, Platform, allKinds, provisionerKinds, type KubeObject } from '../../../constructs';
import { ConstructResources } from '../../../stacks/bridge';
import { dependencyNames, run } from './engine';

const kinds = allKinds.filter((kind) => !provisionerKinds.includes(kind) && kind.versions.length === 0);

function platform(): Chart {
  return new Platform(new App(), 'kindred', {
    operators: [
      { name: 'operator', image: 'registry.example.com/kindred@sha256:' + 'a'.repeat(64), kinds: [...kinds] },
    ],
    guardedNamespaces: [{ name: 'team-a', create: true }],
  });
}

describe('the platform as Pulumi resources', () => {
  it('registers what synth shows, no more and no less', async () => {
    const manifests = Testing.synth(platform()) as KubeObject[];
    const registrations = await run(() => new ConstructResources('platform', { constructs: platform() }));
    const registered = registrations.filter(({ custom }) => custom).map(({ object }) => object);
    const id = (object: object): string =>
      JSON.stringify([(object as KubeObject).kind, (object as KubeObject).metadata]);
    const sort = (objects: readonly object[]): object[] => [...objects].sort((a, b) => (id(a) < id(b) ? -1 : 1));
    expect(registered.length).toBeGreaterThan(10);
    expect(sort(registered)).toEqual(sort(manifests));
  });

  it('registers namespace, CRDs, permissions and operator in that order', async () => {
    const registrations = await run(() => new ConstructResources('platform', { constructs: platform() }));
    const crd = `platform/crds/${HelloApp.crdName}`;
    expect(dependencyNames(registrations, crd)).toEqual(['platform/namespace']);
    const operator = registrations.find(({ type }) => type === 'kubernetes:apps/v1:Deployment');
    const direct = dependencyNames(registrations, operator?.name ?? '');
    expect(direct.length).toBeGreaterThan(0);
    expect(direct.every((name) => name.startsWith('platform/rbac/') || name.startsWith('platform/operators/'))).toBe(
      true,
    );
  });
});
