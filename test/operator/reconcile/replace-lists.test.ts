import { owned } from '../../../constructs/core/owned';
import { MicroServiceDeploy } from '../../../constructs/kinds';
import { refusalOf } from '../support/memory-requests';
import { Harness, ref } from './harness';

const { Service } = owned;
const spec = { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'i' };
const duplicate = refusalOf(422, 'Invalid', 'Service "shop-1" is invalid: spec.ports[1].name: Duplicate value: "http"');

/** Somebody changes the number of the port; from then on, an apply finds two ports of one name. */
async function edited(refused: readonly string[]): Promise<Harness> {
  const harness = new Harness(MicroServiceDeploy);
  await harness.add('m', spec);
  await harness.reconcile('m');
  harness.server.edit(Service, ref('shop-1'), (object) => ({
    ...object,
    spec: { ...(object.spec as object), ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 80 }] },
  }));
  let moves = 0;
  harness.server.before = ({ verb, type }) => {
    if (type !== Service) return;
    // The first patch is that of the managed fields.
    const which = verb === 'PATCH' && (moves += 1) === 1 ? 'MOVE' : verb;
    if (refused.includes(which)) throw duplicate;
  };
  return harness;
}

describe('an apply that is invalid beside what others have put into a list', () => {
  it('is sent as a merge patch, which leaves nothing beside it', async () => {
    const harness = await edited(['APPLY']);
    const { next, writes } = await harness.reconcile('m');
    expect(next.next).toBe('wait');
    expect(next.failed).toBeUndefined();
    expect(writes.slice(-1)).toEqual(['PATCH Service shop-1 (kindred)']);
    const live = harness.live(Service, 'shop-1');
    expect(live).toMatchObject({ spec: { ports: [{ name: 'http', port: 9898 }] } });
    expect(live.metadata.ownerReferences).toHaveLength(1);
    harness.server.before = () => undefined;
    expect((await harness.reconcile('m')).writes).toEqual([]);
  });

  it("is the child's own fault when the patch is invalid too, and told in the server's words", async () => {
    const harness = await edited(['APPLY', 'PATCH']);
    expect((await harness.reconcile('m')).next).toMatchObject({ next: 'wait', failed: { reason: 'ErrInvalidChild' } });
    expect(harness.message('m')).toContain(duplicate.message);
  });
});
