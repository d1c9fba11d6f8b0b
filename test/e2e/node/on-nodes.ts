import { tmpdir } from 'node:os';
import { cacheFolder, nodeProblem } from '../../../local';

const why = nodeProblem(2, [tmpdir(), cacheFolder()]);
if (why !== undefined) console.warn(`no nodes that run containers: ${why}`);

/** A `describe` for tests in real pods; skipped, with one line that says why, where there can be none. */
export const describeOnNodes: typeof describe = why === undefined ? describe : describe.skip;
