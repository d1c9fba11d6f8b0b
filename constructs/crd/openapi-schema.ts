import type { ZodType } from 'zod';
import type { AnyKind } from '../kind/kind';
import { cel, serverOnlyRules, type CelRule } from '../kind/schema/cel';
import type { StructuralSchema } from '../kind/schema/structural-schema';
import type { KindVersion } from '../kind/versions';
import { describeNameRule, maxNameLength, namePattern, type NameRule } from '../kube/names';

/** The schema of a kind's objects as a whole, in its own version or another one. */
export function openApiV3Schema(kind: AnyKind, version?: KindVersion): StructuralSchema {
  const spec = version?.schema ?? kind.schema.spec;
  const rules = [...(kind.names === undefined ? [] : [metadataNameRule(kind.names)]), ...(version ?? kind).rules];
  return {
    description: version?.description ?? kind.description,
    type: 'object',
    ...(isSpecOptional(version ?? kind) ? {} : { required: ['spec'] }),
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
 * The rule for an object's name. It is on the root, the only node whose rules can read `metadata.name`.
 * Source: KEP-2876, "Metadata".
 */
function metadataNameRule(names: NameRule): CelRule {
  const pattern = JSON.stringify(namePattern(names.format));
  return cel(
    `size(self.metadata.name) <= ${maxNameLength(names)} && self.metadata.name.matches(${pattern})`,
    `metadata.name must be ${describeNameRule(names)}`,
  );
}

/**
 * Whether an object without a spec is always as valid as one with an empty spec: the server evaluates no rule
 * on an absent spec.
 */
function isSpecOptional({ spec }: { readonly spec: unknown }): boolean {
  const schema = spec as ZodType;
  return schema.safeParse({}).success && serverOnlyRules(schema).length === 0;
}

/**
 * A kind's own status with the common fields added. Where a kind describes `conditions` itself, its description and the fields of its
 * items are added to the common ones.
 */
function statusSchema(own: StructuralSchema): StructuralSchema {
  const properties = (own.properties ?? {}) as Readonly<Record<string, StructuralSchema>>;
  return {
    description: 'The current state, as the operator last saw it.',
    ...own,
    properties: { ...properties, ...common, conditions: conditionsWith(properties.conditions) },
  };
}

function conditionsWith(own: StructuralSchema | undefined): StructuralSchema {
  const items = own?.items as StructuralSchema | undefined;
  const added = items?.properties as Readonly<Record<string, StructuralSchema>> | undefined;
  const properties = { ...added, ...(condition.properties as Readonly<Record<string, StructuralSchema>>) };
  const description = [common.conditions?.description, own?.description].filter((text) => typeof text === 'string');
  return { ...common.conditions, description: description.join(' ').trim(), items: { ...condition, properties } };
}

const MAX_CONDITIONS = 32;

/** One condition, with the constraints of `metav1.Condition`. Source: KEP-1623. */
const condition: StructuralSchema = {
  description: 'One aspect of the current state.',
  type: 'object',
  required: ['lastTransitionTime', 'message', 'reason', 'status', 'type'],
  properties: {
    type: {
      description: 'Type of the condition, in CamelCase or as foo.example.com/CamelCase.',
      type: 'string',
      pattern:
        '^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$',
      maxLength: 316,
    },
    status: { description: 'True, False or Unknown.', type: 'string', enum: ['True', 'False', 'Unknown'] },
    observedGeneration: {
      description: 'The metadata.generation that the condition was computed from.',
      type: 'integer',
      format: 'int64',
      minimum: 0,
    },
    lastTransitionTime: { description: 'When the status last changed.', type: 'string', format: 'date-time' },
    reason: {
      description: 'Reason of the last change, in CamelCase, for machines.',
      type: 'string',
      pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
      minLength: 1,
      maxLength: 1024,
    },
    message: { description: 'Details of the last change, for people.', type: 'string', maxLength: 32768 },
  },
};

/** What every kind's status has. */
const common: Readonly<Record<string, StructuralSchema>> = {
  conditions: {
    description: 'What is known of the object. Ready, Reconciling and Stalled follow kstatus.',
    type: 'array',
    maxItems: MAX_CONDITIONS,
    items: condition,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
  },
  observedGeneration: {
    description: 'The metadata.generation that this status was computed from.',
    type: 'integer',
    format: 'int64',
    minimum: 0,
  },
};
