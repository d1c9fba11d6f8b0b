import * as pulumi from '@pulumi/pulumi';
import { DeploymentError, Engine } from './index';
import { Group, Thing, ToyCloud, ToyProvider } from './providers/toy';

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

describe('create, update, same, delete', () => {
  test('a second run changes nothing, a changed one updates, a dropped resource goes', async () => {
    const { cloud, engine } = setUp();
    const program = (value: string, both: boolean) => () => {
      const a = new Thing('a', { value });
      if (both) new Thing('b', { value: a.computed });
      return { id: a.id, said: a.computed };
    };
    const first = await engine.up(program('x', true));
    expect(first.summary).toEqual(['create a', 'create b', 'create default_']);
    expect(first.output('said')).toBe('computed of x');
    expect(cloud.calls).toEqual(['create a', 'create b']);
    expect(engine.state.resource('b').inputs).toEqual({ value: 'computed of x' });
    expect(engine.state.resource('b').propertyDependencies.value).toEqual([engine.state.resource('a').urn]);

    expect((await engine.up(program('x', true))).summary).toEqual([]);
    expect((await engine.up(program('y', true))).summary).toEqual(['update a', 'update b']);
    expect((await engine.up(program('y', false))).summary).toEqual(['delete b']);
    expect((await engine.destroy()).summary).toEqual(['delete a']);
    expect(cloud.things.size).toBe(0);
    expect(engine.state.resources).toEqual([]);
  });

  test('is deleted in reverse order of dependencies, parents and providers last', async () => {
    const { cloud, engine } = setUp();
    await engine.up(() => {
      const provider = new ToyProvider('own', {});
      const a = new Thing('a', {}, { provider });
      const b = new Thing('b', {}, { provider, dependsOn: a });
      new Thing('c', { value: b.id }, { provider });
    });
    cloud.calls.length = 0;
    await engine.destroy();
    expect(cloud.calls).toEqual(['delete c', 'delete b', 'delete a']);
  });

  test('resources that do not depend on one another are made at the same time', async () => {
    const { cloud, engine } = setUp();
    let running = 0;
    let meet: () => void = () => undefined;
    const met = new Promise<void>((resolve) => (meet = resolve));
    // None ends before all three are under way.
    cloud.during = () => {
      if ((running += 1) === 3) meet();
      return met;
    };
    const program = (): void => {
      for (const name of ['a', 'b', 'c']) new Thing(name, {});
    };
    await engine.up(program);
    expect(running).toBe(3);
    await engine.destroy({ parallel: 1 });
    expect(cloud.things.size).toBe(0);
  });
});

describe('replace', () => {
  test('makes the new one first, and deletes the old one at the end', async () => {
    const { cloud, engine } = setUp();
    const program = (key: string) => () => {
      const a = new Thing('a', { key });
      new Thing('b', { value: a.id });
    };
    await engine.up(program('1'));
    cloud.calls.length = 0;
    const second = await engine.up(program('2'));
    expect(second.summary).toEqual(['delete-replaced a', 'replace a', 'update b']);
    expect(cloud.calls).toEqual(['create a', 'update b', 'delete a']);
    expect(cloud.names).toEqual(['a', 'b']);
  });

  test('deletes first where the provider, or the program, says so, and what falls with it', async () => {
    const { cloud, engine } = setUp();
    const program = (place: string, key: string) => () => {
      const a = new Thing('a', { place });
      new Thing('b', { key: a.id });
      new Thing('c', { key }, { deleteBeforeReplace: true });
    };
    await engine.up(program('here', '1'));
    cloud.calls.length = 0;
    await engine.up(program('there', '1'), { parallel: 1 });
    expect(cloud.calls).toEqual(['delete b', 'delete a', 'create a', 'create b']);
    cloud.calls.length = 0;
    await engine.up(program('there', '2'));
    expect(cloud.calls).toEqual(['delete c', 'create c']);
  });

  test('a failed replacement leaves the old one; what was replaced and not deleted goes with the next run', async () => {
    const { cloud, engine } = setUp();
    const program = (key: string) => () => {
      new Thing('a', { key });
    };
    await engine.up(program('1'));
    cloud.refuse = (call) => {
      if (call === 'delete a') throw new Error('not now');
    };
    expect((await failure(engine.up(program('2')))).message).toMatch(/::a: not now$/);
    expect(cloud.things.size).toBe(2);
    expect(engine.state.resources.filter((r) => r.name === 'a').map((r) => r.delete)).toEqual([false, true]);
    cloud.refuse = () => undefined;
    expect((await engine.up(program('2'))).summary).toEqual(['delete-replaced a']);
    expect([...cloud.things.values()].map((thing) => thing.properties)).toEqual([{ key: '2' }]);
  });

  test('a provider that leads elsewhere replaces what it made; one that is only changed does not', async () => {
    const { cloud, engine } = setUp();
    const program = (region: string) => () => {
      const provider = new ToyProvider('own', { region });
      new Thing('a', {}, { provider });
    };
    await engine.up(program('north'));
    expect((await engine.up(program('south'))).summary).toEqual(['delete-replaced a', 'replace a', 'replace own']);
    expect(cloud.names).toEqual(['a']);
    await engine.destroy();
    expect(cloud.names).toEqual([]);
  });
});

