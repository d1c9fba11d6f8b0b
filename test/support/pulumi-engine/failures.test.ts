import { runInThisContext } from 'node:vm';
import * as pulumi from '@pulumi/pulumi';
import { DeploymentError, Engine, InterruptedError } from './index';
import { Thing, type ThingArgs, ToyCloud } from './providers/toy';

/** The real `process`. Jest gives tests a copy, whose events never fire. */
const realProcess = runInThisContext('process') as NodeJS.Process;

function setUp(): { cloud: ToyCloud; engine: Engine } {
  const cloud = new ToyCloud();
  return { cloud, engine: new Engine({ providers: [cloud.package()] }) };
}

/** The error of a run that must fail. */
async function failure(run: Promise<unknown>): Promise<DeploymentError> {
  const error: unknown = await run.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(DeploymentError);
  return error as DeploymentError;
}

/** A program of one thing, a. */
function thing(args: ThingArgs = {}): () => void {
  return () => {
    new Thing('a', args);
  };
}

/** a, then b and c, then d. */
function diamond(value = 'x'): () => object {
  return () => {
    const a = new Thing('a', { value });
    const b = new Thing('b', { value: a.computed });
    const c = new Thing('c', { value: a.computed });
    const d = new Thing('d', { value: pulumi.interpolate`${b.computed} ${c.computed}` });
    return { said: d.computed };
  };
}

