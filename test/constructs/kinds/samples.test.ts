import { kinds } from '../../../constructs/kinds';
import { validateObject } from '../../../constructs/kind/validate';
import { manifestOf, objectOf } from './support';

const samples = kinds.flatMap((kind) => kind.samples.map((sample) => [kind.kind, sample.name, kind, sample] as const));

describe('samples', () => {
  it('stand for every kind', () => {
    expect(new Set(samples.map(([kind]) => kind)).size).toBe(kinds.length);
    expect(
      kinds.map(({ crdName, version, scope, shortNames }) => [crdName, version, scope, ...shortNames].join(' ')),
    ).toEqual([
      'helloapps.apps.anupam.com v1 Namespaced',
      'demomicroservices.devops.my.domain v1 Namespaced dms',
      'microservicedeploys.custom.ops v1 Namespaced',
      'crontabs.stable.example.com v1 Namespaced ct',
      'sampleresources.example.com v1 Namespaced',
      'foos.samplecontroller.k8s.io v1alpha1 Namespaced',
    ]);
  });

  it.each(samples)('%s %s renders', (_kind, name, kind, { spec }) => {
    const object = objectOf(kind, name, spec as object | undefined);
    validateObject(kind, object);
    expect(`\n${manifestOf(kind, object)}`).toMatchSnapshot();
  });
});
