import { z } from 'zod';
import { cel } from '../../../constructs/kind/schema/cel';
import {
  anyValue,
  atomicList,
  dns1035Label,
  dnsLabel,
  dnsSubdomain,
  embeddedResource,
  immutable,
  intOrString,
  listMap,
  listSet,
  mapOf,
  preserveUnknownFields,
  quantity,
  stringMap,
  withRule,
} from '../../../constructs/kind/fields';
import { defineKind } from '../../../constructs/kind/kind';

const port = z.object({
  name: dnsLabel().describe('Name of the port.'),
  protocol: z.enum(['TCP', 'UDP']).default('TCP').describe('Protocol of the port.'),
  number: z.int().min(1).max(65535).optional().describe('Number of the port.'),
});

const range = withRule(
  z.object({
    low: z.int().describe('Lowest.'),
    high: z.int().describe('Highest.'),
  }),
  cel('self.low <= self.high', 'low must not exceed high', { fieldPath: '.low' }),
  ({ low, high }) => low <= high,
);

const steadyItem = z.object({
  key: z.string().min(1).max(20).describe('Tells the items apart.'),
  value: immutable(z.string().max(20)).describe('Cannot be changed.'),
});

/** A kind with every field helper and every zod type that can be expressed. */
export const KitchenSink = defineKind({
  group: 'test.kindred.dev',
  version: 'v1',
  kind: 'KitchenSink',
  plural: 'kitchensinks',
  scope: 'Namespaced',
  description: 'One field of each sort.',
  names: { format: 'dns-label', maxLength: 20 },
  columns: [{ name: 'Label', type: 'string', jsonPath: '.spec.label' }],
  rules: [
    cel('!has(self.spec.locked) || self.metadata.name != "unlocked"', 'an object named unlocked has no spec.locked'),
  ],
  spec: withRule(
    z.object({
      label: dnsLabel().describe('A label.'),
      dns1035: dns1035Label().optional().describe('A label that starts with a letter.'),
      subdomain: dnsSubdomain().optional().describe('A subdomain.'),
      locked: immutable(z.string().max(10)).optional().describe('Cannot be changed.'),
      amount: quantity().optional().describe('A quantity.'),
      target: intOrString({ maxLength: 10 }).optional().describe('A number or a name.'),
      count: z.int().gt(0).lt(10).default(3).describe('An integer.'),
      whole: z.int().optional().describe('An integer that a double holds.'),
      count32: z.int32().optional().describe('An integer of 32 bits.'),
      ratio: z.number().gt(0).lte(1).optional().describe('A number.'),
      step: z.number().multipleOf(5).optional().describe('A multiple of five.'),
      flag: z.boolean().default(false).describe('A flag.'),
      mode: z.enum(['on', 'off']).optional().describe('A choice.'),
      fixed: z.literal('yes').optional().describe('A constant.'),
      level: z.literal([1, 2, 3]).optional().describe('One of three numbers.'),
      text: z.string().min(2).max(5).optional().describe('A text.'),
      exact: z.string().length(4).optional().describe('A text of four characters.'),
      both: z.string().max(20).startsWith('a').endsWith('z').optional().describe('From a to z.'),
      either: z
        .union([
          z.literal('auto'),
          z
            .string()
            .max(8)
            .regex(/^[0-9]+$/),
        ])
        .optional()
        .describe('A number or auto.'),
      template: z.templateLiteral(['v', z.int()]).optional().describe('A version.'),
      email: z.email().max(100).optional().describe('An address.'),
      id: z.uuid().optional().describe('A UUID.'),
      ip: z.ipv4().optional().describe('An address.'),
      when: z.iso.datetime().optional().describe('A time.'),
      day: z.iso.date().optional().describe('A day.'),
      nullable: z.string().max(5).nullable().optional().describe('A text or null.'),
      range: range.optional().describe('A range.'),
      ranges: atomicList(range, { maxItems: 3 }).optional().describe('Ranges.'),
      ports: listMap(port, ['name', 'protocol'], { maxItems: 4 }).optional().describe('Ports.'),
      steady: listMap(steadyItem, ['key'], { maxItems: 4 }).optional().describe('Items with a field that stays.'),
      tags: listSet(z.string().max(10), { maxItems: 3, minItems: 1 }).optional().describe('Tags.'),
      words: z.array(z.string().max(5)).max(3).optional().describe('Words.'),
      labels: stringMap({ maxProperties: 2, maxLength: 5 }).optional().describe('Labels.'),
      limits: mapOf(quantity(), { maxProperties: 3 }).optional().describe('Limits.'),
      nested: z
        .object({
          size: z.int().default(1).describe('A size.'),
          name: z.string().max(9).optional().describe('A name.'),
        })
        .default({ size: 2 })
        .describe('An object with defaults.'),
      prefaulted: z
        .object({ size: z.int().default(1).describe('A size.') })
        .prefault({})
        .describe('An object with defaults of its own.'),
      open: preserveUnknownFields(z.object({ known: z.int().optional().describe('A known field.') }))
        .optional()
        .describe('An object with any fields.'),
      anything: anyValue().optional().describe('Any value.'),
      resource: embeddedResource().optional().describe('A Kubernetes object.'),
    }),
    cel('!(has(self.text) && has(self.exact))', 'give at most one of text and exact', { fieldPath: '.exact' }),
    ({ text, exact }) => text === undefined || exact === undefined,
  ),
  status: z.object({ seen: z.int32().min(0).optional().describe('How much was seen.') }),
  scale: { specReplicasPath: '.spec.count', statusReplicasPath: '.status.seen' },
  owns: [],
  children() {
    // None: it is about the schema.
  },
});
