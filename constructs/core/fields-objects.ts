import { z } from 'zod';
import { withMeta } from './fields-rules';

const PRESERVE = { 'x-kubernetes-preserve-unknown-fields': true } as const;

/** An object that keeps the fields its schema does not name; elsewhere the server prunes them. */
export function preserveUnknownFields<S extends z.core.$ZodShape>(
  schema: z.ZodObject<S>,
): z.ZodObject<S, z.core.$loose> {
  return withMeta(schema.loose(), { ...schema.meta(), ...PRESERVE });
}

/** A value of any JSON type, kept as it is. */
export function anyValue(): z.ZodUnknown {
  return withMeta(z.unknown(), PRESERVE);
}

type EmbeddedResource = z.ZodObject<
  {
    apiVersion: z.ZodString;
    kind: z.ZodString;
    metadata: z.ZodOptional<z.ZodObject<z.core.$ZodLooseShape, z.core.$loose>>;
  },
  z.core.$loose
>;

/** A whole Kubernetes object of any kind. The server checks its apiVersion, kind and metadata. Source: KEP-95. */
export function embeddedResource(): EmbeddedResource {
  const schema = z.looseObject({
    apiVersion: z.string().min(1).describe('Group and version of the object, for example apps/v1.'),
    kind: z.string().min(1).describe('Kind of the object, for example Deployment.'),
    metadata: z.looseObject({}).optional().describe('Metadata of the object.'),
  });
  return withMeta(schema, { 'x-kubernetes-embedded-resource': true, ...PRESERVE });
}
