import { ApiObject, type ApiObjectProps } from 'cdk8s';
import { z } from 'zod';
import { crdManifest } from '../../../constructs/crd';
import { mapOf } from '../../../constructs/kind/fields';
import { defineKind, type AnyKind } from '../../../constructs/kind/kind';
import { keyedLists } from '../../../constructs/kind/list-keys';
import { controllerReference, FIELD_MANAGER, withEnvelope } from '../../../constructs/kube/envelope';
import { isObject, type KubeObject } from '../../../constructs/kube/kube-object';
import { owned, typeKey, type ResourceType } from '../../../constructs/kube/resource-type';
import { childHash } from '../../../operator/apply/diff';
import { managedFieldsOf } from '../../../operator/informer/field-ownership';
import { kubeconfigClient } from '../../../testing';
import { useControlPlane } from '../../support/use-control-plane';
import { findCondition, isReadyNow } from '../../support/assertions';
import { InProcessOperator } from '../../../testing/in-process-operator';
import { TestEnv } from '../../support/test-env';

const plane = useControlPlane({ components: 'full' });
const env = new TestEnv(plane);
jest.setTimeout(180_000);

beforeAll(async () => {
  env.client = await kubeconfigClient(plane.adminKubeconfig);
}, 60_000);
afterAll(() => env.close());

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
  readonly allOf?: readonly Schema[];
  readonly $ref?: string;
  readonly required?: readonly string[];
  readonly default?: unknown;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[];
}

type Lists = ReturnType<typeof keyedLists>;
type Keys = Extract<Lists[string], { is: 'list' }>['keys'];

function line(path: string, keys: Keys): readonly string[] {
  if (keys === 'atomic') return [];
  if (keys === 'set') return [`${path}: set`];
  const all = Object.keys(keys).sort();
  return [`${path}: ${all.map((key) => (keys[key] === undefined ? key : `${key}=${keys[key]}`)).join(' ')}`];
}

/** Where the table has lists with keys, a line for each. */
function linesOfTable(fields: Lists, path: string, above: readonly Lists[]): readonly string[] {
  if (above.includes(fields)) return [`${path}: as above`];
  return Object.entries(fields).flatMap(([field, place]) => {
    const at = `${path}.${field}${place.is === 'list' ? '[]' : place.is === 'map' ? '{}' : ''}`;
    const inner = linesOfTable(place.fields, at, [...above, fields]);
    return place.is === 'list' ? [...line(at, place.keys), ...inner] : inner;
  });
}

/** The same of the API server's schemas. */
class ApiSchemas {
  private constructor(private readonly schemas: Readonly<Record<string, Schema>>) {}

  static async get(): Promise<ApiSchemas> {
    const { paths } = (await env.client.getPath('/openapi/v3')) as {
      paths: Record<string, { serverRelativeURL: string }>;
    };
    const groups = Object.entries(paths).filter(([path]) => /^apis?\/(.+\/)?v[0-9]/.test(path));
    const documents = await Promise.all(
      groups.map(([, { serverRelativeURL }]) => env.client.getPath(serverRelativeURL)),
    );
    const all = documents.map((document) => (document as { components: { schemas: object } }).components.schemas);
    return new ApiSchemas(Object.assign({}, ...all) as Readonly<Record<string, Schema>>);
  }

  /** The types that have metadata of their own, with the names of their schemas. */
  get types(): readonly (readonly [type: { apiVersion: string; kind: string }, schema: string])[] {
    return Object.entries(this.schemas).flatMap(([name, schema]) => {
      const { metadata } = schema.properties ?? {};
      const [id, ...others] = schema['x-kubernetes-group-version-kind'] ?? [];
      if (id === undefined || others.length > 0) return [];
      if (metadata === undefined || !this.nameOf(metadata)?.endsWith('ObjectMeta')) return [];
      const { group, version, kind } = id;
      return [[{ apiVersion: group === '' ? version : `${group}/${version}`, kind }, name] as const];
    });
  }

  private nameOf(schema: Schema): string | undefined {
    return (schema.$ref ?? schema.allOf?.[0]?.$ref)?.split('/').at(-1);
  }

  lines(name: string | undefined, path: string, above: readonly string[]): readonly string[] {
    if (name === undefined) return [];
    if (above.includes(name)) return [`${path}: as above`];
    return Object.entries(this.schemas[name]?.properties ?? {}).flatMap(([field, schema]) => {
      // Nobody renders the rest of a status.
      if (path.endsWith('.status') && field !== 'conditions') return [];
      const { items, additionalProperties: values } = schema;
      const inside = this.nameOf(items ?? values ?? schema);
      const at = `${path}.${field}${items === undefined ? (values === undefined ? '' : '{}') : '[]'}`;
      const own = items === undefined ? [] : line(at, this.keys(schema, inside));
      return [...own, ...this.lines(inside, at, [...above, name])];
    });
  }