describe('a failure', () => {
  test('of a create stores nothing of it, stops what depends on it, and lets the rest under way end', async () => {
    const { cloud, engine } = setUp();
    // b fails while c is under way.
    let begun: () => void = () => undefined;
    const underWay = new Promise<void>((resolve) => (begun = resolve));
    cloud.during = async (call) => {
      if (call === 'create c') {
        begun();
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      if (call === 'create b') await underWay;
    };
    cloud.refuse = (call) => {
      if (call === 'create b') throw new Error('no b today');
    };
    const failed = await failure(engine.up(diamond()));
    expect(failed.message).toBe('urn:pulumi:test::project::toy:index:Thing::b: no b today');
    expect(cloud.names).toEqual(['a', 'c']);
    expect(engine.state.made.map((resource) => resource.name)).toEqual(['a', 'c']);
    expect(failed.result.summary).toEqual(['create a', 'create c', 'create default_']);

    cloud.refuse = () => undefined;
    expect((await engine.up(diamond())).summary).toEqual(['create b', 'create d']);
  });

  test('of an update keeps what was, and deletes nothing', async () => {
    const { cloud, engine } = setUp();
    await engine.up(diamond());
    cloud.refuse = (call) => {
      if (call === 'update a') throw new Error('not so');
    };
    await failure(engine.up(thing({ value: 'y' })));
    expect(engine.state.resource('a').inputs).toEqual({ value: 'x' });
    expect(cloud.names).toEqual(['a', 'b', 'c', 'd']);
  });

  test('of a delete keeps what it stands on', async () => {
    const { cloud, engine } = setUp();
    await engine.up(diamond());
    cloud.refuse = (call) => {
      if (call === 'delete b') throw new Error('still needed');
    };
    expect((await failure(engine.destroy())).message).toMatch(/::b: still needed$/);
    expect(cloud.names).toEqual(['a', 'b']);
    cloud.refuse = () => undefined;
    expect((await engine.destroy()).summary).toEqual(['delete a', 'delete b']);
  });

  test('of inputs is told in the words of the provider', async () => {
    const { engine } = setUp();
    expect((await failure(engine.up(thing({ bad: true })))).message).toMatch(
      /::a: the inputs are refused:\n {2}bad is not good$/,
    );
  });

  test('to become ready keeps the resource, and updates it next time', async () => {
    const { cloud, engine } = setUp();
    expect((await failure(engine.up(thing({ partial: true })))).message).toMatch(/only half there/);
    expect(engine.state.resource('a').initErrors).toEqual(['it is only half there']);
    cloud.calls.length = 0;
    await engine.up(thing({ partial: true }));
    expect(cloud.calls).toEqual(['update a']);
    expect(engine.state.resource('a').initErrors).toEqual([]);
  });

  test.each([
    ['thrown at once', () => Promise.reject(new Error('broken program'))],
    [
      'thrown in an apply',
      () => {
        new Thing('z', {
          value: new Thing('a', {}).id.apply(() => {
            throw new Error('broken program');
          }),
        });
      },
    ],
    [
      'an input that rejects',
      () => {
        new Thing('z', { value: Promise.reject(new Error('broken program')) });
      },
    ],
    ['logged as an error', () => pulumi.log.error('broken program')],
  ])('of the program: %s', async (_, program) => {
    const { cloud, engine } = setUp();
    await engine.up(thing());
    expect((await failure(engine.up(program))).message).toMatch(/broken program/);
    // Nothing is deleted because of a program that did not come to its end.
    expect(cloud.names).toEqual(['a']);
  });

  test('ends a program that would go on later: it gets no response any more, and leaves no rejection behind', async () => {
    const { cloud, engine } = setUp();
    cloud.refuse = (call) => {
      if (call === 'create a') throw new Error('no a today');
    };
    let goOn: () => void = () => undefined;
    const later = new Promise<void>((resolve) => (goOn = resolve));
    const wentOn = later.then(() => new Thing('late', {})).then(() => undefined);
    const program = async (): Promise<void> => {
      new Thing('a', {});
      await wentOn;
    };
    const rejections: unknown[] = [];
    const listener = (reason: unknown): unknown => rejections.push(reason);
    expect((await failure(engine.up(program))).message).toContain('no a today');
    realProcess.on('unhandledRejection', listener);
    goOn();
    await wentOn;
    // Another program of the process can still run, and its messages arrive. It takes longer than a request to an engine that has ended.
    const { log } = await engine.up(async () => {
      await pulumi.log.info('said');
    });
    realProcess.off('unhandledRejection', listener);
    expect(log.map(({ message }) => message)).toContain('said');
    expect(rejections).toEqual([]);
    expect(cloud.calls).toEqual(['create a']);
  });

  test('of a name used twice', async () => {
    const { engine } = setUp();
    const twice = (): void => {
      new Thing('a', {});
      new Thing('a', {});
    };
    expect((await failure(engine.up(twice))).message).toMatch(/Duplicate resource URN '.*::a'/);
  });

  test('of an unknown package', async () => {
    const engine = new Engine({ providers: [] });
    expect((await failure(engine.up(thing()))).message).toMatch(
      /no provider for package "toy": the engine was given none/,
    );
  });
});

describe('a killed run', () => {
  async function killed(run: Promise<unknown>): Promise<void> {
    await expect(run).rejects.toThrow(InterruptedError);
  }

  test.each(['before', 'after'] as const)(
    '%s each step of up, run again from its text, ends in the same',
    async (when) => {
      // The provider, and four things.
      for (let at = 1; at <= 5; at++) {
        const { cloud, engine } = setUp();
        await killed(engine.up(diamond(), { interrupt: { at, when }, parallel: 1 }));
        const pending = engine.state.pendingOperations.length;
        expect(pending).toBe(when === 'after' ? 1 : 0);
        const next = new Engine({ providers: [cloud.package()], state: engine.export() });
        const result = await next.up(diamond());
        expect(result.output('said')).toBe('computed of computed of computed of x computed of computed of x');
        expect(result.log.filter((entry) => entry.severity === 'warning')).toHaveLength(pending);
        // What was made and not written down is there twice: the toy cannot find again what it made.
        expect(cloud.things.size).toBe(when === 'after' && at > 1 ? 5 : 4);
        expect((await next.up(diamond())).summary).toEqual([]);
      }
    },
  );

  test('by a signal cuts what is under way, which then is pending', async () => {
    const { cloud, engine } = setUp();
    const abort = new AbortController();
    cloud.during = (call, signal) => {
      if (call !== 'create a') return Promise.resolve();
      setImmediate(() => abort.abort());
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('cut'))));
    };
    await killed(engine.up(diamond(), { signal: abort.signal }));
    expect(engine.state.pendingOperations).toEqual([{ op: 'create', urn: expect.stringMatching(/::a$/) as string }]);
    expect(cloud.names).toEqual([]);
  });

  test('and one that fails at an operation, or before it', async () => {
    const { cloud, engine } = setUp();
    expect((await failure(engine.up(diamond(), { failAt: 2 }))).message).toMatch(
      /operation 2, create of .*::a, fails as the test asked/,
    );
    const refuse = (operation: { name: string }): void => {
      if (operation.name === 'd') throw new Error('not d');
    };
    expect((await failure(engine.up(diamond(), { onOperation: refuse }))).message).toMatch(/::d: not d/);
    expect(cloud.names).toEqual(['a', 'b', 'c']);
  });
});
