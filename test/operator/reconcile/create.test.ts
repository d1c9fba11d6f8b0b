import { owned } from '../../../constructs/kube/resource-type';
import { HelloApp } from '../../../constructs/kinds';
import { Harness, ref } from './harness';

describe('the creation of a child', () => {
  it.each(['before', 'held'] as const)(
    'raises no event of its own when the watch tells of it %s the answer',
    async (delivery) => {
      const harness = new Harness(HelloApp);
      await harness.add('web', { image: 'i' });
      const events: string[] = [];
      harness.cacheOf(owned.Deployment).addEventHandler(({ type }) => events.push(type));
      harness.server.eventDelivery = delivery;
      await harness.reconcile('web');
      harness.server.deliverEvents();
      expect(harness.cacheOf(owned.Deployment).get(ref('web'))).toBeDefined();
      expect(events).toEqual([]);
      harness.server.scale(owned.Deployment, ref('web'), 4);
      harness.server.deliverEvents();
      expect(events).toEqual(['updated']);
    },
  );
});
