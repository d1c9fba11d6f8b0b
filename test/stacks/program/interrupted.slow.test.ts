import { changes, expectFinished } from './interrupted-runs';

// The gate kills fewer runs: interrupted.test.ts.

// Some 100 runs of the stack are killed in each, twice, and then finished or removed.
jest.setTimeout(600_000);

test.each(changes)(
  '%s that is killed at any operation is finished by the next up, and removed by destroy',
  async (...change) => {
    expect(await expectFinished(change, 1)).toBeGreaterThan(5);
  },
);
