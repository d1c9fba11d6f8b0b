import { keyedLists } from '../../../constructs/kind/list-keys';
import { typeKey } from '../../../constructs/kube/resource-type';
import { adminClient } from '../../../testing';
import { useControlPlane } from '../../../testing/control-plane';
import { TestEnv } from '../../support/test-env';

const plane = useControlPlane({ components: 'full' });
const env = new TestEnv(plane);
jest.setTimeout(180_000);

beforeAll(async () => {
  env.client = await adminClient(plane.adminKubeconfig);
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
