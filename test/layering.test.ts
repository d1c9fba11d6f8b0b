import { readFileSync, readdirSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join, posix } from 'node:path';
import ts from 'typescript';
import { cycleIn, importsOf, localImports, root, sourcesOf } from './support/import-graph';

// The import rules of the design, checked for every file. What each layer may import of the project's own is written out; a path that no layer
// claims is an error, so that a new folder needs a decision here.

/** A layer for each of a package's folders, named by its path, and one for the files beside them. */
function within(name: string, folders: readonly string[]): readonly (readonly [name: string, path: RegExp])[] {
  const inside = folders.map((folder) => [`${name}/${folder}`, new RegExp(`^${name}/${folder}(/|$)`)] as const);
  return [...inside, [name, new RegExp(`^${name}/`)]];
}

/** Layers by path, the first match counts. */
const layers: readonly (readonly [name: string, path: RegExp])[] = [
  ['package.json', /^(operator\/)?package\.json$/],
  ['kube', /^constructs\/kube\//],
  ['schema', /^constructs\/kind\/schema\//],
  ['kind', /^constructs\/kind\//],
  ['crd', /^constructs\/crd\//],
  ['rbac', /^constructs\/rbac\//],
  ['operator construct', /^constructs\/operator\//],
  ['guardrails', /^constructs\/guardrails\//],
  ['kinds', /^constructs\/kinds\//],
  ['platform', /^constructs\/platform\//],
  ['constructs', /^constructs\/index\.ts$/],
  ['provision task', /^provision\/task\//],
  ['provision cluster', /^provision\/cluster\//],
  ['provision shell', /^provision\/shell\//],
  ['rke scripts', /^provision\/rke\/scripts\//],
  ['rke', /^provision\/rke\//],
  ['rke2-k3s', /^provision\/rke2-k3s\//],
  ['provision', /^provision\//],
  ['testing', /^testing(\/|$)/],
  // How kubeconfig files are found and merged, which operators and stacks share.
  ['kubeconfig files', /^operator\/client\/kubeconfig-files(\.ts)?$/],
  ['operator library', /^operator\/(index|run-plans)\.ts$/],
  ...within('operator', [
    ...[
      'apply',
      'client',
      'collections',
      'controller',
      'effects',
      'events',
      'informer',
      'leader',
      'metrics',
      'process',
    ],
    ...['reconcile', 'status', 'webhook', 'workqueue'],
  ]),
  ...within('provisioner', ['cluster', 'ssh', 'tasks']),
  ...within('stacks', ['bridge', 'config', 'remote-cluster']),
  ['local', /^local\//],
  ['image', /^image\//],
  // How the programs of the project and of its users are bundled.
  ['bundle', /^cli\/bundle\//],
  ['cli', /^cli\//],
  ['scripts', /^scripts\//],
  ['bench', /^bench\//],
  // Projects of their own, which import the package by name.
  ['examples', /^examples\//],
];

const kind = ['kube', 'schema', 'kind'];
const parts = ['crd', 'rbac', 'operator construct', 'guardrails'];
const allConstructs = [...kind, ...parts, 'kinds', 'platform', 'constructs'];
const provisionParts = ['provision task', 'provision cluster', 'provision shell', 'rke scripts', 'rke', 'rke2-k3s'];
const allProvision = [...provisionParts, 'provision'];
const operatorFoundation = ['operator/collections', 'operator/process', 'operator/client'];
/** Every folder of the operator but effects/. */
const operatorParts = [
  ...operatorFoundation,
  ...['informer', 'workqueue', 'metrics', 'events', 'leader', 'webhook'].map((name) => `operator/${name}`),
  ...['status', 'apply', 'reconcile', 'controller'].map((name) => `operator/${name}`),
];
/** What an implementation of effects uses of the operator. */
const operatorForEffects = ['operator/process', 'operator/client', 'operator/effects'];
const allOperator = [...operatorParts, 'operator/effects', 'operator', 'operator library'];
const stacksParts = ['stacks/bridge', 'stacks/remote-cluster', 'stacks/config'];
const allStacks = [...stacksParts, 'stacks'];

/** What each layer may import besides itself. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  kube: [],
  schema: ['kube'],
  kind: ['kube', 'schema'],
  ...Object.fromEntries(parts.map((part) => [part, kind])),
  kinds: [...kind, 'crd'],
  platform: [...kind, ...parts],
  'provision task': kind,
  'provision cluster': [...kind, 'kinds', 'provision task'],
  'provision shell': ['provision task'],
  'rke scripts': ['provision task', 'provision shell'],
  rke: [...kind, 'kinds', 'provision task', 'provision cluster', 'provision shell', 'rke scripts'],
  'rke2-k3s': [...kind, 'provision task', 'provision cluster', 'provision shell'],
  provision: [...kind, 'kinds', ...provisionParts],
  constructs: allConstructs,
  // The operator's folders, each above those that it imports. effects/ is given to an operator: nothing in operator/ imports it but the library.
  'operator/collections': [],
  'operator/process': ['kube', 'package.json'],
  'kubeconfig files': ['kube'],
  'operator/client': ['kube', 'kubeconfig files', 'operator/process'],
  'operator/informer': [...kind, 'operator/collections', 'operator/process', 'operator/client'],
  'operator/workqueue': ['operator/collections', 'operator/process'],
  'operator/metrics': ['operator/workqueue'],
  'operator/events': ['kube', 'operator/collections', 'operator/process', 'operator/client', 'operator/metrics'],
  'operator/leader': ['kube', 'operator/process', 'operator/client'],
  'operator/webhook': [...kind, 'operator/process', 'operator/metrics'],
  'operator/status': kind,
  'operator/apply': [...kind, ...operatorFoundation, 'operator/informer'],
  'operator/reconcile': [
    ...[...kind, ...operatorFoundation],
    ...['operator/informer', 'operator/leader', 'operator/apply', 'operator/status'],
  ],
  'operator/controller': [
    ...[...kind, ...operatorFoundation, 'operator/informer', 'operator/workqueue', 'operator/metrics'],
    ...['operator/leader', 'operator/apply', 'operator/reconcile'],
  ],
  'operator/effects': [
    ...[...kind, ...operatorFoundation],
    ...['operator/leader', 'operator/apply', 'operator/status', 'operator/reconcile'],
  ],
  operator: [...kind, 'kinds', 'package.json', ...operatorParts],
  'operator library': [...kind, ...allOperator],
  'provisioner/tasks': ['kube', 'kind', 'provision task'],
  'provisioner/ssh': ['provision task', 'provisioner/tasks'],
  'provisioner/cluster': [
    ...kind,
    'kinds',
    ...allProvision,
    ...operatorForEffects,
    'provisioner/tasks',
    'provisioner/ssh',
  ],
  provisioner: [...kind, 'kinds', 'platform', ...operatorForEffects, 'operator', 'provisioner/cluster'],
  // Operators run under the guard of local/, so that none outlives a test.
  testing: [...allConstructs, ...allOperator, 'local'],
  'stacks/bridge': [...kind, 'crd'],
  'stacks/remote-cluster': [...allConstructs, ...allProvision, 'stacks/bridge'],
  'stacks/config': ['package.json', ...allConstructs, ...allProvision, 'stacks/bridge', 'stacks/remote-cluster'],
  // Of the operator only how it reaches a cluster.
  stacks: [
    ...[...allConstructs, ...allProvision, 'kubeconfig files', 'operator/client', 'operator/process'],
    ...['package.json', ...stacksParts],
  ],
  local: [...allConstructs, 'package.json'],
  // Of local/ only how it tells errors, finds programs and locks files.
  image: ['local'],
  bundle: [],
  bench: [...allConstructs, ...allOperator, 'local', 'testing', 'bundle'],
  examples: [],
  scripts: [...allConstructs, ...allStacks, 'bundle', 'package.json'],
  cli: [...allConstructs, 'package.json', ...allOperator, 'local', 'image', 'bundle'],
};

/** The packages that pure layers may import, and the globals that would make them impure. */
const purePackages = ['cdk8s', 'cdk8s-plus-27', 'constructs', 'zod'];
/** The one module of Node.js that they may import, for `createHash` alone: a hash is a function of its input. */
const HASHES = 'node:crypto';
const impure = [
  ...[
    'process',
    'Date',
    'performance',
    'crypto',
    'globalThis',
    'global',
    'fetch',
    'console',
    '__dirname',
    '__filename',
  ],
  ...['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'eval', 'Function', 'Intl'],
];

function layerOf(file: string): string | undefined {
  return layers.find(([, path]) => path.test(file))?.[0];
}

/** The impure globals that a source names; a property or a declaration of that name is another thing. */
function impureGlobalsOf(source: ts.SourceFile): readonly string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAccessExpression(node)) {
      if (node.getText(source) === 'Math.random') found.push('Math.random');
      visit(node.expression);
      return;
    }
    if (ts.isIdentifier(node) && impure.includes(node.text) && !isName(node)) found.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function isName(node: ts.Identifier): boolean {
  const { parent } = node;
  const named = ts.isPropertyAssignment(parent) || ts.isPropertySignature(parent) || ts.isMethodDeclaration(parent);
  return (named || ts.isPropertyDeclaration(parent) || ts.isJsxAttribute(parent)) && parent.name === node;
}

/** What is wrong with a file, by the rules above. `file` is relative to the root, with slashes. */
function violations(file: string, text: string): readonly string[] {
  const layer = layerOf(file);
  if (layer === undefined) return [`${file}: no layer claims it; add its folder to this test`];
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const pure = [...allConstructs, ...allProvision].includes(layer);
  const found = importsOf(source).flatMap((name) => importViolations(file, layer, pure, name));
  // It renders with another clock, to find what is not pure, and sets the clock back.
  const setsTheClock = file === 'constructs/kind/purity.ts';
  if (pure && !setsTheClock) {
    const impureNames = [
      ...impureGlobalsOf(source),
      ...namesFrom(source, HASHES).filter((name) => name !== 'createHash'),
    ];
    found.push(...impureNames.map((name) => `${file}: names ${name}; constructs are pure`));
  }
  return found;
}

/** What a source imports from a module: names, or `*` for all of it. */
function namesFrom(source: ts.SourceFile, module: string): readonly string[] {
  return source.statements.flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) return [];
    const { moduleSpecifier } = statement;
    if (moduleSpecifier === undefined || !ts.isStringLiteral(moduleSpecifier) || moduleSpecifier.text !== module)
      return [];
    const bindings = ts.isImportDeclaration(statement) ? statement.importClause?.namedBindings : statement.exportClause;
    const named = bindings !== undefined && (ts.isNamedImports(bindings) || ts.isNamedExports(bindings));
    return named ? bindings.elements.map(({ name, propertyName }) => (propertyName ?? name).text) : ['*'];
  });
}

function importViolations(file: string, layer: string, pure: boolean, name: string): string[] {
  if (name.startsWith('.')) {
    const target = posix.join(posix.dirname(file), name);
    const other = layerOf(target) ?? layerOf(`${target}/`) ?? layerOf(`${target}.ts`) ?? layerOf(`${target}/index.ts`);
    const allowed = other !== undefined && (other === layer || (mayImport[layer] ?? []).includes(other));
    return allowed ? [] : [`${file}: ${layer} must not import ${other ?? 'an unknown layer'} (${name})`];
  }
  if (!pure || name === HASHES) return [];
  return purePackages.includes(name) ? [] : [`${file}: constructs must not import the package ${name}`];
}

/** Every folder but those that hold no code of ours, and the tests, which may import anything. */
const folders = readdirSync(root, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !/^(\..*|node_modules|dist|coverage|test)$/.test(entry.name))
  .map(({ name }) => name)
  .filter((name) => sourcesOf(name).length > 0);

test.each(folders)('%s/ keeps the import rules', (folder) => {
  const found = sourcesOf(folder).flatMap((file) => violations(file, readFileSync(join(root, file), 'utf8')));
  expect(found).toEqual([]);
});

test('no files import each other, in however many steps', () => {
  const files = new Set(folders.flatMap(sourcesOf));
  const edges = new Map(
    [...files].map((file) => [file, localImports(file, readFileSync(join(root, file), 'utf8'), files)] as const),
  );
  expect(cycleIn(edges)).toBeUndefined();
});

test('there is something to check', () => {
  expect(folders).toEqual(expect.arrayContaining(['constructs', 'provision', 'operator', 'local']));
  expect(sourcesOf('constructs').length).toBeGreaterThan(20);
});

describe('the checker itself', () => {
  test.each([
    ['constructs/kind/a.ts', "import { HelloApp } from '../kinds/hello-app';"],
    ['constructs/kind/a.ts', "import { HelloApp } from '../kinds';"],
    ['constructs/kube/a.ts', "import type { Kind } from '../kind/kind';"],
    ['constructs/kind/schema/a.ts', "import type { Kind } from '../kind';"],
    ['constructs/kinds/a.ts', "import { clusterTasks } from '../../provision';"],
    ['constructs/kind/a.ts', "export * from '..';"],
    ['constructs/rbac/a.ts', "import { x } from '../crd';"],
    ['constructs/platform/a.ts', "import { HelloApp } from '../kinds';"],
    ['constructs/kinds/a.ts', "import { Platform } from '../platform';"],
    ['constructs/kinds/a.ts', "import type { Client } from '../../operator/client/api-client';"],
    ['constructs/kind/a.ts', "import { readFileSync } from 'node:fs';"],
    ['constructs/kind/a.ts', "import fs from 'fs';"],
    ['constructs/kind/a.ts', "import { version } from '../../package.json';"],
    ['constructs/kind/a.ts', "import pino from 'pino';"],
    ['constructs/kind/a.ts', "import x from 'cdk8s/lib/app';"],
    ['constructs/kind/a.ts', "type T = import('node:fs').Stats;"],
    ['constructs/kind/a.ts', "const fs = require('fs');"],
    ['constructs/kind/a.ts', "import fs = require('fs');"],
    ['constructs/kind/a.ts', "export const load = () => import('node:os');"],
    ['constructs/kind/a.ts', 'export const load = (name: string) => import(name);'],
    ['constructs/kind/a.ts', "import { randomBytes } from 'node:crypto';"],
    ['constructs/kind/a.ts', "import { createHash, randomUUID as id } from 'node:crypto';"],
    ['constructs/kind/a.ts', "import * as all from 'node:crypto';"],
    ['constructs/kind/a.ts', "export * from 'node:crypto';"],
    ['constructs/kind/a.ts', "import { createHash } from 'crypto';"],
    ['constructs/kind/a.ts', 'export const home = process.env.HOME;'],
    ['constructs/kind/a.ts', 'export const now = new Date();'],
    ['constructs/kind/a.ts', 'export const now = () => Date.now();'],
    ['constructs/kind/a.ts', 'export const id = Math.random();'],
    ['constructs/kind/a.ts', 'export const env = { process };'],
    ['operator/client/a.ts', "import { OperatorRole } from '../../constructs/rbac';"],
    ['operator/client/a.ts', "import { Platform } from '../../constructs/platform';"],
    ['operator/client/a.ts', "import { HelloApp } from '../../constructs';"],
    ['operator/client/a.ts', "import { start } from '../../local';"],
    ['operator/client/a.ts', "import { Metrics } from '../../testing';"],
    ['operator/client/a.ts', "import { helper } from '../../test/helper';"],
    ['operator/client/a.ts', "import { HelloApp } from '../../constructs/kinds';"],
    ['operator/client/a.ts', "import type { Reflector } from '../informer/reflector';"],
    ['operator/workqueue/a.ts', "import { WorkQueueMetrics } from '../metrics/workqueue-metrics';"],
    ['operator/reconcile/a.ts', "import { EffectReconciler } from '../effects/effect-reconciler';"],
    ['operator/manager.ts', "import { effectEngine } from './effects/effect-engine';"],
    ['operator/kindred.ts', "import { provisionerEffects } from '../provisioner/provisioner';"],
    ['provisioner/tasks/a.ts', "import { SshTransport } from '../ssh/ssh-transport';"],
    ['provision/shell/a.ts', "import { rkeTasks } from '../rke';"],
    ['stacks/bridge/a.ts', "import { RemoteCluster } from '../remote-cluster';"],
    ['stacks/remote-cluster/a.ts', "import { readConfig } from '../config';"],
    ['stacks/a.ts', "import { main } from '../operator/main';"],
    ['stacks/bridge/a.ts', "export { main } from '../../operator/main';"],
    ['new-folder/a.ts', ''],
  ])('finds the fault in %s: %s', (file, text) => {
    expect(violations(file, text)).toHaveLength(1);
  });

  test.each([
    ['constructs/kind/a.ts', "import { z } from 'zod'; import { App } from 'cdk8s'; import { b } from './b';"],
    ['constructs/kind/a.ts', "// new Date() and process.env in words\nexport const a = { Date: 1, b: 'process.env' };"],
    ['constructs/kind/a.ts', 'export const a = (x: { process: number }) => x.process;'],
    ['provision/rke2-k3s/a.ts', "import { createHash } from 'node:crypto';"],
    ['constructs/kinds/a.ts', "import { defineKind } from '../kind/kind'; import { CustomResource } from '../crd';"],
    ['constructs/platform/a.ts', "import { OperatorRole } from '../rbac';"],
    ['constructs/index.ts', "export { HelloApp } from './kinds'; export { Platform } from './platform';"],
    ['operator/a.ts', "import { HelloApp } from '../constructs/kinds'; import fs from 'node:fs';"],
    ['operator/effects/a.ts', "import type { Effects } from '../reconcile/context';"],
    ['stacks/remote-cluster/a.ts', "import { Platform } from '../../constructs'; import { bridge } from '../bridge';"],
  ])('lets %s: %s', (file, text) => {
    expect(violations(file, text)).toEqual([]);
  });

  test('finds a cycle of files, through types and an index too', () => {
    const files = {
      'a.ts': "import { b } from './b';",
      'b/index.ts': "export * from './c';",
      'b/c.ts': "import type { A } from '../a';",
    };
    const names = new Set(Object.keys(files));
    const edges = new Map(
      Object.entries(files).map(([file, text]) => [file, localImports(file, text, names)] as const),
    );
    expect(cycleIn(edges)).toEqual(['a.ts', 'b/index.ts', 'b/c.ts', 'a.ts']);
    expect(cycleIn(new Map([...edges, ['b/c.ts', []]]))).toBeUndefined();
  });

  test('the packages of pure code are none of Node', () => {
    expect(purePackages.filter((name) => builtinModules.includes(name))).toEqual([]);
  });
});
