import { KEEPS, expectKept } from './earlier-platform';

// What else a platform was made with, and a Cluster of it, are in upgrade.slow.test.ts.

test.each([['a context', { context: 'a' }]])(KEEPS, expectKept);
