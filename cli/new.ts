import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Option, type Command } from '@commander-js/extra-typings';
import { nameProblem } from '../constructs/kube/names';
import { messageOf, undefinedIfMissing } from '../local/assets/errors';
import { devDependencies, peerDependencies, version } from '../package.json';
import { SHARED_PACKAGES } from './bundle/packages-outside';
import { CliError } from './errors';
import { flagError, type TakeArguments } from './flags';

/** The parsed arguments of `kindred new`. */
export interface NewArguments extends ProjectChoices {
  readonly command: 'new';
}

/** What a new project is like. */
interface ProjectChoices {
  /** Of the folder, the package and the kind: a DNS label that begins with a letter. */
  readonly name: string;
  /** API group of the kind. */
  readonly group: string;
  readonly modules: 'esm' | 'commonjs';
  /** What package.json asks for as `kindred`: a version, a file, an address. */
  readonly kindred: string;
}

/** Adds `kindred new` to the command line. */
export function addNew(program: Command, take: TakeArguments<NewArguments>): void {
  program
    .command('new')
    .description('make the folder of a project: one kind that runs, and a test')
    .argument('<name>', 'of the folder and of the kind, such as website')
    .option('--group <group>', 'API group of the kind, a domain that is yours', 'example.com')
    .addOption(
      new Option('--modules <type>', 'esm: ES modules; or commonjs')
        .choices(['esm', 'commonjs'])
        .default('esm' as const),
    )
    .option('--kindred <spec>', 'what npm installs as kindred: a version, or file:FILE.tgz', `^${version}`)
    .addHelpText(
      'after',
      `
All of it is yours: no file has to be made anew or migrated later. The name of the kind is that of the folder with
capital letters, and its objects are found under the plural: web-shop is the kind WebShop, kubectl get webshops.`,
    )
    .action((name, { group, modules, kindred }) => take({ command: 'new', ...choices(name, group), modules, kindred }));
}

/** The longest name, which leaves room for the suffixes of what is named after it. */
const MAX_NAME = 42;

function choices(name: string, group: string): Pick<ProjectChoices, 'name' | 'group'> {
  const problem = nameProblem(name, { format: 'dns-1035-label', maxLength: MAX_NAME });
  if (problem !== undefined) {
    throw flagError(
      'name',
      name,
      `${problem}. Give one such as website or web-shop: it names a folder, a package and a kind`,
    );
  }
  const wrong = nameProblem(group, { format: 'dns-subdomain' });
  if (wrong !== undefined || !group.includes('.'))
    throw flagError('group', group, 'give a domain that is yours, such as sites.example.com');
  return { name, group };
}

/**
 * `kindred new`: makes the folder of a project, in the working directory.
 *
 * @throws CliError when the folder has files already, or cannot be written to
 */
export async function newProject(args: NewArguments): Promise<void> {
  const folder = path.resolve(args.name);
  try {
    const entries = (await readdir(folder).catch(undefinedIfMissing)) ?? [];
    if (entries.length > 0)
      throw new CliError(`${folder} is there already, and has files in it. Give another name, or remove them.`);
    await mkdir(folder, { recursive: true });
    for (const [name, text] of projectFiles(args)) await writeFile(path.join(folder, name), text);
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(`${folder} cannot be made: ${messageOf(error)}`, { cause: error });
  }
  process.stdout.write(`${args.name}/ is there. Next:

  cd ${args.name} && npm install
  npx kindred dev      # a control plane on this machine, with the kind, its operator and a sample
  npm test
`);
}

/**
 * The files of a new project by name.
 *
 * @testonly
 */
export function projectFiles(chosen: ProjectChoices): ReadonlyMap<string, string> {
  const { name } = chosen;
  return new Map([
    ['package.json', packageText(chosen)],
    ['tsconfig.json', TSCONFIG],
    [`${name}.ts`, kindText(chosen)],
    [`${name}.test.ts`, testText(chosen)],
    ['.gitignore', 'node_modules/\ndist/\n'],
    ['README.md', readmeText(chosen)],
  ]);
}

