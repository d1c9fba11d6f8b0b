import { readdirSync } from 'node:fs';
import { join, posix, relative, sep } from 'node:path';
import ts from 'typescript';

export const root = join(__dirname, '..', '..');

/** The TypeScript files below a folder of the project, relative to its root, with slashes. */
export function sourcesOf(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.[cm]?ts$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((file) => !/(^|\/)(node_modules|dist)\//.test(file))
    .sort();
}

/** Every module that a source names: imports, exports, `import()`, `require()`, `import type`, and types by `import('x')`. */
export function importsOf(source: ts.SourceFile): readonly string[] {
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

/** The files that a file imports, types too. */
export function localImports(file: string, text: string, files: ReadonlySet<string>): readonly string[] {
  return importsOf(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)).flatMap((name) => {
    if (!name.startsWith('.')) return [];
    const target = posix.join(posix.dirname(file), name);
    return [target, `${target}.ts`, `${target}/index.ts`].filter((candidate) => files.has(candidate));
  });
}

/** A way from a file back to itself, if there is one. */
export function cycleIn(edges: ReadonlyMap<string, readonly string[]>): readonly string[] | undefined {
  const done = new Set<string>();
  const search = (file: string, path: readonly string[]): readonly string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const next of edges.get(file) ?? []) {
      const found = search(next, [...path, file]);
      if (found !== undefined) return found;
    }
    done.add(file);
    return undefined;
  };
  for (const file of edges.keys()) {
    const found = search(file, []);
    if (found !== undefined) return found;
  }
  return undefined;
}
