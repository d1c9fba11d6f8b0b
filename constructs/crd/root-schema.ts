import type { ZodType } from 'zod';
import { cel } from '../core/cel';
import type { CelRule } from '../core/cel';
import { rulesWithoutCheck } from '../core/fields-rules';
import type { AnyKind } from '../core/kind';
import { describeNameRule, maxNameLength, namePattern } from '../core/names';
import type { NameRule } from '../core/names';
import type { StructuralSchema } from '../core/structural-schema';
import type { KindVersion } from '../core/versions-definition';
import { statusSchema } from './common-status';

/** The schema of a kind's objects as a whole, in its own version or another one. */
export function rootSchema(kind: AnyKind, version?: KindVersion): StructuralSchema {
  const spec = version?.schema ?? kind.schema.spec;
  const rules = [...(kind.names === undefined ? [] : [nameRule(kind.names)]), ...(version ?? kind).rules];
  return {
    description: version?.description ?? kind.description,
    type: 'object',
    ...(mayLackSpec(version ?? kind) ? {} : { required: ['spec'] }),
    properties: {
      apiVersion: { description: 'Group and version of the kind.', type: 'string' },
      kind: { description: 'Name of the kind.', type: 'string' },
      metadata: { type: 'object' },
      spec: { description: 'The state that is wanted.', ...spec },
      status: statusSchema(kind.schema.status),
    },
    ...(rules.length === 0 ? {} : { 'x-kubernetes-validations': rules.map((rule) => ({ ...rule })) }),
  };
}

/**
 * The rule that an object's name keeps. It stands on the root, the only place whose rules see `metadata.name`.
 * Source: KEP-2876, "Metadata".
 */
export function nameRule(names: NameRule): CelRule {
  const pattern = JSON.stringify(namePattern(names.format));
  return cel(
    `size(self.metadata.name) <= ${maxNameLength(names)} && self.metadata.name.matches(${pattern})`,
    `metadata.name must be ${describeNameRule(names)}`,
  );
}

/** Whether an object without a spec is sure to be as valid as one with an empty spec: the server applies no rule to a spec that is absent. */
function mayLackSpec({ spec }: { readonly spec: unknown }): boolean {
  const schema = spec as ZodType;
  return schema.safeParse({}).success && rulesWithoutCheck(schema).length === 0;
}
