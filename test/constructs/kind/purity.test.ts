import { k8s } from 'cdk8s-plus-27';
import { z } from 'zod';
import { defineKind, type AnyKind } from '../../../constructs/kind/kind';
import { ImpureError } from '../../../constructs/kind/purity';
import { renderChildren } from '../../../constructs/kind/render';
import { owned } from '../../../constructs/kube/resource-type';

/** A kind that renders a ConfigMap, and another of a name of its own, with what a function says. */
function kindOf(data: () => string, more: () => readonly string[] = () => []): AnyKind {
  return defineKind({
    group: 'apps.example.com',
    version: 'v1',
    kind: 'Site',
    plural: 'sites',
    scope: 'Namespaced',
    description: 'A site.',
    spec: z.object({}),
    owns: [owned.ConfigMap],
    children(scope, { metadata }) {
      new k8s.KubeConfigMap(scope, 'map', { metadata: { name: metadata.name }, data: { a: data() } });
      for (const name of more()) new k8s.KubeConfigMap(scope, name, { metadata: { name } });
    },
  });
}

const object = {
  apiVersion: 'apps.example.com/v1',
  kind: 'Site',
  metadata: { name: 'web', namespace: 'shop' },
  spec: {},
};
let counter = 0;

describe('children that depend on more than the object', () => {
  it.each<[what: string, data: () => string]>([
    ['the time', () => String(Date.now())],
    ['the date', () => new Date().toISOString().slice(0, 10)],
    ['the hour', () => String(new Date().getHours())],
    ['the year', () => String(new Date().getFullYear())],
    ['the date as a text', () => Date()],
    ['the time since the process began', () => String(Math.floor(performance.now() / 3_600_000))],
    ['a random number', () => String(Math.random())],
    ['a UUID', () => crypto.randomUUID()],
    ['a counter', () => String((counter += 1))],
  ])('are refused: %s', (_, data) => {
    const render = (): unknown => renderChildren(kindOf(data), object);
    expect(render).toThrow(ImpureError);
    expect(render).toThrow(
      /^Site shop\/web: Site\.children is not pure: two renderings of the same object differ at ConfigMap "web", data\.a\. Render from the object alone/,
    );
  });

  it('are refused without their values, which may be secret', () => {
    let i = 0;
    const render = (): unknown =>
      renderChildren(
        kindOf(() => `secret-${String(i++)}`),
        object,
      );
    expect(render).toThrow(ImpureError);
    expect(render).not.toThrow(/secret-/);
  });

  it('are refused when there is another number of them, or they have other names', () => {
    const alternating = (first: readonly string[], second: readonly string[]): AnyKind => {
      let i = 0;
      return kindOf(
        () => '',
        () => (i++ % 2 === 0 ? first : second),
      );
    };
    expect(() => renderChildren(alternating(['x'], []), object)).toThrow('ConfigMap "x", which only one of them has');
    expect(() => renderChildren(alternating([], ['x']), object)).toThrow('ConfigMap "x", which only one of them has');
    expect(() => renderChildren(alternating(['x'], ['y']), object)).toThrow(
      'ConfigMap "x", which only one of them has',
    );
  });
});

describe('children that depend on the object alone', () => {
  it('may use dates that are given', () => {
    const year = (): string => {
      const date = new Date('2026-01-02T03:04:05Z');
      return [
        date.toISOString(),
        String(date instanceof Date),
        String(Date.UTC(2026, 1)),
        String(Date.parse('2026')),
      ].join();
    };
    expect(renderChildren(kindOf(year), object)[0]?.manifest).toMatchObject({
      data: { a: `2026-01-02T03:04:05.000Z,true,${String(Date.UTC(2026, 1))},${String(Date.parse('2026'))}` },
    });
  });

  it('are rendered with the real clock, which is the real one afterwards', () => {
    const { Date: before } = globalThis;
    expect(() =>
      renderChildren(
        kindOf(() => String(Date.now())),
        object,
      ),
    ).toThrow(ImpureError);
    expect(globalThis.Date).toBe(before);
    expect(Object.hasOwn(performance, 'now')).toBe(false);
    let calls = 0;
    const throwing = kindOf(() => {
      if (++calls === 2) throw new Error('the second time');
      return '';
    });
    expect(() => renderChildren(throwing, object)).toThrow('the second time');
    expect(globalThis.Date).toBe(before);
  });
});