/** `web-shop` is `WebShop`. */
function kindName(name: string): string {
  return name.replaceAll(/(?:^|-)(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** The English plural of a kind's name, in lower case: `webshops`, `proxies`, `caches`. */
function pluralOf(kind: string): string {
  const lower = kind.toLowerCase();
  if (/[^aeiou]y$/.test(lower)) return `${lower.slice(0, -1)}ies`;
  return `${lower}${/(s|x|z|ch|sh)$/.test(lower) ? 'es' : 's'}`;
}

function packageText({ name, modules, kindred }: ProjectChoices): string {
  const shared = SHARED_PACKAGES.map((one): [string, string] => [one, peerDependencies[one]]);
  return json({
    name,
    version: '0.1.0',
    private: true,
    type: modules === 'esm' ? 'module' : 'commonjs',
    kindred: { kinds: `${name}.ts` },
    scripts: { start: 'kindred dev', test: 'tsc && tsx --test *.test.ts', typecheck: 'tsc' },
    dependencies: Object.fromEntries([...shared, ['kindred', kindred] as const].sort()),
    devDependencies: {
      '@types/node': `^${devDependencies['@types/node']}`,
      tsx: `^${devDependencies.tsx}`,
      typescript: `^${devDependencies.typescript}`,
    },
  });
}

const TSCONFIG = json({
  compilerOptions: { target: 'ES2023', module: 'NodeNext', strict: true, noEmit: true, skipLibCheck: true },
});

function json(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function kindText({ name, group }: ProjectChoices): string {
  const kind = kindName(name);
  return `import { k8s } from 'cdk8s-plus-27';
import { defineKind, owned, type KindObject } from 'kindred/constructs';
import { z } from 'zod';

export const ${kind} = defineKind({
  group: '${group}',
  version: 'v1',
  kind: '${kind}',
  plural: '${pluralOf(kind)}',
  scope: 'Namespaced',
  description: 'Runs pods of an image.',
  // What users may write. It becomes the CRD's schema, so that the API server refuses everything else.
  spec: z.object({
    image: z.string().min(1).max(500).default('nginx:1.27').describe('Image of the pods.'),
    replicas: z.int32().min(0).max(20).default(1).describe('Number of pods.'),
  }),
  status: z.object({
    readyReplicas: z.int32().min(0).optional().describe('Number of pods that are ready.'),
  }),
  columns: [{ name: 'Pods', type: 'integer', jsonPath: '.status.readyReplicas' }],
  // The object's name becomes the value of a label.
  names: { format: 'dns-label' },
  // What children are made of. The operator watches these types, and may do no more than that takes.
  owns: [owned.Deployment],
  samples: [{ name: 'hello', spec: { replicas: 2 } }],
  // What there should be for an object: a pure function, without a clock, randomness or I/O.
  children(scope, { metadata: { name }, spec: { image, replicas } }) {
    const labels = { app: name };
    new k8s.KubeDeployment(scope, 'deployment', {
      metadata: { name, labels },
      spec: {
        replicas,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'main', image }] } },
      },
    });
  },
  // The kind's own status fields, from the children as they are on the server. Ready and the other conditions are made for you.
  observe: ({ children }) => ({ readyReplicas: children.one(owned.Deployment)?.status?.readyReplicas ?? 0 }),
});
export type ${kind} = KindObject<typeof ${kind}>;
`;
}

function testText({ name, modules }: ProjectChoices): string {
  const kind = kindName(name);
  return `import { deepEqual, throws } from 'node:assert/strict';
import { test } from 'node:test';
import { renderChildren, validateObject } from 'kindred/constructs';
import { ${kind} } from './${name}${modules === 'esm' ? '.js' : ''}';

// The operator applies the very children that a test sees, so that most tests need no cluster.
function object(spec: object) {
  return { apiVersion: ${kind}.apiVersion, kind: '${kind}', metadata: { name: 'hello', namespace: 'default' }, spec };
}

test('its child is a Deployment', () => {
  const children = renderChildren(${kind}, object({ image: 'web:1' })).map(({ manifest }) => manifest);
  deepEqual(
    children.map((child) => [child.kind, child.metadata.name, child.spec]),
    [
      [
        'Deployment',
        'hello',
        {
          replicas: 1,
          selector: { matchLabels: { app: 'hello' } },
          template: { metadata: { labels: { app: 'hello' } }, spec: { containers: [{ name: 'main', image: 'web:1' }] } },
        },
      ],
    ],
  );
});

test('too many pods are refused', () => {
  throws(() => validateObject(${kind}, object({ replicas: 21 })), /spec.replicas/);
});
`;
}

function readmeText({ name }: ProjectChoices): string {
  const kind = kindName(name);
  return `# ${kind}

\`${name}.ts\` defines the kind: its schema, and the children that its operator makes of each object.

    npx kindred dev                  # a control plane on this machine, with the kind, its operator and a sample
    npm test
    npx kindred render FILE.yaml       # the children of an object, without a cluster
    npx kindred docs                   # a reference of the kind, as Markdown
    npx kindred build --push=IMAGE     # the operator's image
    npx kindred synth --image=IMAGE    # CRD, permissions and operator as YAML; --format=helm: as a chart
    npx kindred run --context=CONTEXT  # the operator on this machine, against a cluster
`;
}
