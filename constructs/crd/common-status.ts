import type { StructuralSchema } from '../core/structural-schema';

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

/**
 * A kind's own status with the common fields added. Where a kind describes `conditions` itself, its description and the fields of its
 * items are added to the common ones.
 */
export function statusSchema(own: StructuralSchema): StructuralSchema {
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
