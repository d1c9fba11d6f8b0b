import type { Problem } from './errors';
import { walk } from './structural-schema-walk';
import type { Schema } from './structural-schema-walk';
import { unknownFields } from './unknown-fields';

/** Defaults that the server would refuse because they hold fields that it prunes. Whether a default fits is zod's to say. */
export function defaultProblems(root: Schema, path: string): Problem[] {
  const problems: Problem[] = [];
  walk(root, path, ({ node, path: at }) => {
    if (node.default === undefined) return;
    for (const unknown of unknownFields(node, node.default, '')) {
      problems.push({
        path: at,
        message: `the default has the field "${unknown.path.slice(1)}", which ${unknown.message}`,
      });
    }
  });
  return problems;
}
