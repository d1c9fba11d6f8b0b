import { INTERRUPTED, WALK, expectOnAndBack, expectWalk } from './platform-changes';
import type { Values, Walk } from './platform-changes';

// The other keys and changes are in transitions.slow.test.ts.

// Several runs of the SDK a test, on whatever machine.
jest.setTimeout(240_000);

test.each<Walk>([['provisioner', [false, true], {}]])(WALK, expectWalk);

test.each<[Values, Values]>([[{ namespace: 'kindred-system' }, { namespace: 'ops' }]])(INTERRUPTED, expectOnAndBack);
