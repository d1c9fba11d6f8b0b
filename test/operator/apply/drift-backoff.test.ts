import { DriftBackoff } from '../../../operator/apply/drift-backoff';

interface At {
  readonly driftBackoff: DriftBackoff;
  readonly pass: (ms: number) => void;
  /** Corrects a child if that needs no waiting. @returns how long to wait instead */
  readonly correct: (child: string) => number;
}

function contestsAt(): At {
  let now = 0;
  const driftBackoff = new DriftBackoff(() => now);
  const correct = (child: string): number => {
    const delay = driftBackoff.remainingDelayMs(child);
    if (delay === 0) driftBackoff.recordCorrection(child);
    return delay;
  };
  return { driftBackoff, pass: (ms) => (now += ms), correct };
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
    const { driftBackoff } = contestsAt();
    for (let i = 0; i < 20; i++) expect(driftBackoff.remainingDelayMs('a')).toBe(0);
  });

  test('the whole delay is the same while its rest gets shorter', () => {
    const { driftBackoff, correct, pass } = contestsAt();
    expect(driftBackoff.totalDelayMs('a')).toBe(0);
    for (let i = 0; i < 5; i++) correct('a');
    pass(400);
    expect([driftBackoff.remainingDelayMs('a'), driftBackoff.totalDelayMs('a')]).toEqual([600, 1_000]);
  });
});

describe('what was last applied to a child', () => {
  test('is the latest, child by child', () => {
    const { driftBackoff } = contestsAt();
    driftBackoff.recordApply('a', 'one');
    driftBackoff.recordApply('b', 'two');
    driftBackoff.recordApply('a', 'three');
    expect(['a', 'b', 'c'].map((uid) => driftBackoff.lastAppliedHash(uid))).toEqual(['three', 'two', undefined]);
  });

  test('is known for longer than the longest delay, and not for ever', () => {
    const { driftBackoff, pass } = contestsAt();
    driftBackoff.recordApply('a', 'one');
    pass(300_000 + 60_000);
    expect(driftBackoff.lastAppliedHash('a')).toBe('one');
    pass(1);
    expect(driftBackoff.lastAppliedHash('a')).toBeUndefined();
  });

  test('is known of ten thousand children at most', () => {
    const { driftBackoff } = contestsAt();
    driftBackoff.recordApply('a', 'one');
    driftBackoff.recordApply('b', 'one');
    driftBackoff.recordApply('a', 'two');
    for (let i = 0; i < 9_999; i++) driftBackoff.recordApply(String(i), 'one');
    expect(['a', 'b', '0'].map((uid) => driftBackoff.lastAppliedHash(uid))).toEqual(['two', undefined, 'one']);
  });

  test('is not kept of children that were left alone since', () => {
    const { driftBackoff, pass } = contestsAt();
    const { appliedHashes } = driftBackoff as unknown as { appliedHashes: ReadonlyMap<string, unknown> };
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 1_000; i++) driftBackoff.recordApply(`${String(round)}-${String(i)}`, 'one');
      pass(300_000 + 60_001);
    }
    expect(appliedHashes.size).toBeLessThanOrEqual(2_000);
  });
});

describe('what was last created of the children of a holder', () => {
  test('is the latest, child by child and holder by holder', () => {
    const { driftBackoff } = contestsAt();
    driftBackoff.recordCreate('o', 'a', 'one');
    driftBackoff.recordCreate('o', 'b', 'two');
    driftBackoff.recordCreate('o', 'a', 'three');
    driftBackoff.recordCreate('p', 'b', 'four');
    expect(['a', 'b', 'c'].map((child) => driftBackoff.lastCreatedHash('o', child))).toEqual([
      'three',
      'two',
      undefined,
    ]);
    expect(['a', 'b'].map((child) => driftBackoff.lastCreatedHash('p', child))).toEqual([undefined, 'four']);
    expect(driftBackoff.lastCreatedHash('q', 'a')).toBeUndefined();
  });

  test('is known for longer than the longest delay, and not for ever', () => {
    const { driftBackoff, pass } = contestsAt();
    driftBackoff.recordCreate('o', 'a', 'one');
    pass(300_000 + 60_000);
    expect(driftBackoff.lastCreatedHash('o', 'a')).toBe('one');
    pass(1);
    expect(driftBackoff.lastCreatedHash('o', 'a')).toBeUndefined();
  });

  test('is forgotten of what the holder wants no more', () => {
    const { driftBackoff } = contestsAt();
    for (const child of ['a', 'b', 'c']) driftBackoff.recordCreate('o', child, 'one');
    driftBackoff.recordCreate('p', 'a', 'one');
    driftBackoff.setDesiredChildren('o', () => ['b', 'd']);
    expect(['a', 'b', 'c'].map((child) => driftBackoff.lastCreatedHash('o', child))).toEqual([
      undefined,
      'one',
      undefined,
    ]);
    driftBackoff.setDesiredChildren('o', () => []);
    expect(driftBackoff.lastCreatedHash('o', 'b')).toBeUndefined();
    expect(driftBackoff.lastCreatedHash('p', 'a')).toBe('one');
  });

  test('costs a holder nothing of whose children none was created lately', () => {
    const { driftBackoff } = contestsAt();
    const children = jest.fn(() => []);
    driftBackoff.setDesiredChildren('o', children);
    expect(children).not.toHaveBeenCalled();
  });

  test('is known of ten thousand holders at most', () => {
    const { driftBackoff } = contestsAt();
    driftBackoff.recordCreate('o', 'a', 'one');
    driftBackoff.recordCreate('p', 'a', 'one');
    driftBackoff.recordCreate('o', 'b', 'two');
    for (let i = 0; i < 9_999; i++) driftBackoff.recordCreate(String(i), 'a', 'one');
    expect(['o', 'p', '0'].map((holder) => driftBackoff.lastCreatedHash(holder, 'a'))).toEqual([
      'one',
      undefined,
      'one',
    ]);
  });

  test('is not kept of children that were left alone since', () => {
    const { driftBackoff, pass } = contestsAt();
    const { createdChildren } = driftBackoff as unknown as { createdChildren: ReadonlyMap<string, unknown> };
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 1_000; i++) driftBackoff.recordCreate(`${String(round)}-${String(i)}`, 'a', 'one');
      pass(300_000 + 60_001);
    }
    expect(createdChildren.size).toBeLessThanOrEqual(2_000);
  });
});

