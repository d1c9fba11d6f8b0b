import { App, Chart } from 'cdk8s';
import { Construct } from 'constructs';
import fc from 'fast-check';
import { ConstructResources, resourceOptions } from '../../../stacks/bridge';
import { dependencyNames, named, run, type Registration } from './engine';
import { crd, object } from './objects';

function runTree(build: (chart: Chart) => void): Promise<readonly Registration[]> {
  return run(() => new ConstructResources('tree', { build, namespace: 'apps' }));
}

describe('dependencies', () => {
  it('follow those of constructs, for all that stands below them', async () => {
    const registrations = await runTree((chart) => {
      const late = new Construct(chart, 'late');
      object(late, 'a');
      object(new Construct(late, 'deep'), 'b');
      const early = new Construct(chart, 'early');
      object(early, 'c');
      object(early, 'd');
      late.node.addDependency(early);
    });
    expect([...dependencyNames(registrations, 'tree/late/a')].sort()).toEqual(['tree/early/c', 'tree/early/d']);
    expect([...dependencyNames(registrations, 'tree/late/deep/b')].sort()).toEqual(['tree/early/c', 'tree/early/d']);
    expect(dependencyNames(registrations, 'tree/early/c')).toEqual([]);
  });

  it('leave out what is waited for anyway', async () => {
    const registrations = await runTree((chart) => {
      const a = object(chart, 'a');
      const b = object(chart, 'b');
      const c = object(chart, 'c');
      a.addDependency(b, c);
      b.addDependency(c);
    });
    expect(dependencyNames(registrations, 'tree/a')).toEqual(['tree/b']);
    expect(dependencyNames(registrations, 'tree/b')).toEqual(['tree/c']);
  });

  it('follow those between charts, and between trees', async () => {
    const app = new App();
    const first = new Chart(app, 'first', { namespace: 'apps' });
    object(first, 'a');
    const second = new Chart(app, 'second', { namespace: 'apps' });
    object(second, 'b');
    second.addDependency(first);
    const whole = await run(() => new ConstructResources('tree', { constructs: app }));
    expect(dependencyNames(whole, 'tree/second/b')).toEqual(['tree/first/a']);

    const apart = await run(() => {
      new ConstructResources('one', { constructs: first });
      new ConstructResources('two', { constructs: second });
    });
    expect(dependencyNames(apart, 'two/b')).toEqual(['one/a']);
  });

  it('put a Namespace before what is in it, and a CRD before objects of its kind', async () => {
    const registrations = await runTree((chart) => {
      object(chart, 'cr', { apiVersion: 'example.com/v1', kind: 'Thing' });
      object(chart, 'config', { namespace: 'apps' });
      object(chart, 'elsewhere', { namespace: 'other' });
      crd(chart, 'crd', 'example.com', 'Thing');
      object(chart, 'namespace', { kind: 'Namespace', name: 'apps' });
    });
    expect(dependencyNames(registrations, 'tree/config')).toEqual(['tree/namespace']);
    expect([...dependencyNames(registrations, 'tree/cr')].sort()).toEqual(['tree/crd', 'tree/namespace']);
    expect(dependencyNames(registrations, 'tree/elsewhere')).toEqual([]);
    expect(dependencyNames(registrations, 'tree/crd')).toEqual([]);
  });

  it('let the rest of a construct depend on a part of it', async () => {
    const registrations = await runTree((chart) => {
      const group = new Construct(chart, 'group');
      object(group, 'rest');
      const part = object(group, 'part');
      group.node.addDependency(part);
    });
    expect(dependencyNames(registrations, 'tree/group/rest')).toEqual(['tree/group/part']);
    expect(dependencyNames(registrations, 'tree/group/part')).toEqual([]);
  });

  it('of the tree as a whole hold for what waits for nothing else in it', async () => {
    const registrations = await run(() => {
      const before = new ConstructResources('before', { build: (chart) => object(chart, 'x', { namespace: 'apps' }) });
      new ConstructResources(
        'tree',
        {
          build: (chart) => {
            const first = object(chart, 'first', { namespace: 'apps' });
            object(chart, 'second', { namespace: 'apps' }).addDependency(first);
          },
        },
        { dependsOn: [before] },
      );
    });
    expect(dependencyNames(registrations, 'tree/first')).toContain('before/x');
    expect(dependencyNames(registrations, 'tree/second')).toEqual(['tree/first']);
  });

  it('take further resources', async () => {
    const registrations = await run(() => {
      const other = new ConstructResources('other', { build: (chart) => object(chart, 'x', { namespace: 'apps' }) });
      const x = other.resources.get('x');
      new ConstructResources('tree', {
        namespace: 'apps',
        build: (chart) => {
          const group = new Construct(chart, 'group');
          object(group, 'a');
          resourceOptions(group, { dependsOn: x === undefined ? [] : [x] });
        },
      });
    });
    expect(dependencyNames(registrations, 'tree/group/a')).toEqual(['other/x']);
  });

  it('in a circle are refused with the way around', async () => {
    await expect(
      runTree((chart) => {
        const [a, b, c] = [object(chart, 'a'), object(chart, 'b'), object(chart, 'c')];
        a.addDependency(b);
        b.addDependency(c);
        c.addDependency(a);
      }),
    ).rejects.toThrow('dependencies run in a circle: a -> b -> c -> a');
  });

  it('on what contains the construct, or on what is nowhere, are refused', async () => {
    await expect(
      runTree((chart) => {
        const group = new Construct(chart, 'group');
        object(group, 'a').addDependency(group);
        object(chart, 'b').addDependency(object(new Chart(new App(), 'foreign'), 'f'));
      }),
    ).rejects.toThrow(
      /group\/a: it depends on group, which contains it[^]*b: it depends on foreign\/f, which is not in this tree/,
    );
  });

  it('order any graph without circles, and name the same whatever the order of the constructs', async () => {
    const graphs = fc.integer({ min: 1, max: 12 }).chain((size) =>
      fc.record({
        size: fc.constant(size),
        order: fc.shuffledSubarray([...Array(size).keys()], { minLength: size }),
        edges: fc.array(fc.tuple(fc.nat(size - 1), fc.nat(size - 1)), { maxLength: 30 }),
      }),
    );
    await fc.assert(
      fc.asyncProperty(graphs, async ({ size, order, edges }) => {
        const downward = edges.filter(([from, to]) => from > to);
        const registrations = await runTree((chart) => {
          const objects = new Map(order.map((i) => [i, object(chart, `o${i}`)]));
          for (const [from, to] of downward) objects.get(from)!.addDependency(objects.get(to)!);
        });
        const direct = new Map(
          [...Array(size).keys()].map((i) => [i, numbers(dependencyNames(registrations, `tree/o${i}`))]),
        );
        const wanted = closure(size, downward);
        const actual = closure(
          size,
          [...direct].flatMap(([from, all]) => all.map((to): [number, number] => [from, to])),
        );
        expect(actual).toEqual(wanted);
        // None of the direct ones follows from the others.
        for (const [from, all] of direct) {
          for (const to of all) expect(all.some((other) => other !== to && wanted.has(`${other}>${to}`))).toBe(false);
          expect(named(registrations, `tree/o${from}`).parent).toMatch(/::tree$/);
        }
      }),
      { numRuns: 60 },
    );
  });
});

function numbers(names: readonly string[]): readonly number[] {
  return names.map((name) => Number(name.slice('tree/o'.length)));
}

function closure(size: number, edges: readonly (readonly [number, number])[]): ReadonlySet<string> {
  const reach = new Set(edges.map(([from, to]) => `${from}>${to}`));
  for (let via = 0; via < size; via++) {
    for (let from = 0; from < size; from++) {
      for (let to = 0; to < size; to++) {
        if (reach.has(`${from}>${via}`) && reach.has(`${via}>${to}`)) reach.add(`${from}>${to}`);
      }
    }
  }
  return reach;
}
