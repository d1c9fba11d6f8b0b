import { addressOf, servers, expectedState, type Spec } from '../../support/cluster-specs';
import { Provisioner, testTransitions } from './transitions';

describe('transitions that lost a cluster once', () => {
  test.each([
    ['fewer servers', servers(1, 2, 3), servers(1)],
    ['another order', servers(1, 2, 3), servers(2, 1, 3)],
    ['only the last stays', servers(1, 2, 3), servers(3)],
    ['the first two go', servers(1, 2, 3, 4, 5), servers(3, 4, 5)],
    ['all but one are replaced', servers(1, 2, 3), servers(3, 4, 5)],
    ['more, in front of none', servers(3), servers(3, 1, 2)],
    [
      'the only server with an API is replaced',
      [
        [1, 'etcd'],
        [2, 'api'],
      ] as Spec,
      [
        [1, 'etcd'],
        [3, 'api'],
      ] as Spec,
    ],
  ])('%s, and back', async (_, one, other) => {
    const provisioner = new Provisioner();
    for (const spec of [one, other, one]) {
      const done = await provisioner.up(spec);
      // What cannot be is refused before anything is touched.
      if (done === undefined) continue;
      expect(done.errors).toEqual([]);
      expect(provisioner.state).toEqual(expectedState(spec));
      expect((await provisioner.up(spec))?.ran).toEqual([]);
    }
    expect((await provisioner.remove()).errors).toEqual([]);
    expect(provisioner.state).toMatchObject({ clusters: 0, installed: [], violations: [] });
    expect(provisioner.records).toEqual([]);
  });

  test('a cluster is not replaced by another one', async () => {
    const provisioner = new Provisioner();
    await provisioner.up(servers(1));
    expect(await provisioner.up(servers(2))).toBeUndefined();
    expect(provisioner.state).toEqual(expectedState(servers(1)));
  });

  test.each([1, 2, 3])('server %d of three is gone for good', async (gone) => {
    const provisioner = new Provisioner();
    await provisioner.up(servers(1, 2, 3));
    provisioner.model.dead.add(addressOf(gone));
    const kept = servers(...[1, 2, 3].filter((number) => number !== gone), 4);
    expect((await provisioner.up(kept))?.errors.map(({ reason }) => reason)).toContain('Unreachable');
    expect(provisioner.state).toEqual(expectedState(kept, [gone]));
    expect(await provisioner.up(kept, { lost: [gone] })).toMatchObject({ complete: true, errors: [] });
    expect(provisioner.records.filter(({ task }) => task.id.startsWith(`${addressOf(gone)}/`))).toEqual([]);
  });
});

testTransitions(40);
