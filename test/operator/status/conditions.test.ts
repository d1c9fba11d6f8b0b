import { mostSevere } from '../../../operator/reconcile/problems';
import { conditionsOf, type Readiness } from '../../../operator/status/conditions';

const EARLIER = '2026-01-01T00:00:00Z';
const NOW = '2026-01-02T00:00:00Z';

function readiness(state: Readiness['state'], message = 'm'): Readiness {
  return { state, reason: 'R', message };
}

describe('conditionsOf', () => {
  it.each<[Readiness['state'], readonly string[]]>([
    ['ready', ['Ready=True']],
    ['progressing', ['Ready=False', 'Reconciling=True']],
    ['failing', ['Ready=False', 'Reconciling=True']],
    ['stalled', ['Ready=False', 'Stalled=True']],
    ['paused', ['Ready=Unknown']],
  ])('%s: Ready always stands, the abnormal ones only while they are true', (state, expected) => {
    const conditions = conditionsOf(readiness(state), { generation: 3, previous: [], now: () => NOW });
    expect(conditions.map(({ type, status }) => `${type}=${status}`)).toEqual(expected);
    for (const condition of conditions) {
      expect(condition).toMatchObject({ reason: 'R', message: 'm', lastTransitionTime: NOW, observedGeneration: 3 });
    }
  });

  it('keeps the transition time while the status stays, whatever else changes', () => {
    const before = conditionsOf(readiness('progressing'), { generation: 1, previous: [], now: () => EARLIER });
    const after = conditionsOf(
      { state: 'stalled', reason: 'Other', message: 'n' },
      { generation: 2, previous: before, now: () => NOW },
    );
    expect(after.map(({ type, lastTransitionTime }) => [type, lastTransitionTime])).toEqual([
      ['Ready', EARLIER],
      ['Stalled', NOW],
    ]);
  });

  it('sets the transition time anew when the status changes, or when the condition comes back', () => {
    const before = conditionsOf(readiness('progressing'), { generation: 1, previous: [], now: () => EARLIER });
    const ready = conditionsOf(readiness('ready'), { generation: 1, previous: before, now: () => NOW });
    expect(ready).toMatchObject([{ type: 'Ready', lastTransitionTime: NOW }]);
    const again = conditionsOf(readiness('progressing'), {
      generation: 1,
      previous: ready,
      now: () => '2026-01-03T00:00:00Z',
    });
    expect(again.map(({ lastTransitionTime }) => lastTransitionTime)).toEqual([
      '2026-01-03T00:00:00Z',
      '2026-01-03T00:00:00Z',
    ]);
  });

  it('asks for the time only when it needs it', () => {
    const before = conditionsOf(readiness('ready'), { generation: 1, previous: [], now: () => EARLIER });
    const now = jest.fn(() => NOW);
    conditionsOf(readiness('ready'), { generation: 1, previous: before, now });
    expect(now).not.toHaveBeenCalled();
  });

  it('cuts a message to what a condition holds, and leaves out a generation that is not known', () => {
    const [ready] = conditionsOf(readiness('ready', 'x'.repeat(40_000)), {
      generation: undefined,
      previous: [],
      now: () => NOW,
    });
    expect(ready?.message).toHaveLength(32_768);
    expect(ready).not.toHaveProperty('observedGeneration');
  });

  it('cuts no message in the middle of a character, of which the server would store another', () => {
    const long = (before: string): string => `${before}${'\u{1F63A}'.repeat(20_000)}`;
    const [even, odd] = ['', 'x'].map((before) => {
      return conditionsOf(readiness('ready', long(before)), { generation: 1, previous: [], now: () => NOW })[0]
        ?.message;
    });
    expect([even?.length, odd?.length]).toEqual([32_768, 32_767]);
    expect([even, odd].some((message) => /\p{Surrogate}/u.test(message ?? ''))).toBe(false);
  });
});

describe('worstOf', () => {
  it('takes the gravest, with the messages of all of its state', () => {
    const all = [
      readiness('progressing', 'p'),
      readiness('stalled', 'a'),
      readiness('failing', 'f'),
      readiness('stalled', 'b'),
    ];
    expect(mostSevere(all)).toEqual({ state: 'stalled', reason: 'R', message: 'a; b' });
    expect(mostSevere(all.filter(({ state }) => state !== 'stalled'))).toMatchObject({
      state: 'failing',
      message: 'f',
    });
    expect(mostSevere([readiness('ready'), readiness('progressing', 'p')])).toMatchObject({ state: 'progressing' });
  });

  it('is undefined of none', () => {
    expect(mostSevere([])).toBeUndefined();
  });
});
