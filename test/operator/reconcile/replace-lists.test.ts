import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import { CronTab, MicroServiceDeploy } from '../../../constructs/kinds';
import { apiError } from '../../../testing/api-server/requests';
import { Harness, ref } from './harness';

const { CronJob, Service } = owned;
const spec = { msName: 'shop', fullName: 'shop-1', version: '1', path: 'v1', image: 'i' };
const duplicate = apiError(422, 'Invalid', 'Service "shop-1" is invalid: spec.ports[1].name: Duplicate value: "http"');

/** Somebody changes the number of the port; from then on, an apply finds two ports of one name, until a merge patch has replaced them. */
function editPort(harness: Harness, name: string, patchToo = false): void {
  harness.server.edit(Service, ref(name), (object) => ({
    ...object,
    spec: { ...(object.spec as object), ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 80 }] },
  }));
  refuseApplies(harness, Service, patchToo);
}

function refuseApplies(harness: Harness, refused: ResourceType, patchToo = false): void {
  harness.server.before = ({ verb, type, options }) => {
    if (type !== refused) return;
    const isMerge = verb === 'PATCH' && options?.type === 'merge';
    if (isMerge && !patchToo) harness.server.before = () => undefined;
    if (verb === 'APPLY' || (isMerge && patchToo)) throw duplicate;
  };
}

async function edited(patchToo = false): Promise<Harness> {
  const harness = new Harness(MicroServiceDeploy);
  await harness.add('m', spec);
  await harness.reconcile('m');
  editPort(harness, 'shop-1', patchToo);
  return harness;
}

describe('an apply that is invalid beside what others have put into a list', () => {
  it('is sent as a merge patch, which leaves nothing beside it, and then again', async () => {
    const harness = await edited();
    const { next, writes } = await harness.reconcile('m');
    expect(next.action).toBe('wait');
    expect(next.failed).toBeUndefined();
    expect(writes.slice(-3)).toEqual([
      'APPLY Service shop-1 (kindred)',
      'PATCH Service shop-1 (kindred)',
      'APPLY Service shop-1 (kindred)',
    ]);
    const live = harness.live(Service, 'shop-1');
    expect(live).toMatchObject({ spec: { ports: [{ name: 'http', port: 9898 }] } });
    expect(live.metadata.ownerReferences).toHaveLength(1);
    expect((await harness.reconcile('m')).writes).toEqual([]);
  });

  it('still drops what is rendered no more', async () => {
    const harness = new Harness(CronTab);
    await harness.add('c', { cronSpec: '@hourly', image: 'i', timeZone: 'Europe/Berlin' });
    await harness.reconcile('c');
    harness.respec('c', { timeZone: undefined });
    refuseApplies(harness, CronJob);
    await harness.reconcile('c');
    expect(harness.live(CronJob, 'c').spec).not.toHaveProperty('timeZone');
  });

  it('still enters an owner that joins', async () => {
    const harness = new Harness(MicroServiceDeploy);
    await harness.add('a', spec);
    await harness.reconcileShared('shop');
    editPort(harness, 'shop');
    await harness.add('b', { ...spec, fullName: 'shop-2' });
    const { result } = await harness.reconcileShared('shop');
    expect(result.state).toEqual({ state: 'applied' });
    const owners = harness.live(Service, 'shop').metadata.ownerReferences?.map(({ name }) => name);
    expect(owners).toEqual(['a', 'b']);
  });

  it("is the child's own fault when the patch is invalid too, and told in the server's words", async () => {
    const harness = await edited(true);
    expect((await harness.reconcile('m')).next).toMatchObject({
      action: 'wait',
      failed: { reason: 'ErrInvalidChild' },
    });
    expect(harness.message('m')).toContain(duplicate.message);
  });
});
