import { join } from 'node:path';
import { MOVES, expectMoves, failure, stack, useTwoClusters } from './two-clusters';

// Other ways, and the same cluster by another, are in another-context.slow.test.ts.

const clusters = useTwoClusters();

describe('another cluster, by context', () => {
  test(MOVES, () => expectMoves(clusters(), (to) => stack({ context: to })));
});

describe('a cluster that cannot be told', () => {
  test('a context that is not there fails the preview, on an existing stack too, with those that there are', async () => {
    const { engine, folder } = clusters();
    const message = `there is no context "nosuch" in ${join(folder, 'config')}; there are a, b`;
    expect(await failure(engine.preview(stack({ context: 'nosuch' })))).toContain(message);
    await engine.up(stack({ context: 'a' }));
    expect(await failure(engine.up(stack({ context: 'nosuch' })))).toContain(message);
  });
});
