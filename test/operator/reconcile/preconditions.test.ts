import { owned } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import { Harness, ref } from './harness';

const { Deployment } = owned;

describe('an apply that was long on its way', () => {
  it.each([
    // The first change after a POST moves fields first.
    ['the first change', ['b']],
    ['a later change', ['b', 'c']],
  ])('is refused when somebody has written since: %s', async (_what, images) => {
    const harness = new Harness(HelloApp);
    await harness.add('web', { image: 'a' });
    await harness.reconcile('web');
    for (const image of images.slice(0, -1)) {
      harness.respec('web', { image });
      await harness.reconcile('web');
    }
    harness.respec('web', { image: images.at(-1) });
    harness.server.before = ({ verb, type }) => {
      if (verb !== 'APPLY' || type.kind !== 'Deployment') return;
      harness.server.before = () => undefined;
      harness.server.eventDelivery = 'held';
      harness.server.edit(Deployment, ref('web'), (live) => ({
        ...live,
        metadata: { ...live.metadata, labels: { ...live.metadata.labels, later: 'yes' } },
      }));
    };
    const before = images.at(-2) ?? 'a';
    await expect(harness.reconcile('web')).rejects.toMatchObject({ code: 409, reason: 'Conflict' });
    const { metadata, spec } = harness.live(Deployment, 'web');
    expect(metadata.labels).toMatchObject({ later: 'yes' });
    expect(spec).toHaveProperty('template.spec.containers', [expect.objectContaining({ image: before })]);
    // As soon as the cache knows, it is brought about.
    harness.server.deliverEvents();
    harness.server.eventDelivery = 'before';
    await harness.reconcile('web');
    expect(harness.live(Deployment, 'web').spec).toHaveProperty('template.spec.containers', [
      expect.objectContaining({ image: images.at(-1) }),
    ]);
  });
});
