import { HelloApp } from '../../../constructs/kinds';
import type { AnyKind } from '../../../constructs/kind/kind';
import { RunningController } from './running-controller';

const fail = (what: string) => (): never => {
  throw new TypeError(`${what} is wrong\nand a second line`);
};

describe.each<[string, Partial<AnyKind>, createsChildren: boolean]>([
  ['children', { children: fail('children') }, false],
  ['observe', { observe: fail('observe') }, true],
])('%s that throws', (name, change, createsChildren) => {
  const running = new RunningController({ ...HelloApp, ...change });

  beforeAll(async () => {
    running.start();
    await running.add('web', { image: 'i' });
    await running.settle();
  });
  afterAll(() => running.stop());

  it('is reported in one line: the function, the error and where it was thrown', () => {
    expect(running.conditions('web')).toEqual(['Ready=False ErrRender', 'Stalled=True ErrRender']);
    expect(running.message('web')).toMatch(
      new RegExp(`^HelloApp\\.${name}: TypeError: ${name} is wrong \\(thrown\\.test\\.ts:\\d+:\\d+\\)$`),
    );
    expect(running.events).toMatchObject([{ type: 'Warning', reason: 'ErrRender', message: running.message('web') }]);
  });

  it('is logged with its stack, and not tried again before something changes', () => {
    const { err, key } = running.log.find(({ msg }) => msg === 'not as the spec says') ?? {};
    expect(key).toBe('object:default/web');
    expect(err).toMatchObject({
      type: 'KindFunctionError',
      message: expect.stringMatching(/^HelloApp default\/web: HelloApp\./) as string,
    });
    expect((err as { stack: string }).stack).toMatch(/\n {4}at .*thrown\.test\.ts:\d+:\d+\)?\n/);
    expect([running.queue.depth, running.queue.delayedCount]).toEqual([0, 0]);
  });

  it('keeps other work of the object from being lost', () => {
    expect(running.server.writes.some((write) => write.includes('Deployment'))).toBe(createsChildren);
  });
});
