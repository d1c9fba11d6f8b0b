import fc from 'fast-check';
import { objectKey, sharedQueueKey, parseQueueKey } from '../../../operator/controller/queue-keys';
import { sharedId } from '../../../operator/reconcile/shared-keys';

const name = fc.stringMatching(/^[a-z0-9]([-.a-z0-9]{0,10}[a-z0-9])?$/);
const namespace = fc.option(name, { nil: undefined });

describe('queue keys', () => {
  it('of objects come back as they were', () => {
    fc.assert(
      fc.property(namespace, name, (space, its) => {
        const ref = space === undefined ? { name: its } : { namespace: space, name: its };
        expect(parseQueueKey(objectKey(ref))).toEqual({ what: 'object', ref });
      }),
    );
  });

  it('of shared keys come back as they were, whatever the key', () => {
    fc.assert(
      fc.property(name, namespace, fc.string(), (group, space, key) => {
        const target = parseQueueKey(sharedQueueKey(sharedId(group, space, key)));
        expect(target).toEqual({ what: 'shared', group, namespace: space, key });
      }),
    );
  });

  it('are told apart', () => {
    expect(objectKey({ name: 'a' })).toBe('object:/a');
    expect(objectKey({ namespace: 'n', name: 'a' })).toBe('object:n/a');
    expect(sharedQueueKey(sharedId('service', 'n', 'a'))).toBe('shared:service/n/a');
  });
});
