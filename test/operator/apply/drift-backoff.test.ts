import { Contests } from '../../../operator/apply/drift-backoff';

interface At {
  readonly contests: Contests;
  readonly pass: (ms: number) => void;
  /** Corrects a child if that needs no waiting. @returns how long to wait instead */
  readonly correct: (child: string) => number;
}

function contestsAt(): At {
  let now = 0;
  const contests = new Contests(() => now);
  const correct = (child: string): number => {
    const delay = contests.delay(child);
    if (delay === 0) contests.corrected(child);
    return delay;
  };
  return { contests, pass: (ms) => (now += ms), correct };
}

describe('corrections of a child', () => {
  test('the first five go ahead at once', () => {
    const { correct } = contestsAt();
    expect(Array.from({ length: 5 }, () => correct('a'))).toEqual([0, 0, 0, 0, 0]);
    expect(correct('a')).toBe(1_000);
  });

  test('then the delay doubles, up to five minutes', () => {
    const { correct, pass } = contestsAt();
    const delays: number[] = [];
    for (let round = 0; round < 16; round++) {
      while (correct('a') === 0);
      const delay = correct('a');
      delays.push(delay);
      pass(delay);
    }
    expect(delays.slice(0, 4)).toEqual([1_000, 2_000, 4_000, 8_000]);
    expect(Math.max(...delays)).toBe(300_000);
    expect(delays.at(-1)).toBe(300_000);
  });

  test('asking during the delay neither lengthens it nor counts', () => {
    const { correct, pass } = contestsAt();
    for (let i = 0; i < 5; i++) correct('a');
    pass(400);
    expect(correct('a')).toBe(600);
    pass(600);
    expect(correct('a')).toBe(0);
    expect(correct('a')).toBe(2_000);
  });

  test('a minute of quiet after the delay forgets them', () => {
    const { correct, pass } = contestsAt();
    for (let i = 0; i < 5; i++) correct('a');
    pass(1_000 + 60_001);
    expect(Array.from({ length: 5 }, () => correct('a'))).toEqual([0, 0, 0, 0, 0]);
  });

  test('children do not count for each other', () => {
    const { correct } = contestsAt();
    for (let i = 0; i < 5; i++) correct('a');
    expect(correct('b')).toBe(0);
  });

  test('asking counts for nothing: what the server refused is no correction', () => {
    const { contests } = contestsAt();
    for (let i = 0; i < 20; i++) expect(contests.delay('a')).toBe(0);
  });

  test('the whole delay is the same while its rest gets shorter', () => {
    const { contests, correct, pass } = contestsAt();
    expect(contests.wholeDelay('a')).toBe(0);
    for (let i = 0; i < 5; i++) correct('a');
    pass(400);
    expect([contests.delay('a'), contests.wholeDelay('a')]).toEqual([600, 1_000]);
  });
});

describe('what was last applied to a child', () => {
  test('is the latest, child by child', () => {
    const { contests } = contestsAt();
    contests.applied('a', 'one');
    contests.applied('b', 'two');
    contests.applied('a', 'three');
    expect(['a', 'b', 'c'].map((uid) => contests.lastApplied(uid))).toEqual(['three', 'two', undefined]);
  });

  test('is known for longer than the longest delay, and not for ever', () => {
    const { contests, pass } = contestsAt();
    contests.applied('a', 'one');
    pass(300_000 + 60_000);
    expect(contests.lastApplied('a')).toBe('one');
    pass(1);
    expect(contests.lastApplied('a')).toBeUndefined();
  });

  test('is known of ten thousand children at most', () => {
    const { contests } = contestsAt();
    contests.applied('a', 'one');
    contests.applied('b', 'one');
    contests.applied('a', 'two');
    for (let i = 0; i < 9_999; i++) contests.applied(String(i), 'one');
    expect(['a', 'b', '0'].map((uid) => contests.lastApplied(uid))).toEqual(['two', undefined, 'one']);
  });

  test('is not kept of children that were left alone since', () => {
    const { contests, pass } = contestsAt();
    const { applications } = contests as unknown as { applications: ReadonlyMap<string, unknown> };
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 1_000; i++) contests.applied(`${String(round)}-${String(i)}`, 'one');
      pass(300_000 + 60_001);
    }
    expect(applications.size).toBeLessThanOrEqual(2_000);
  });
});

