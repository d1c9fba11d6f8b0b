import { changes, expectFinished } from './interrupted-runs';

// The gate kills fewer runs: interrupted.test.ts.

/** All operations, dealt out to several tests. */
const PARTS = 4;
const parts = changes.flatMap((change) =>
  Array.from({ length: PARTS }, (_, i) => ({ name: change[0], first: i + 1, change })),
);

test.each(parts)(
  `$name that is killed at operation $first, or ${PARTS} later, and so on, is finished by the next up, and removed by destroy`,
  async ({ change, first }) => {
    expect(await expectFinished(change, PARTS, first)).toBeGreaterThan(0);
  },
);