describe('what is remembered of an object that is gone', () => {
  const { driftBackoff, correct } = contestsAt();

  beforeAll(() => {
    for (const uid of ['gone', 'here']) {
      driftBackoff.recordApply(uid, 'hash');
      driftBackoff.recordCreate(uid, 'Deployment web', 'hash');
      driftBackoff.statusHashes.set(uid, 7);
      driftBackoff.deletions.recordDeletion(uid, 'Service web', {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web' },
      });
    }
    for (let i = 0; i < 5; i++) correct('Deployment web');
    driftBackoff.forget('gone');
  });

  test('is nothing, and all of the others', () => {
    expect(['gone', 'here'].map((uid) => driftBackoff.lastAppliedHash(uid))).toEqual([undefined, 'hash']);
    expect(['gone', 'here'].map((uid) => driftBackoff.lastCreatedHash(uid, 'Deployment web'))).toEqual([
      undefined,
      'hash',
    ]);
    expect(['gone', 'here'].map((uid) => driftBackoff.statusHashes.get(uid))).toEqual([undefined, 7]);
    expect(driftBackoff.size).toBe(4);
  });

  test('a name that is contested stays so: it is what comes back', () => {
    expect(driftBackoff.remainingDelayMs('Deployment web')).toBe(1_000);
  });
});

describe('a contest', () => {
  function fightAt(): ReturnType<typeof contestsAt> & { readonly change: (path: string, by: string) => void } {
    const at = contestsAt();
    const change = (path: string, by: string): void => {
      if (at.driftBackoff.remainingDelayMs('a') > 0) {
        at.driftBackoff.endContest('a');
        return;
      }
      const isContested = at.driftBackoff.isContestedNext('a', path);
      at.driftBackoff.recordCorrection('a', { path, by: isContested ? by : undefined });
    };
    return { ...at, change };
  }

  test('with an autoscaler that acts every 15 s is said within a minute, and never taken back while it lasts', () => {
    const { driftBackoff, pass, change } = fightAt();
    const said: boolean[] = [];
    for (let seconds = 0; seconds < 20 * 60; seconds += 15) {
      change('spec.replicas', 'hpa');
      const isBackingOff = driftBackoff.remainingDelayMs('a') > 0;
      said.push(isBackingOff || driftBackoff.contestOf(() => 'a') !== undefined);
      pass(15_000);
    }
    expect(said.indexOf(true)).toBe(2);
    expect(said.slice(2)).not.toContain(false);
  });

  test('is not kept up, renewed or renamed by corrections of another field', () => {
    const { driftBackoff, pass, change } = fightAt();
    const contest = (): string | undefined => driftBackoff.contestOf(() => 'a')?.path;
    for (let i = 0; i < 3; i++) change('spec.replicas', 'hpa');
    expect(contest()).toBe('spec.replicas');
    change('metadata.labels.a', 'other');
    expect(driftBackoff.contestOf(() => 'a')).toEqual({ path: 'spec.replicas', by: 'hpa', waitMs: 60_000 });
    pass(59_999);
    expect(contest()).toBe('spec.replicas');
    pass(1);
    expect(contest()).toBeUndefined();
  });

  test('asks for no key while nothing was corrected', () => {
    const key = jest.fn(() => 'a');
    expect(contestsAt().driftBackoff.contestOf(key)).toBeUndefined();
    expect(key).not.toHaveBeenCalled();
  });
});