describe('what was last created of the children of a holder', () => {
  test('is the latest, child by child and holder by holder', () => {
    const { contests } = contestsAt();
    contests.created('o', 'a', 'one');
    contests.created('o', 'b', 'two');
    contests.created('o', 'a', 'three');
    contests.created('p', 'b', 'four');
    expect(['a', 'b', 'c'].map((child) => contests.lastCreated('o', child))).toEqual(['three', 'two', undefined]);
    expect(['a', 'b'].map((child) => contests.lastCreated('p', child))).toEqual([undefined, 'four']);
    expect(contests.lastCreated('q', 'a')).toBeUndefined();
  });

  test('is known for longer than the longest delay, and not for ever', () => {
    const { contests, pass } = contestsAt();
    contests.created('o', 'a', 'one');
    pass(300_000 + 60_000);
    expect(contests.lastCreated('o', 'a')).toBe('one');
    pass(1);
    expect(contests.lastCreated('o', 'a')).toBeUndefined();
  });

  test('is forgotten of what the holder wants no more', () => {
    const { contests } = contestsAt();
    for (const child of ['a', 'b', 'c']) contests.created('o', child, 'one');
    contests.created('p', 'a', 'one');
    contests.wanted('o', () => ['b', 'd']);
    expect(['a', 'b', 'c'].map((child) => contests.lastCreated('o', child))).toEqual([undefined, 'one', undefined]);
    contests.wanted('o', () => []);
    expect(contests.lastCreated('o', 'b')).toBeUndefined();
    expect(contests.lastCreated('p', 'a')).toBe('one');
  });

  test('costs a holder nothing of whose children none was created lately', () => {
    const { contests } = contestsAt();
    const children = jest.fn(() => []);
    contests.wanted('o', children);
    expect(children).not.toHaveBeenCalled();
  });

  test('is known of ten thousand holders at most', () => {
    const { contests } = contestsAt();
    contests.created('o', 'a', 'one');
    contests.created('p', 'a', 'one');
    contests.created('o', 'b', 'two');
    for (let i = 0; i < 9_999; i++) contests.created(String(i), 'a', 'one');
    expect(['o', 'p', '0'].map((holder) => contests.lastCreated(holder, 'a'))).toEqual(['one', undefined, 'one']);
  });

  test('is not kept of children that were left alone since', () => {
    const { contests, pass } = contestsAt();
    const { creations } = contests as unknown as { creations: ReadonlyMap<string, unknown> };
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 1_000; i++) contests.created(`${String(round)}-${String(i)}`, 'a', 'one');
      pass(300_000 + 60_001);
    }
    expect(creations.size).toBeLessThanOrEqual(2_000);
  });
});

describe('what is remembered of an object that is gone', () => {
  const { contests, correct } = contestsAt();

  beforeAll(() => {
    for (const uid of ['gone', 'here']) {
      contests.applied(uid, 'hash');
      contests.created(uid, 'Deployment web', 'hash');
      contests.statuses.set(uid, 7);
      contests.prunings.pruned(uid, 'Service web', { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } });
    }
    for (let i = 0; i < 5; i++) correct('Deployment web');
    contests.forget('gone');
  });

  test('is nothing, and all of the others', () => {
    expect(['gone', 'here'].map((uid) => contests.lastApplied(uid))).toEqual([undefined, 'hash']);
    expect(['gone', 'here'].map((uid) => contests.lastCreated(uid, 'Deployment web'))).toEqual([undefined, 'hash']);
    expect(['gone', 'here'].map((uid) => contests.statuses.get(uid))).toEqual([undefined, 7]);
    expect(contests.remembered).toBe(4);
  });

  test('a name that is contested stays so: it is what comes back', () => {
    expect(contests.delay('Deployment web')).toBe(1_000);
  });
});
