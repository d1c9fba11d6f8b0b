import { CHANGE, expectThereAndBack, machines, one } from './machine-changes';
import type { Change } from './machine-changes';

// The other keys are in machine-keys.slow.test.ts.

/** A key that the machines of a stack are made from changes, and back: machines stay, and so does the platform on them. */
jest.setTimeout(240_000);

test.each<Change>([['one machine more', 'cluster', machines(one), machines([...one, [2, 'agent']]), {}]])(
  CHANGE,
  expectThereAndBack,
);
