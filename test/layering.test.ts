import { readFileSync, readdirSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join, posix, relative, sep } from 'node:path';
import ts from 'typescript';

/**
 * The import rules of the design, held for every file. What each layer may import of the project's own is written out; a path
 * that no layer claims is an error, so that a new folder needs a decision here.
 */
const root = join(__dirname, '..');

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
  ['operator', /^operator\//],
  ['provisioner', /^provisioner\//],
  ['stacks', /^stacks\//],
  ['local', /^local\//],
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
  operator: [...kind, 'kinds', 'package.json'],
  provisioner: [...kind, 'kinds', ...allProvision, 'operator'],
  // Operators run under the guard of local/, so that none outlives a test.
  testing: [...allConstructs, 'operator', 'local'],
  stacks: [...allConstructs, ...allProvision, 'package.json'],
  local: [...allConstructs, 'package.json'],
  bench: [...allConstructs, 'operator', 'local', 'testing'],
  examples: [],
  scripts: [...allConstructs, 'stacks'],
  cli: [...allConstructs, 'package.json', 'operator', 'local'],
};

/** The packages that pure layers may import, and the globals that would make them impure. */
const purePackages = ['cdk8s', 'cdk8s-plus-27', 'constructs', 'zod'];
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

/** Every module that a source names: imports, exports, `import()`, `require()`, `import type`, and types by `import('x')`. */
function importsOf(source: ts.SourceFile): readonly string[] {
  const found: string[] = [];
  const add = (node: ts.Node | undefined): void => {
    if (node === undefined) return;
    // A computed name cannot be checked, so it is named by its text, which no rule allows.
    found.push(ts.isStringLiteralLike(node) ? node.text : node.getText(source));
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) add(node.moduleSpecifier);
    else if (ts.isExternalModuleReference(node)) add(node.expression);
    else if (ts.isImportTypeNode(node))
      add(ts.isLiteralTypeNode(node.argument) ? node.argument.literal : node.argument);
    else if (ts.isCallExpression(node)) {
      const called = node.expression;
      const dynamic = called.kind === ts.SyntaxKind.ImportKeyword;
      if (dynamic || (ts.isIdentifier(called) && called.text === 'require')) add(node.arguments[0]);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
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
  if (pure) found.push(...impureGlobalsOf(source).map((name) => `${file}: names ${name}; constructs are pure`));
  return found;
}

function importViolations(file: string, layer: string, pure: boolean, name: string): string[] {
  if (name.startsWith('.')) {
    const target = posix.join(posix.dirname(file), name);
    const other = layerOf(target) ?? layerOf(`${target}/`) ?? layerOf(`${target}.ts`) ?? layerOf(`${target}/index.ts`);
    const allowed = other !== undefined && (other === layer || (mayImport[layer] ?? []).includes(other));
    return allowed ? [] : [`${file}: ${layer} must not import ${other ?? 'an unknown layer'} (${name})`];
  }
  if (!pure) return [];
  return purePackages.includes(name) ? [] : [`${file}: constructs must not import the package ${name}`];
}

function sourcesOf(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.[cm]?ts$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((file) => !/(^|\/)(node_modules|dist)\//.test(file))
    .sort();
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
    ['constructs/kinds/a.ts', "import { defineKind } from '../kind/kind'; import { CustomResource } from '../crd';"],
    ['constructs/platform/a.ts', "import { OperatorRole } from '../rbac';"],
    ['constructs/index.ts', "export { HelloApp } from './kinds'; export { Platform } from './platform';"],
    ['operator/client/a.ts', "import { HelloApp } from '../../constructs/kinds'; import fs from 'node:fs';"],
    ['stacks/bridge/a.ts', "import { Platform } from '../../constructs';"],
  ])('lets %s: %s', (file, text) => {
    expect(violations(file, text)).toEqual([]);
  });

  test('the packages of pure code are none of Node', () => {
    expect(purePackages.filter((name) => builtinModules.includes(name))).toEqual([]);
  });
});
