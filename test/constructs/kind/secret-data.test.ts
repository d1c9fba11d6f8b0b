import { ApiObject, JsonPatch } from 'cdk8s';
import * as kplus from 'cdk8s-plus-27';
import type { Construct } from 'constructs';
import { z } from 'zod';
import { defineKind, type AnyKind } from '../../../constructs/kind/kind';
import { renderChildren, renderShared } from '../../../constructs/kind/render';
import { RenderError } from '../../../constructs/kube/errors';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { owned } from '../../../constructs/kube/resource-type';

const self = { apiVersion: 'test.example.com/v1', kind: 'Thing', metadata: { name: 'x', namespace: 'team' }, spec: {} };
const base = {
  group: 'test.example.com',
  version: 'v1',
  kind: 'Thing',
  plural: 'things',
  scope: 'Namespaced',
} as const;

function kindOf(children: (scope: Construct) => void): AnyKind {
  return defineKind({ ...base, description: 'A thing.', spec: z.object({}), owns: [owned.Secret], children });
}

function secret(fields: object): (scope: Construct) => ApiObject {
  return (scope) => new ApiObject(scope, 's', { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, ...fields });
}

function render(children: (scope: Construct) => void): KubeObject {
  const [child] = renderChildren(kindOf(children), self);
  if (child === undefined) throw new Error('it renders nothing');
  return child.manifest;
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** What rendering says, which must not have the value. */
function problem(children: (scope: Construct) => void): string {
  try {
    render(children);
  } catch (error) {
    if (error instanceof RenderError && !error.message.includes('canary')) return error.message;
    throw error;
  }
  throw new Error('it renders');
}

describe('a rendered Secret', () => {
  it('has its stringData in data, as UTF-8 in base64', () => {
    const manifest = render(secret({ stringData: { text: 'a b', empty: '', umlaut: 'ü€\u{1f511}' }, type: 'Opaque' }));
    expect(manifest).toEqual({
      ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'team' }, type: 'Opaque' },
      data: { text: 'YSBi', empty: '', umlaut: 'w7zigqzwn5SR' },
    });
  });

  it('prefers stringData where a key is in both', () => {
    const manifest = render(secret({ data: { a: base64('old'), b: base64('b') }, stringData: { a: 'new' } }));
    expect(manifest).toMatchObject({ data: { a: base64('new'), b: base64('b') } });
    expect(manifest).not.toHaveProperty('stringData');
  });

  it('has the same bytes whichever field a key is given in, and whichever construct gives it', () => {
    const fields = { immutable: true, type: 'Opaque' };
    const texts = { z: 'last', a: 'first' };
    const encoded = { a: base64('first'), z: base64('last') };
    const props = { metadata: { name: 's' }, ...fields };
    const all = [
      secret({ ...fields, stringData: texts }),
      secret({ ...fields, data: encoded }),
      secret({ ...fields, data: { a: encoded.a }, stringData: { z: 'last' } }),
      (scope: Construct) => new kplus.k8s.KubeSecret(scope, 's', { ...props, stringData: texts }),
      (scope: Construct) => new kplus.k8s.KubeSecret(scope, 's', { ...props, data: encoded }),
      (scope: Construct) => new kplus.Secret(scope, 's', { ...props, stringData: texts }),
    ].map((children) => JSON.stringify(render(children)));
    expect(new Set(all).size).toBe(1);
  });

  it.each<[string, object, object]>([
    ['an empty stringData', { stringData: {} }, {}],
    ['empty fields', { stringData: {}, data: {} }, {}],
    ['an empty stringData beside data', { stringData: {}, data: { a: 'YQ==' } }, { data: { a: 'YQ==' } }],
    ['neither', {}, {}],
    ['base64 with line breaks', { data: { a: 'MTIz\nNDU2\r\n' } }, { data: { a: 'MTIzNDU2' } }],
    ['base64 with unused bits', { data: { a: 'MR==' } }, { data: { a: 'MQ==' } }],
  ])('is as the server stores it: %s', (_, fields, stored) => {
    expect(render(secret(fields))).toEqual({
      ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'team' } },
      ...stored,
    });
  });

  it('is so among shared children, and another type of that name is not', () => {
    const group = { name: 'one', owns: [owned.Secret], key: () => 'k', children: secret({ stringData: { a: 'b' } }) };
    const kind = defineKind({
      ...{
        ...base,
        description: 'A thing.',
        spec: z.object({}),
        shared: [{ ...group, children: (s) => void group.children(s) }],
      },
      owns: [{ apiVersion: 'example.com/v1', kind: 'Secret', plural: 'secrets', scope: 'Namespaced' }],
      children: (scope) => {
        const metadata = { name: 'other' };
        new ApiObject(scope, 'o', { apiVersion: 'example.com/v1', kind: 'Secret', metadata, stringData: { a: 1 } });
      },
    });
    const [shared] = kind.shared;
    if (shared === undefined) throw new Error('there is no group');
    expect(renderShared(kind, shared, 'k', 'team')[0]?.manifest).toMatchObject({ data: { a: base64('b') } });
    expect(renderChildren(kind, self)[0]?.manifest).toMatchObject({ stringData: { a: 1 } });
  });
});

