import { hostsAvailable } from './index';

const why = hostsAvailable();
if (why !== undefined) console.warn(why);

/** A `describe` for tests on machines of their own; skipped, with one line that says why, where there can be none. */
export const describeOnHosts: typeof describe = why === undefined ? describe : describe.skip;
