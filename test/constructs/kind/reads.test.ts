import { z } from 'zod';
import type { Effect } from '../../../constructs/kind/effects';
import { KindDefinitionError } from '../../../constructs/kube/errors';
import { defineKind } from '../../../constructs/kind/kind';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import { resolveReads, type Read } from '../../../constructs/kind/reads';

const Node: ResourceType = { apiVersion: 'v1', kind: 'Node', plural: 'nodes', scope: 'Cluster' };
const secret = (namespace: string, name: string) => ({ namespace, name });

function read(name: string, type: ResourceType, ...refs: { namespace?: string; name: string }[]): Read<unknown> {
  return { name, type, refs: () => refs };
}

describe('requestedReads', () => {
  it('names each object once, in order, without further fields', () => {
    const reads = [
      read('b', owned.Secret, { ...secret('n', 'x'), ...{ key: 'k' } }, secret('m', 'x')),
      read('a', owned.Secret, secret('n', 'x'), secret('n', 'y')),
      read('node', Node, { name: 'x' }),
      read('map', owned.ConfigMap, secret('n', 'x')),
    ];
    expect(resolveReads(reads, {})).toEqual([
      { name: 'b', type: owned.Secret, ref: secret('n', 'x') },
      { name: 'b', type: owned.Secret, ref: secret('m', 'x') },
      { name: 'a', type: owned.Secret, ref: secret('n', 'y') },
      { name: 'node', type: Node, ref: { name: 'x' } },
      { name: 'map', type: owned.ConfigMap, ref: secret('n', 'x') },
    ]);
  });

  it('refuses a reference whose namespace does not go with its type', () => {
    expect(() => resolveReads([read('a', owned.Secret, { name: 'x' })], {})).toThrow('which has no namespace');
    expect(() => resolveReads([read('a', Node, secret('n', 'x'))], {})).toThrow('which has a namespace');
  });
});

describe('defineKind', () => {
  const look: Effect<unknown> = {
    ...{ name: 'look', phase: 'apply', plan: 'test.look', timeoutSeconds: 60 },
    input: () => ({}),
    maxAttempts: () => 1,
  };
  const define = (reads: readonly Read<unknown>[], effects: readonly Effect<unknown>[] = [look]) =>
    defineKind({
      group: 'test.kindred.dev',
      version: 'v1',
      kind: 'Reader',
      plural: 'readers',
      scope: 'Namespaced',
      description: 'Reads.',
      spec: z.object({}),
      owns: [],
      reads,
      effects,
      children: () => undefined,
    });

  it('keeps the reads, frozen', () => {
    const reads = [read('a', owned.Secret)];
    expect(define(reads).reads).toEqual(reads);
    expect(Object.isFrozen(define(reads).reads)).toBe(true);
  });

  it('refuses them in a kind without effects, for which rights would be granted that nothing uses', () => {
    expect(() => define([read('a', owned.Secret)], [])).toThrow('reads: only effects see what is read');
    expect(define([], []).reads).toEqual([]);
  });

  it('refuses names that stand twice or are no labels', () => {
    expect(() => define([read('a', owned.Secret), read('a', Node)])).toThrow(KindDefinitionError);
    expect(() => define([read('a', owned.Secret), read('a', Node)])).toThrow('reads[1].name: "a" stands twice');
    expect(() => define([read('SSH key', owned.Secret)])).toThrow('reads[0].name: "SSH key" must be');
  });
});
