import { applyObjects, parseObjects, readObjects, resourceTypeOf } from '../../cli/objects';
import { RestMapper } from '../../operator/client/rest-mapper';
import type { KubeObject } from '../../constructs/kube/kube-object';
import type { ResourceType } from '../../constructs/kube/resource-type';
import type { ApiClient } from '../../operator/client/api-client';
import { ApiError } from '../../operator/client/errors';
import { child } from './objects';

describe('reading manifests', () => {
  test('documents, lists and JSON; empty documents are passed over', () => {
    const yaml = `# only a comment\n---\n{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}\n---
apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: B, metadata: {name: b}}\n`;
    const read = parseObjects(yaml, 'my.yaml').map(({ object, source }) => `${object.kind} ${source}`);
    expect(read).toEqual(['A my.yaml, document 1', 'B my.yaml, document 2, item 1']);
  });

  test.each([
    ['kind: A', 'my.yaml is no Kubernetes object: apiVersion, metadata.name must be given, as text.'],
    ['just text', 'my.yaml is no Kubernetes object: apiVersion, kind, metadata.name must be given, as text.'],
    ['apiVersion: v1\nkind: A\nmetadata: {name: 1}', 'my.yaml is no Kubernetes object: metadata.name must be'],
    ['a: [', 'my.yaml is not YAML: '],
    ['a: 1\n---\nb: {c', 'my.yaml, document 1 is no Kubernetes object'],
  ])('%j is refused, with where', (text, message) => {
    expect(() => parseObjects(text, 'my.yaml')).toThrow(message);
  });

  test('a file that is not there', async () => {
    await expect(readObjects(['/nowhere/my.yaml'])).rejects.toThrow(
      /^--file=\/nowhere\/my\.yaml cannot be read: ENOENT.*Check the path/,
    );
  });
});

const discovery = {
  '/api/v1': { resources: [{ name: 'configmaps', kind: 'ConfigMap', namespaced: true }] },
  '/apis/apps/v1': {
    resources: [
      { name: 'deployments/scale', kind: 'Scale', namespaced: true },
      { name: 'deployments', kind: 'Deployment', namespaced: true },
    ],
  },
  '/apis/rbac.authorization.k8s.io/v1': {
    resources: [{ name: 'clusterroles', kind: 'ClusterRole', namespaced: false }],
  },
};

function refusal(code: number, message: string): ApiError {
  return new ApiError({ code, reason: '', message, causes: [] }, 'PATCH /x');
}

class FakeClient implements Pick<ApiClient, 'getPath' | 'apply'> {
  readonly asked: string[] = [];
  readonly applied: KubeObject[] = [];

  getPath(path: string): Promise<unknown> {
    this.asked.push(path);
    const answer = (discovery as Record<string, unknown>)[path];
    return answer === undefined ? Promise.reject(refusal(404, 'not found')) : Promise.resolve(answer);
  }

  apply(_: ResourceType, body: KubeObject): Promise<KubeObject> {
    if (body.metadata.name === 'bad') return Promise.reject(refusal(422, 'spec.size: must be a number'));
    this.applied.push(body);
    return Promise.resolve(body);
  }
}

describe('resource types', () => {
  test('are asked for once, subresources aside', async () => {
    const client = new FakeClient();
    const types = new RestMapper(client);
    const deployment = { apiVersion: 'apps/v1', kind: 'Deployment' };
    expect(await resourceTypeOf(types, deployment)).toMatchObject({ plural: 'deployments', scope: 'Namespaced' });
    await resourceTypeOf(types, deployment);
    const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' };
    expect(await resourceTypeOf(types, role)).toMatchObject({ plural: 'clusterroles', scope: 'Cluster' });
    expect(client.asked).toEqual(['/apis/apps/v1', '/apis/rbac.authorization.k8s.io/v1']);
  });

  test.each([
    [{ apiVersion: 'apps/v1', kind: 'Scale' }, 'serves no Scale of apps/v1; it serves 1 other kinds of it'],
    [{ apiVersion: 'none.dev/v1', kind: 'A' }, 'serves no A of none.dev/v1; it serves nothing of none.dev/v1'],
  ])('%j is not served', async (object, message) => {
    await expect(resourceTypeOf(new RestMapper(new FakeClient()), object)).rejects.toThrow(message);
  });
});

describe('applying', () => {
  const apply = (client: FakeClient, objects: readonly KubeObject[]) =>
    applyObjects(
      objects.map((object, i) => ({ object, source: `my.yaml, document ${i + 1}` })),
      {
        client: client as unknown as ApiClient,
        types: new RestMapper(client),
        namespace: 'samples',
        signal: new AbortController().signal,
      },
    );
  const named = (name: string, namespace?: string) => child('ConfigMap', { metadata: { name, namespace } });

  test('an object that names no namespace gets one, if it lives in one', async () => {
    const client = new FakeClient();
    const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'r' } };
    await apply(client, [named('a'), named('b', 'own'), role]);
    expect(client.applied.map(({ metadata }) => metadata.namespace)).toEqual(['samples', 'own', undefined]);
  });

  test("all refusals are told at once, each with its place, its object and the server's words", async () => {
    const client = new FakeClient();
    await expect(apply(client, [named('bad'), child('Nothing'), named('good')])).rejects.toThrow(
      [
        'my.yaml, document 1: ConfigMap bad was refused by the API server: spec.size: must be a number',
        'my.yaml, document 2: Nothing team/x cannot be applied: the API server serves no Nothing of v1; it serves 1 other kinds of it. Check apiVersion and kind (kubectl api-resources lists them).',
        'Correct them and run this again.',
      ].join('\n'),
    );
    expect(client.applied).toHaveLength(1);
  });
});