  private keys(list: Schema, item: string | undefined): Keys {
    if (list['x-kubernetes-list-type'] === 'set') return 'set';
    if (list['x-kubernetes-list-type'] !== 'map') return 'atomic';
    const { properties = {}, required = [] } = this.schemas[item ?? ''] ?? {};
    // The schema has a default for required keys too, the empty value, which validation refuses.
    const fallback = (key: string): unknown => (required.includes(key) ? undefined : properties[key]?.default);
    const keys = list['x-kubernetes-list-map-keys'] ?? [];
    return Object.fromEntries(keys.map((key) => [key, fallback(key)])) as Keys;
  }
}

test('the table of lists with keys is that of the API server, for every type it has', async () => {
  const schemas = await ApiSchemas.get();
  const { types } = schemas;
  expect(types.length).toBeGreaterThan(50);
  const cycles = (lines: readonly string[]): readonly string[] => [...new Set(lines)].sort();
  const actual = types.map(([type]) => [typeKey(type), cycles(linesOfTable(keyedLists(type), '', []))]);
  const expected = types.map(([type, name]) => [typeKey(type), cycles(schemas.lines(name, '', []))]);
  expect(Object.fromEntries(actual)).toEqual(Object.fromEntries(expected));
});

async function install(kind: AnyKind): Promise<void> {
  const crds: ResourceType = {
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
    ...{ plural: 'customresourcedefinitions', scope: 'Cluster' },
  };
  const { metadata, spec } = crdManifest(kind) as unknown as { metadata: { name: string }; spec: object };
  await env.create(crds, metadata, { spec });
  await env.waitUntil(crds, metadata, 'established', (crd) => findCondition(crd, 'Established')?.status === 'True');
}

describe('a Secret whose kind gives texts', () => {
  const { Secret } = owned;
  const Vault = defineKind({
    ...{ group: 'e2e.example.com', version: 'v1', kind: 'Vault', plural: 'vaults', scope: 'Namespaced' },
    description: 'A Secret.',
    spec: z.object({ texts: mapOf(z.string(), { maxProperties: 10 }).default({}).describe('Texts.') }),
    owns: [Secret],
    children: (scope, { metadata: { name }, spec }) =>
      void new ApiObject(scope, 's', { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData: spec.texts }),
  });
  const fieldManager = FIELD_MANAGER;
  const owners = (live: KubeObject): readonly unknown[] =>
    managedFieldsOf(live).map(({ manager, operation, fieldsV1 }) => [
      ...[manager, operation, Object.keys(fieldsV1?.['f:data'] ?? {}).filter((key) => key !== '.')],
      ...(fieldsV1?.['f:stringData'] === undefined ? [] : ['stringData']),
    ]);

  /** As an earlier version wrote it: created, and applied after its first change. */
  async function writeEarlier(owner: KubeObject, texts: readonly Record<string, string>[]): Promise<void> {
    const { name, namespace, uid = '' } = owner.metadata;
    const ref = { name, ...(namespace === undefined ? {} : { namespace }) };
    for (const [i, stringData] of texts.entries()) {
      const rendered = { apiVersion: 'v1', kind: 'Secret', metadata: ref, stringData };
      const envelope = { ownerReferences: [controllerReference(owner)], ownerUid: uid, hash: childHash(rendered) };
      const body = withEnvelope(rendered, envelope);
      if (i === 0) await env.client.create(Secret, body, { fieldManager });
      else await env.client.apply(Secret, body, { fieldManager });
      const moved = [{ op: 'replace', path: '/metadata/managedFields/0/operation', value: 'Apply' }];
      if (i === 0) await env.client.patch(Secret, ref, moved, { type: 'json', fieldManager });
    }
  }

  test('is taken over from an earlier version, which applied stringData, and is written no more after that', async () => {
    await install(Vault);
    const namespace = await env.namespace('secrets');
    const upgraded = { namespace, name: 'upgraded' };
    const fresh = { namespace, name: 'fresh' };
    const last = { namespace, name: 'last' };
    const owner = await env.createOfKind(Vault, upgraded, { texts: { a: '1' } });
    await writeEarlier(owner, [{ a: '1', b: '2' }, { a: '1', b: '2' }, { a: '1' }]);
    const before = await env.get(Secret, upgraded);
    // Nobody owns data: what was applied no more has stayed.
    expect(before).toMatchObject({ data: { a: 'MQ==', b: 'Mg==' } });
    expect(owners(before)).toEqual([['kindred', 'Apply', [], 'stringData']]);

    const first = await InProcessOperator.start({ kinds: [Vault], kubeconfig: plane.adminKubeconfig });
    await env.waitUntil(Vault.type, upgraded, 'Ready', isReadyNow);
    const after = await env.get(Secret, upgraded);
    expect(after).toMatchObject({ data: { a: 'MQ==' } });
    expect(Object.keys(isObject(after['data']) ? after['data'] : {})).toEqual(['a']);
    expect(owners(after)).toEqual([['kindred', 'Apply', ['f:a']]]);
    await env.createOfKind(Vault, fresh, { texts: { a: '1', b: '2' } });
    await env.waitUntil(Vault.type, fresh, 'Ready', isReadyNow);
    await env.patch(Secret, fresh, { data: { a: 'eA==' } });
    await env.waitUntil(Secret, fresh, 'corrected', ({ data }) => isObject(data) && data['a'] === 'MQ==');
    await env.patchSpec(Vault, fresh, { texts: { a: '1', b: null } });
    await env.waitUntil(Secret, fresh, 'without b', ({ data }) => isObject(data) && !('b' in data));
    const versions = async (): Promise<readonly unknown[]> =>
      Promise.all([upgraded, fresh].map(async (ref) => (await env.get(Secret, ref)).metadata.resourceVersion));
    const stood = await versions();
    await first.stop();

    const second = await InProcessOperator.start({ kinds: [Vault], kubeconfig: plane.adminKubeconfig });
    await env.createOfKind(Vault, last, { texts: { a: '1' } });
    await env.waitUntil(Vault.type, last, 'Ready', isReadyNow);
    await second.stop();
    expect(await versions()).toEqual(stood);
    expect([...first.log.errors(), ...second.log.errors()]).toEqual([]);
  });
});