describe('content of a Secret that the server would not take', () => {
  it('is refused in one error, which names every entry and no value', () => {
    const fields = {
      data: { plain: 'canary', 'url.safe': 'canary-_', number: 5, 'no.padding': 'YQ' },
      stringData: { flag: true, list: ['canary'], object: { canary: 1 } },
    };
    expect(problem(secret(fields))).toBe(
      [
        'Thing team/x: Secret "s" has content that the API server would not take:',
        '  data["no.padding"]: is not base64 with padding; encode it, or give the text itself in stringData',
        '  data.number: is a number; a Secret has texts only',
        '  data.plain: is not base64 with padding; encode it, or give the text itself in stringData',
        '  data["url.safe"]: is not base64 with padding; encode it, or give the text itself in stringData',
        '  stringData.flag: is a boolean; a Secret has texts only',
        '  stringData.list: is a list; a Secret has texts only',
        '  stringData.object: is an object; a Secret has texts only',
      ].join('\n'),
    );
  });

  it.each<[string, (scope: Construct) => void]>([
    ['of an ApiObject', secret({ stringData: { token: undefined } })],
    ['that is null', secret({ stringData: { token: null } })],
    [
      'of a KubeSecret',
      (scope) =>
        new kplus.k8s.KubeSecret(scope, 's', { metadata: { name: 's' }, stringData: { token: undefined as never } }),
    ],
    [
      'added to a Secret of cdk8s-plus',
      (scope) => new kplus.Secret(scope, 's', { metadata: { name: 's' } }).addStringData('token', undefined as never),
    ],
  ])('is an entry without a value, which cdk8s drops in silence: %s', (_, children) => {
    expect(problem(children)).toContain('\n  stringData.token: has no value; give it one, or leave the key out');
  });

  it('is a field that is no object, a JSON patch included', () => {
    expect(problem(secret({ data: 'canary' }))).toContain('\n  data: is a string; give an object of texts');
    const patched = (scope: Construct): void =>
      secret({})(scope).addJsonPatch(JsonPatch.add('/stringData', ['canary']), JsonPatch.add('/data', { a: null }));
    expect(problem(patched)).toContain('\n  data.a: is null; a Secret has texts only\n  stringData: is a list;');
  });
});

it('a seed of a Secret cannot name stringData, which is not rendered', () => {
  const seed = { of: owned.Secret, path: ['stringData', 'a'], writer: owned.ConfigMap };
  const define = (path: readonly string[]): AnyKind =>
    defineKind({
      ...{ ...base, description: 'A thing.', spec: z.object({}), children: () => undefined },
      ...{ owns: [owned.Secret, owned.ConfigMap], seeds: [{ ...seed, path }] },
    });
  expect(() => define(seed.path)).toThrow('seeds[0].path: a Secret is rendered with `data` alone; name `data`');
  expect(define(['data', 'a']).seeds).toHaveLength(1);
});
