import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { docs, kindPages, stalePages } from '../../cli/docs';
import { kindPage } from '../../cli/kind-page';
import { quantity, withRule } from '../../constructs/kind/fields';
import { defineKind } from '../../constructs/kind/kind';
import { Cluster, MicroServiceDeploy, SampleResource, allKinds } from '../../constructs/kinds';
import { owned } from '../../constructs/kube/resource-type';
import { cel } from '../../constructs/kind/schema/cel';
import { temporaryFolder } from '../support/temporary-folder';

const Lamp = defineKind({
  group: 'example.com',
  version: 'v1',
  kind: 'Lamp',
  plural: 'lamps',
  shortNames: ['lp'],
  scope: 'Namespaced',
  description: 'A lamp.',
  spec: z.object({
    color: z.enum(['red', 'a|b']).default('red').describe('Its colour'),
    bulbs: z
      .array(z.object({ watts: z.int32().min(1).max(100).describe('Power.') }))
      .max(3)
      .default([])
      .describe('The bulbs.'),
    labels: z.record(z.string(), z.string().max(5)).optional().describe('Labels.'),
    memory: quantity().optional().describe('Memory.'),
  }),
  status: z.object({ lit: z.boolean().optional().describe('Whether it is on.') }),
  rules: [cel('self.metadata.name != "dark"', 'a lamp is not dark')],
  owns: [owned.Deployment],
  formerlyOwned: [owned.Secret],
  extraRules: [
    { apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles'], verbs: ['bind'], resourceNames: ['edit'] },
    { apiGroups: [''], resources: ['nodes'], verbs: ['get'], scope: 'Cluster' },
  ],
  samples: [{ name: 'desk', spec: { color: 'red' } }],
  children: () => undefined,
});
const page = kindPage(Lamp);

test('has each field with its type, default and limits', () => {
  expect(page).toContain('| `spec.color` | string | `"red"` | Its colour. One of `"red"`, `"a\\|b"`. |');
  expect(page).toContain('| `spec.bulbs` | list of object | `[]` | The bulbs. At most 3 items. |');
  expect(page).toContain('| `spec.bulbs[].watts` | integer (int32) | **required** | Power. At least 1. At most 100. |');
  expect(page).toContain('| `spec.labels` | map of string |  | Labels. Each: At most 5 characters. |');
  expect(page).toContain('| `spec.memory` | quantity |  | Memory. |');
  expect(page).toContain('| `status.lit` | boolean |  | Whether it is on. |');
});

test('has rules, children, permissions and an example', () => {
  expect(page).toContain('### Rules\n\n- a lamp is not dark.');
  expect(page).toContain('| Deployment `apps/v1` | its own |');
  expect(page).toContain('No sample of Lamp renders apps/v1/Deployment, so');
  expect(page).toContain('| Secret `v1` | of earlier versions; deleted if it is there |');
  expect(page).toContain('| `apps` | `deployments` | get, list, watch, create, patch, delete |');
  expect(page).toContain('| `rbac.authorization.k8s.io` | `clusterroles` named `edit` | bind |');
  expect(page).toContain('| core | `nodes` | get, in the whole cluster |');
  expect(page).toContain(
    '```yaml\napiVersion: example.com/v1\nkind: Lamp\nmetadata:\n  name: desk\nspec:\n  color: red\n```',
  );
  expect(page).toContain('| For kubectl | `lamps`, `lamp`, `lp`; category `kindred` |');
});

test('has what is shared, seeded, and done outside Kubernetes', () => {
  expect(kindPage(MicroServiceDeploy)).toContain('| Service `v1` | shared with other objects of the kind (service) |');
  expect(kindPage(MicroServiceDeploy)).toContain(
    '- `spec.replicas` of a Deployment is set at its creation, and left alone while',
  );
  expect(kindPage(Cluster)).toMatch(/^## Outside Kubernetes\n\n\| Effect \| Runs \| Plan \| Condition \|/m);
  expect(kindPage(Cluster)).toContain('| when the object is deleted |');
  expect(kindPage(Cluster)).toMatch(
    /^\| `spec\.nodes\[\]\.roles` .* Each: One of `"controlplane"`, `"etcd"`, `"worker"`\. \|$/m,
  );
});

test('its tables are whole: each row has as many cells as its head', () => {
  for (const kind of [Lamp, MicroServiceDeploy, Cluster, SampleResource]) {
    for (const lines of kindPage(kind)
      .split('\n\n')
      .filter((block) => block.startsWith('|'))) {
      const cells = lines.split('\n').map((line) => line.replaceAll('\\|', '').split('|').length);
      expect(new Set(cells).size).toBe(1);
    }
  }
});

test('every reason that a page names is documented for operators too', () => {
  const operating = readFileSync(join(__dirname, '..', '..', 'docs', 'operating.md'), 'utf8');
  const [, section = ''] = kindPage(Cluster).split('### Reasons of Ready');
  const [table = ''] = section.split('\n## ', 1);
  const reasons = [...table.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, cell = '']) => cell.split(', '));
  expect(reasons.length).toBeGreaterThan(10);
  expect(reasons.filter((reason) => !operating.includes(reason))).toEqual([]);
});