describe('options', () => {
  test('protect: neither destroy nor replacement; nothing at all is deleted', async () => {
    const { cloud, engine } = setUp();
    const program = (key: string, protect: boolean) => () => {
      new Thing('a', { key }, { protect });
      new Thing('b', {});
    };
    await engine.up(program('1', true));
    expect((await failure(engine.destroy())).message).toMatch(
      /protected resources cannot be deleted; nothing was deleted[^]*::a$/,
    );
    expect((await failure(engine.up(program('2', true)))).message).toMatch(
      /::a: it is protected and cannot be replaced/,
    );
    expect(cloud.names).toEqual(['a', 'b']);
    await engine.up(program('1', false));
    await engine.destroy();
    expect(cloud.names).toEqual([]);
  });

  test('retainOnDelete forgets and leaves', async () => {
    const { cloud, engine } = setUp();
    await engine.up(() => {
      new Thing('a', {}, { retainOnDelete: true });
    });
    const destroyed = await engine.destroy();
    expect(destroyed.operations).toMatchObject([{ op: 'delete', name: 'a', retained: true }]);
    expect(cloud.names).toEqual(['a']);
    expect(engine.state.resources).toEqual([]);
  });

  test('ignoreChanges keeps what was', async () => {
    const { cloud, engine } = setUp();
    const program = (deep: string, shallow: string) => () => {
      new Thing('a', { value: { deep, shallow } }, { ignoreChanges: ['value.deep'] });
    };
    await engine.up(program('1', '1'));
    expect((await engine.up(program('2', '1'))).summary).toEqual([]);
    expect((await engine.up(program('2', '2'))).summary).toEqual(['update a']);
    expect([...cloud.things.values()][0]!.properties).toEqual({ value: { deep: '1', shallow: '2' } });
  });

  test('aliases move a resource, and its children with it', async () => {
    const { cloud, engine } = setUp();
    await engine.up(() => {
      const group = new Group('old');
      new Thing('old-a', {}, { parent: group });
      new Thing('b', {});
    });
    const calls = cloud.calls.length;
    const moved = await engine.up(() => {
      const group = new Group('new', { aliases: [{ name: 'old' }] });
      new Thing('new-a', {}, { parent: group });
      new Thing('b', {}, { parent: group, aliases: [{ parent: pulumi.rootStackResource }] });
    });
    expect(moved.summary).toEqual([]);
    expect(cloud.calls).toHaveLength(calls);
    expect(engine.state.resource('new-a').urn).toBe('urn:pulumi:test::project::toy:index:Group$toy:index:Thing::new-a');
    expect(engine.state.resource('b').parent).toBe(engine.state.resource('new').urn);
    expect(engine.state.resources.filter((r) => r.type === 'toy:index:Thing')).toHaveLength(2);
  });

  test('import takes over what is there, and refuses what does not match', async () => {
    const { cloud, engine } = setUp();
    cloud.things.set('there', { name: 'there', properties: { value: 'x' } });
    const program = (value: string) => () => {
      new Thing('a', { value }, { import: 'there' });
    };
    expect((await failure(engine.up(program('y')))).message).toMatch(/do not match what is to be imported: value/);
    expect((await engine.up(program('x'))).summary).toEqual(['import a']);
    expect(cloud.calls).toEqual([]);
    await engine.destroy();
    expect(cloud.things.size).toBe(0);
  });

  test('a provider given to a component serves its children', async () => {
    const { engine } = setUp();
    await engine.up(() => {
      const group = new Group('group', { providers: { toy: new ToyProvider('own', {}) } });
      new Thing('a', {}, { parent: group });
    });
    const own = engine.state.resource('own');
    expect(engine.state.resource('a').provider).toBe(`${own.urn}::${own.id!}`);
  });
});
