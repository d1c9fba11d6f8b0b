import { withTimeout } from '../../../operator/process/wait';

const never = new Promise<string>(() => undefined);

describe('within', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('is what the promise comes to, and leaves no timer', async () => {
    const late = jest.fn();
    await expect(withTimeout(Promise.resolve('in time'), { milliseconds: 1000, onTimeout: late })).resolves.toBe(
      'in time',
    );
    await expect(
      withTimeout(Promise.reject(new Error('failed')), { milliseconds: 1000, onTimeout: late }),
    ).rejects.toThrow('failed');
    expect(jest.getTimerCount()).toBe(0);
    expect(late).not.toHaveBeenCalled();
  });

  it('is what is made of its taking longer, and not before the time is over', async () => {
    const late = jest.fn(() => 'late');
    const outcome = withTimeout(never, { milliseconds: 1000, onTimeout: late });
    await jest.advanceTimersByTimeAsync(999);
    expect(late).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(1);
    await expect(outcome).resolves.toBe('late');
  });

  it('fails with what is thrown then', async () => {
    const late = (): never => {
      throw new Error('too late');
    };
    const outcome = expect(withTimeout(never, { milliseconds: -1, onTimeout: late })).rejects.toThrow('too late');
    await jest.advanceTimersByTimeAsync(0);
    await outcome;
  });
});