describe('kindred docs', () => {
  const written: string[] = [];
  beforeEach(() => {
    written.length = 0;
    jest.spyOn(process.stdout, 'write').mockImplementation((text) => {
      written.push(String(text));
      return true;
    });
  });
  afterEach(() => jest.restoreAllMocks());

  test('writes what is missing or out of date, and nothing else', async () => {
    const out = join(temporaryFolder('kindred-docs-'), 'kinds');
    await docs({ command: 'docs', out, check: false, output: 'text' }, allKinds);
    expect(written).toHaveLength(readdirSync(out).length);
    const stale = join(out, 'foos.samplecontroller.k8s.io.md');
    writeFileSync(stale, '<!-- Generated by `kindred docs`. Do not edit. -->\nold');
    writeFileSync(join(out, 'notes.md'), 'mine');
    writeFileSync(join(out, 'gone.example.com.md'), '<!-- Generated by `kindred docs`. Do not edit. -->\n');
    await expect(docs({ command: 'docs', out, check: true, output: 'text' }, allKinds)).rejects.toThrow(
      /foos\.samplecontroller.*gone\.example.*out of date/,
    );
    expect(readFileSync(stale, 'utf8')).toMatch(/old$/);
    written.length = 0;
    await docs({ command: 'docs', out, check: false, output: 'text' }, allKinds);
    expect(written.map((line) => line.trim())).toEqual([
      stale,
      `${join(out, 'gone.example.com.md')} is removed: its kind is gone`,
    ]);
    expect(readFileSync(join(out, 'notes.md'), 'utf8')).toBe('mine');
    await docs({ command: 'docs', out, check: true, output: 'text' }, allKinds);
  });

  test('a folder that cannot be written is one error', async () => {
    const file = join(temporaryFolder('kindred-docs-'), 'file');
    writeFileSync(file, '');
    await expect(
      docs({ command: 'docs', out: join(file, 'kinds'), check: false, output: 'text' }, allKinds),
    ).rejects.toThrow(/^--out=\S+kinds: ENOTDIR.*Name a folder that you may write to\.$/);
    expect(existsSync(join(file, 'kinds'))).toBe(false);
  });

  test('a file of somebody else is not written over', async () => {
    const out = temporaryFolder('kindred-docs-');
    writeFileSync(join(out, 'README.md'), '# Mine\n');
    await expect(docs({ command: 'docs', out, check: false, output: 'text' }, allKinds)).rejects.toThrow(
      'its README.md was not written by kindred docs',
    );
    expect(readdirSync(out)).toEqual(['README.md']);
  });

  test('pages of a folder that does not exist are all stale', async () => {
    const out = join(temporaryFolder('kindred-docs-'), 'none');
    expect(await stalePages(out, kindPages([Lamp]))).toEqual(['README.md', 'lamps.example.com.md']);
    mkdirSync(out);
    expect(await stalePages(out, kindPages([Lamp]))).toHaveLength(2);
  });
});

test('a rule on a field stands with its path', () => {
  const size = withRule(
    z.int32().optional().describe('Size.'),
    cel('self % 2 == 0', 'must be even'),
    (value = 0) => value % 2 === 0,
  );
  const ruled = defineKind({ ...Lamp, spec: Lamp.spec.extend({ size }), children: () => undefined });
  expect(kindPage(ruled)).toContain('- `spec.size`: must be even.');
});
