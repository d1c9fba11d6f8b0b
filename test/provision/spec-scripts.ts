import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { Cluster } from '../../constructs/kinds/cluster';
import { clusterSpec } from '../../constructs/kinds/cluster-spec';
import { crdManifest } from '../../constructs/crd';
import type { Json, JsonObject } from '../../constructs/kube/kube-object';
import type { StructuralSchema } from '../../constructs/kind/schema/structural-schema';
import { clusterInput } from '../../provision/cluster/cluster-input';
import { clusterProblems } from '../../provision/cluster-problems';
import { clusterTasks } from '../../provision/plan';
import { specArbitrary } from '../support/spec-arbitrary';
import { temporaryFolder } from '../support/temporary-folder';
import { inputOf, type ServerDistribution } from './inputs';
import { shells } from './shells';

const SHELL_CHARACTERS = ["'", '"', '`', '$(id)', ';', '|', '&', '\n', ' ', '\\', '<', '>', '*', '!', '#'];

interface CrdVersion {
  readonly schema: { readonly openAPIV3Schema: { readonly properties: { readonly spec: StructuralSchema } } };
}
const manifest = crdManifest(Cluster) as unknown as { readonly spec: { readonly versions: readonly [CrdVersion] } };
const specSchema = manifest.spec.versions[0].schema.openAPIV3Schema.properties.spec;
const schemaOf = (field: string): StructuralSchema =>
  (specSchema.properties as Readonly<Record<string, StructuralSchema>>)[field] ?? {};

/** Paths of the strings in a value. */
function strings(value: Json, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value === 'string') return [path];
  if (Array.isArray(value)) return value.flatMap((item, i) => strings(item, [...path, i]));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => strings(item, [...path, key]));
}

function replaced(value: Json, path: readonly (string | number)[], change: (text: string) => string): Json {
  const [key, ...rest] = path;
  if (key === undefined) return change(value as string);
  if (Array.isArray(value)) return value.map((item, i) => (i === key ? replaced(item, rest, change) : item));
  return { ...(value as JsonObject), [key]: replaced((value as JsonObject)[key]!, rest, change) };
}

const VERSIONS = { rke2: 'v1.34.1+rke2r1', k3s: 'v1.34.1+k3s1' };

/** Specs with options of every kind; those that the schema's rules refuse are left out. */
const specs = (distribution: ServerDistribution): fc.Arbitrary<JsonObject> =>
  fc
    .record({ nodes: specArbitrary(schemaOf('nodes')), options: specArbitrary(schemaOf(distribution)) })
    .map(({ nodes, options }) => ({
      distribution,
      version: VERSIONS[distribution],
      nodes: (nodes as JsonObject[]).map((node, i) => ({
        ...node,
        address: `10.0.0.${i + 1}`,
        roles: i === 0 ? ['controlplane', 'etcd', 'worker'] : (node.roles as Json),
      })),
      [distribution]: options,
      sshKeySecretRef: { namespace: 'a', name: 'ssh' },
    }))
    .filter((spec) => clusterSpec.safeParse(spec).success);

/** Tests the plans of any specs of a distribution, and the scripts in them. */
export function testScripts(distribution: ServerDistribution): void {
  const given = specs(distribution);

  test('no string of a spec bears a character that a shell reads', () => {
    let tried = 0;
    fc.assert(
      fc.property(given, fc.nat(), fc.constantFrom(...SHELL_CHARACTERS), (spec, where, character) => {
        const paths = strings(spec);
        const path = paths[where % paths.length]!;
        const schedule = path[path.length - 1] === 'schedule' && [' ', '*'].includes(character);
        if (schedule) return;
        tried += 1;
        const worse = replaced(spec, path, (text) => `${text.slice(0, 1)}${character}${text.slice(1)}`);
        expect({ path, character, admitted: clusterSpec.safeParse(worse).success }).toEqual({
          path,
          character,
          admitted: false,
        });
      }),
      { numRuns: 150 },
    );
    expect(tried).toBeGreaterThan(100);
  });

  test('every script is one that shells read', () => {
    const folder = temporaryFolder('scripts-');
    const files: string[] = [];
    const written = new Set<string>();
    let count = 0;
    fc.assert(
      fc.property(given, (spec) => {
        for (const { id, apply, remove } of clusterTasks(clusterInput('prod', clusterSpec.parse(spec)))) {
          for (const text of [apply, remove ?? '']) {
            count += 1;
            if (written.has(text)) continue;
            written.add(text);
            const file = `${folder}/${files.length}-${id.replaceAll(/[^a-z0-9.]/g, '_')}.sh`;
            writeFileSync(file, text);
            files.push(file);
          }
        }
      }),
      { numRuns: 25 },
    );
    expect(count).toBeGreaterThan(100);
    for (const [, [program = '', ...args]] of shells) {
      // `sh -n` reads one file; this asks for all in one process, and names those that cannot be read.
      const all = 'shell=$1; shift; for file in "$@"; do $shell -n "$file" || echo "$file"; done';
      const { stdout, stderr } = spawnSync('sh', ['-c', all, 'sh', [program, ...args].join(' '), ...files], {
        encoding: 'utf8',
      });
      expect([stdout, stderr]).toEqual(['', '']);
    }
  });

  test('plans are the same each time, and problems never throw', () => {
    fc.assert(
      fc.property(given, (spec) => {
        const input = clusterInput('prod', clusterSpec.parse(spec));
        expect(clusterTasks(input)).toEqual(clusterTasks(input));
        expect(clusterProblems(input, inputOf({ distribution }))).toEqual(expect.any(Array));
      }),
      { numRuns: 25 },
    );
  });
}
