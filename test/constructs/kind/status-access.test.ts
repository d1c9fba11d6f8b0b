import { ApiObject } from 'cdk8s';
import * as kplus from 'cdk8s-plus-27';
import type { Construct } from 'constructs';
import { z } from 'zod';
import { defineKind, type AnyKind } from '../../../constructs/kind/kind';
import type { KindProps } from '../../../constructs/kind/kind-props';
import { renderBeforeStatus, renderDefaulted, withDefaults, type BeforeStatus } from '../../../constructs/kind/render';
import { owned } from '../../../constructs/kube/resource-type';

const spec = z.object({});
const status = z.object({
  image: z.string().optional().describe('Image.'),
  note: z.string().optional().describe('N.'),
});
type Children = KindProps<typeof spec, typeof status>['children'];

function kindOf(children: Children): AnyKind {
  return defineKind({
    ...{ group: 'x.y', version: 'v1', kind: 'Thing', plural: 'things', scope: 'Namespaced', description: 'A thing.' },
    ...{ spec, status, owns: [owned.ConfigMap, owned.Deployment], children },
    effects: [
      {
        ...{ name: 'make', phase: 'apply', plan: 'thing.make', timeoutSeconds: 60 },
        ...{ input: () => ({}), maxAttempts: () => 1 },
      },
    ],
  });
}

const object = { apiVersion: 'x.y/v1', kind: 'Thing', metadata: { name: 'a', namespace: 'team' }, spec: {} };

function configMap(scope: Construct, name: string): void {
  new ApiObject(scope, name, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
}

function before(
  children: Children,
  known?: object,
): { readonly names: readonly string[]; readonly read: BeforeStatus['read'] } {
  const kind = kindOf(children);
  const { children: rendered, read } = renderBeforeStatus(
    kind,
    withDefaults(kind, { ...object, ...(known && { status: known }) }),
    (path) => !Object.hasOwn(known ?? {}, path.slice('status.'.length)),
  );
  return { names: rendered.map(({ manifest }) => manifest.metadata.name), read };
}

describe('what is read of a status', () => {
  it.each<[string, Children, readonly string[]]>([
    ['nothing', (scope) => configMap(scope, 'a'), []],
    ['nothing of it', (_, { status: given }) => void given, ['status']],
    ['a field', (_, { status: given }) => void given?.image, ['status', 'status.image']],
    ['a field that is absent', (_, { status: given }) => void given?.note, ['status', 'status.note']],
    ['whether a field is there', (_, { status: given }) => void ('note' in (given ?? {})), ['status', 'status.note']],
    ['a copy', (_, { status: given }) => void { ...given }, ['status', 'status.*', 'status.image']],
    ['a text', (_, { status: given }) => void JSON.stringify(given), ['status', 'status.*', 'status.image']],
    ['a field of a copy of the object', (_, self) => void { ...self }.status?.image, ['status', 'status.image']],
  ])('is known: %s', (_, children, reads) => {
    const kind = kindOf(children);
    const seen = new Set<string>();
    const self = withDefaults(kind, { ...object, status: { image: 'i' } });
    renderDefaulted(kind, self, {}, (path) => seen.add(path));
    expect([...seen].sort()).toEqual([...reads].sort());
  });
});

describe('what is added before something is read that is not known', () => {
  it('is all when none is', () => {
    expect(before((scope) => configMap(scope, 'a'))).toEqual({ names: ['a'], read: undefined });
  });

  it('is what is added before it, with what is read', () => {
    const children: Children = (scope, { status: given }) => {
      configMap(scope, 'a');
      if (given === undefined) configMap(scope, 'b');
      configMap(scope, given?.image ?? 'c');
    };
    expect(before(children)).toEqual({ names: ['a'], read: 'status.image' });
  });

  it('is what is added after a field that is known', () => {
    const children: Children = (scope, { status: given }) => {
      configMap(scope, given?.image ?? 'b');
      configMap(scope, given?.note ?? 'c');
    };
    expect(before(children, { image: 'a' })).toEqual({ names: ['a'], read: 'status.note' });
  });

  it('does not have what is added after an error that was caught', () => {
    const children: Children = (scope, { status: given }) => {
      configMap(scope, 'a');
      try {
        configMap(scope, given?.image ?? 'b');
      } catch {
        configMap(scope, 'c');
      }
    };
    expect(before(children).names).toEqual(['a']);
  });

  it('is nothing while something is not complete', () => {
    const children: Children = (scope, { status: given }) => {
      const deployment = new kplus.Deployment(scope, 'web', { metadata: { name: 'web' } });
      deployment.addContainer({ image: given?.image ?? 'none' });
    };
    expect(before(children)).toEqual({ names: [], read: 'status.image' });
  });

  it('fails as rendering does where nothing was read', () => {
    const children: Children = (scope) => configMap(scope, 'Not a name');
    expect(() => before(children)).toThrow("Thing team/a: a ConfigMap's name is not valid");
    const throwing: Children = () => {
      throw new TypeError('no');
    };
    expect(() => before(throwing)).toThrow('Thing team/a: Thing.children: TypeError: no');
  });
});
