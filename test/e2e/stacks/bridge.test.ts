import type { ProviderArgs } from '@pulumi/kubernetes/provider';
import { ApiObject, type Chart } from 'cdk8s';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { ConstructResources, mutableContent, resourceOptions } from '../../../stacks/bridge';
import { get, minutes, missing, newEngine, object, pod, providerOf, run } from './bridge-plane';

// A tree of many groups, and the scopes of all kinds of a server, are in bridge-tree.slow.test.ts.

/** Objects in a namespace that has other writers, too. */
function shared(args: ProviderArgs, build: (chart: Chart) => void): () => void {
  return () => {
    const provider = providerOf({ ...mutableContent, ...args });
    new ConstructResources('shared', { namespace: 'shared', build }, { provider });
  };
}

test(
  'what exists already, and what another writer holds, is taken over only where the provider says so',
  async () => {
    await run(['create', 'namespace', 'shared']);
    await run(['create', 'configmap', '-n', 'shared', 'web', '--from-literal=note=theirs']);
    const live = ['configmap', '-n', 'shared', 'web'];
    const before = await get(live);
    const settings = (data: object) => (chart: Chart) => object(chart, 'v1', 'ConfigMap', 'web', { data }, false);
    const both = settings({ note: 'ours', more: 'ours' });
    const upsert = { upsertExistingObjects: true };
    const conflict = /conflict with "kubectl-create".*\.data\.note/s;
    const engine = newEngine();

    await expect(engine.up(shared({}, settings({ more: 'ours' })))).rejects.toThrow(/already exists/);
    await expect(engine.up(shared(upsert, both))).rejects.toThrow(conflict);
    expect(await get(live)).toEqual(before);
    expect(engine.state.made).toEqual([]);

    await engine.up(shared(upsert, settings({ more: 'ours' })));
    const { uid } = (before as KubeObject).metadata;
    expect(await get(live)).toMatchObject({ metadata: { uid }, data: { note: 'theirs', more: 'ours' } });
    // A later change meets the same other writer.
    await expect(engine.up(shared(upsert, both))).rejects.toThrow(conflict);
    expect(await get(live)).toMatchObject({ data: { note: 'theirs', more: 'ours' } });

    const forced = shared({ ...upsert, enablePatchForce: true }, both);
    await engine.up(forced);
    expect(await get(live)).toMatchObject({ metadata: { uid }, data: { note: 'ours', more: 'ours' } });
    expect((await engine.up(forced)).summary).toEqual([]);
    await engine.destroy();
    expect(await missing(live)).toBe('');
  },
  2 * minutes,
);

test(
  'a field with ignoreChanges is left to the writer who changed it; without, the two conflict',
  async () => {
    await run(['create', 'namespace', 'scaled']);
    const live = ['deployment', '-n', 'scaled', 'web'];
    const scaled = (replicas: number, tier: string, ignoreChanges: readonly string[]) =>
      shared({}, (chart) => {
        const labels = { tier };
        const spec = { replicas, selector: { matchLabels: { app: 'web' } }, template: pod };
        const metadata = { name: 'web', namespace: 'scaled', labels };
        const web = new ApiObject(chart, 'Deployment', { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec });
        resourceOptions(web, { ignoreChanges });
      });
    const engine = newEngine();
    await engine.up(scaled(1, 'one', ['spec.replicas']));
    await run(['scale', ...live, '--replicas=2']);
    expect((await engine.up(scaled(3, 'one', ['spec.replicas']))).summary).toEqual([]);
    expect((await engine.up(scaled(3, 'two', ['spec.replicas']))).summary).toEqual(['update shared/Deployment']);
    expect(await get(live)).toMatchObject({ metadata: { labels: { tier: 'two' } }, spec: { replicas: 2 } });
    await expect(engine.up(scaled(3, 'two', []))).rejects.toThrow(/conflict with "kubectl".*\.spec\.replicas/s);
    expect(await get(live)).toMatchObject({ spec: { replicas: 2 } });
    await engine.destroy();
    expect(await missing(live)).toBe('');
  },
  2 * minutes,
);
