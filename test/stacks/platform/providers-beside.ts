import * as pulumi from '@pulumi/pulumi';
import { HelloApp } from '../../../constructs';
import { KindComponent } from '../../../stacks/components';
import { ObservedCluster } from '../memory-cluster';
import type { ObservedClusterOptions } from '../memory-cluster';
import { platform } from './small-platform';

/** Names of the providers of a platform. */
export const OWN = ['kindred-cluster', 'kindred-identity', 'kindred-namespace', 'kindred-retained'];

/** A platform, below a component or not, and an object of it. */
export const program = (below: boolean) => (): object => {
  const parent = below ? new pulumi.ComponentResource('test:index:Team', 'team') : undefined;
  const own = platform({}, parent === undefined ? {} : { parent });
  const metadata = { name: 'web', namespace: 'shop' };
  new KindComponent('sample', { kind: HelloApp, metadata, spec: { image: 'nginx' } }, { parent: own });
  return {};
};

/** A state as an earlier version left it, whose providers stood beside the platform. */
export async function earlier(below: boolean): Promise<Required<Pick<ObservedClusterOptions, 'before'>>> {
  const { engine, cluster } = new ObservedCluster();
  await engine.up(program(below));
  const state = JSON.parse(
    engine
      .export()
      .replaceAll(
        /kindred:platform:PlatformComponent\$(?=pulumi:(?!index:Stash::kindred-owner-id)|kubernetes:core\/v1:Namespace::kindred-identity)/g,
        '',
      ),
  ) as {
    readonly resources: readonly { readonly urn: string; readonly parent?: string }[];
  };
  const platformState = state.resources.find(({ urn }) => urn.endsWith(':PlatformComponent::kindred'));
  const resources = state.resources.map((resource) =>
    OWN.some((name) => resource.urn.endsWith(`::${name}`)) ? { ...resource, parent: platformState?.parent } : resource,
  );
  expect(resources.filter(({ parent }) => parent === platformState?.urn).length).toBeGreaterThan(1);
  return { before: { state: JSON.stringify({ ...state, resources }), cluster } };
}

/** The title of a test of where the providers stood. */
export const UNCHANGED = 'as a child %s: up changes nothing, and a second one does neither';

/** Expects that a state of an earlier version changes nothing. */
export async function expectUnchanged(_: string, below: boolean): Promise<void> {
  const { engine, done } = new ObservedCluster(await earlier(below));
  expect(engine.state.resource('kindred-cluster').urn).not.toContain('PlatformComponent');
  expect((await engine.preview(program(below))).summary).toEqual([]);
  expect((await engine.up(program(below))).summary).toEqual([]);
  expect(engine.state.resource('kindred-cluster').urn).toContain('PlatformComponent$pulumi:providers:kubernetes::');
  expect((await engine.up(program(below))).summary).toEqual([]);
  expect(done).toEqual([]);
}
