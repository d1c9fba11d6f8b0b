import { whileSlow } from '../../local/assets/progress';

describe('work', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  const start = (milliseconds: number, fail = false) => {
    const lines: string[] = [];
    const work = new Promise<string>((resolve, reject) => {
      setTimeout(() => (fail ? reject(new Error('it failed')) : resolve('done')), milliseconds);
    });
    return {
      lines,
      result: whileSlow(
        'Pushing shop:1',
        (line) => lines.push(line),
        () => work,
      ),
    };
  };

  test.each([
    [1_999, []],
    [2_001, ['Pushing shop:1 (2.0 s)']],
    [31_999, ['Pushing shop:1 (2.0 s)']],
    [62_001, ['Pushing shop:1 (2.0 s)', 'Pushing shop:1 (32 s)', 'Pushing shop:1 (62 s)']],
  ])('of %d ms is told as %j', async (milliseconds, expected) => {
    const { lines, result } = start(milliseconds);
    await jest.advanceTimersByTimeAsync(milliseconds);
    expect(await result).toBe('done');
    await jest.advanceTimersByTimeAsync(100_000);
    expect(lines).toEqual(expected);
  });

  test('that fails is told no more', async () => {
    const { lines, result } = start(3_000, true);
    const failed = expect(result).rejects.toThrow('it failed');
    await jest.advanceTimersByTimeAsync(100_000);
    await failed;
    expect(lines).toEqual(['Pushing shop:1 (2.0 s)']);
  });
});
