import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const root = join(__dirname, '..', '..');

/** Every source file of a folder, parsed. */
export function sourcesOf(folder: string): readonly ts.SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((file) => ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true));
}

/** The string literals that a property or a variable of this name is given, on whichever branch. */
export function literalsGivenTo(name: string, sources: readonly ts.SourceFile[]): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (node: ts.Node): void => {
    if ((ts.isPropertyAssignment(node) || ts.isVariableDeclaration(node)) && node.name.getText() === name) {
      for (const text of literalsOf(node.initializer)) found.add(text);
    }
    ts.forEachChild(node, visit);
  };
  sources.forEach(visit);
  return found;
}

/** The metrics that are made with their name written out. */
export function metricsMade(sources: readonly ts.SourceFile[]): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isNewExpression(node) && /^(Counter|Gauge|Histogram|Summary)$/.test(node.expression.getText())) {
      const [options] = node.arguments ?? [];
      if (options !== undefined && ts.isObjectLiteralExpression(options)) {
        for (const property of options.properties) {
          if (!ts.isPropertyAssignment(property) || property.name.getText() !== 'name') continue;
          for (const text of literalsOf(property.initializer)) found.add(text);
        }
      }
    }
    ts.forEachChild(node, visit);
  };
  sources.forEach(visit);
  return found;
}

/** The messages that are logged at these levels. A message with a variable part counts up to that part. */
export function messagesLogged(levels: readonly string[], sources: readonly ts.SourceFile[]): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && isLogging(node.expression, levels)) {
      const message = node.arguments[1] ?? node.arguments[0];
      for (const text of literalsOf(message && resolved(message))) found.add(text);
    }
    ts.forEachChild(node, visit);
  };
  sources.forEach(visit);
  return found;
}

function isLogging(called: ts.Expression, levels: readonly string[]): boolean {
  if (!ts.isPropertyAccessExpression(called) || !levels.includes(called.name.text)) return false;
  return /(^|\.)(logger|log)$/.test(called.expression.getText());
}

/** A variable of the same function stands for what it is given. */
function resolved(expression: ts.Expression): ts.Expression {
  if (!ts.isIdentifier(expression)) return expression;
  let given: ts.Expression | undefined;
  const visit = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && node.name.getText() === expression.text) given ??= node.initializer;
    ts.forEachChild(node, visit);
  };
  for (let scope: ts.Node = expression; !ts.isSourceFile(scope); scope = scope.parent) {
    if (ts.isBlock(scope)) visit(scope);
  }
  return given ?? expression;
}

function literalsOf(expression: ts.Expression | undefined): readonly string[] {
  if (expression === undefined) return [];
  if (ts.isStringLiteralLike(expression)) return [expression.text];
  if (ts.isTemplateExpression(expression)) return [expression.head.text.replace(/:?\s*$/, '')];
  if (ts.isConditionalExpression(expression)) {
    return [...literalsOf(expression.whenTrue), ...literalsOf(expression.whenFalse)];
  }
  return [];
}
