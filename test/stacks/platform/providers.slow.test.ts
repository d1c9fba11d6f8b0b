import { ObservedCluster } from '../memory-cluster';
import { UNCHANGED, earlier, expectUnchanged, program } from './providers-beside';

// The gate keeps a platform below the stack: providers.test.ts.

describe('a stack whose providers stood beside the platform', () => {
  test.each([['of a component', true]])(UNCHANGED, expectUnchanged);

  test.each([
    [2, 'before'],
    [2, 'after'],
    [6, 'after'],
    [12, 'before'],
  ] as const)('interrupted at operation %d, %s it: the next up changes nothing', async (at, when) => {
    const { engine, done } = new ObservedCluster(await earlier(false));
    await expect(engine.up(program(false), { interrupt: { at, when }, parallel: 1 })).rejects.toThrow('was killed');
    expect((await engine.up(program(false))).summary).toEqual([]);
    expect(done).toEqual([]);
    await engine.destroy();
    expect(done).toContain('delete kindred/operators/operator/deployment');
  });
});