describe('a kind that renders what only the server sets', () => {
  const { ConfigMap, Deployment } = owned;
  const Mirror = defineKind({
    ...{ group: 'e2e.example.com', version: 'v1', kind: 'Mirror', plural: 'mirrors', scope: 'Namespaced' },
    description: 'What its spec says.',
    spec: z.object({ manifest: z.string().max(10000).describe('A manifest, as JSON.') }),
    owns: [ConfigMap, Deployment],
    children: (scope, { spec }) => void new ApiObject(scope, 'a', JSON.parse(spec.manifest) as ApiObjectProps),
  });
  const manifest = (type: ResourceType, name: string, more: object): { readonly manifest: string } => ({
    manifest: JSON.stringify({ apiVersion: type.apiVersion, kind: type.kind, metadata: { name }, ...more }),
  });

  test('says so, tries no more, and goes on when the spec is corrected; a status is ignored as the server does', async () => {
    await install(Mirror);
    const namespace = await env.namespace('mirrors');
    const refused = { namespace, name: 'refused' };
    const deployment = { namespace, name: 'deployment' };
    const operator = await InProcessOperator.start({ kinds: [Mirror], kubeconfig: plane.adminKubeconfig });
    await env.createOfKind(
      Mirror,
      refused,
      manifest(ConfigMap, 'refused', { metadata: { name: 'refused', resourceVersion: '5' } }),
    );
    const stalled = await env.waitUntil(Mirror.type, refused, 'Stalled', (object) =>
      isObject(findCondition(object, 'Stalled')),
    );
    expect(findCondition(stalled, 'Ready')).toMatchObject({ status: 'False', reason: 'ErrRender' });
    expect(findCondition(stalled, 'Ready')?.message).toContain('metadata.resourceVersion: only the API server sets it');
    await env.patchSpec(Mirror, refused, manifest(ConfigMap, 'refused', {}));
    await env.waitUntil(Mirror.type, refused, 'Ready', isReadyNow);

    const labels = { app: 'a' };
    const template = { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'a' }] } };
    const spec = { replicas: 1, selector: { matchLabels: labels }, template };
    await env.createOfKind(
      Mirror,
      deployment,
      manifest(Deployment, 'deployment', { spec, status: { replicas: 7, observedGeneration: 9 } }),
    );
    await env.waitUntil(Mirror.type, deployment, 'Ready', isReadyNow);
    const before = (await env.get(Deployment, deployment)).metadata;
    expect(before.generation).toBe(1);
    await operator.stop();

    const second = await InProcessOperator.start({ kinds: [Mirror], kubeconfig: plane.adminKubeconfig });
    const last = { namespace, name: 'last' };
    await env.createOfKind(Mirror, last, manifest(ConfigMap, 'last', {}));
    await env.waitUntil(Mirror.type, last, 'Ready', isReadyNow);
    await second.stop();
    expect((await env.get(Deployment, deployment)).metadata.resourceVersion).toBe(before.resourceVersion);
    expect([...operator.log.errors(), ...second.log.errors()]).toEqual([]);
  });
});
