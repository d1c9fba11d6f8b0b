import { z } from 'zod';
import { withMeta } from './fields-rules';
import { describeNameRule, maxNameLength, namePattern } from './names';
import type { NameFormat } from './names';

function nameField(format: NameFormat): z.ZodString {
  const error = `must be ${describeNameRule({ format })}`;
  return z
    .string()
    .max(maxNameLength({ format }), { error })
    .regex(new RegExp(namePattern(format)), { error });
}

/** A DNS label of at most 63 characters: most names, and what a label's value can hold. Source: RFC 1123. */
export function dnsLabel(): z.ZodString {
  return nameField('dns-label');
}

/** A DNS label that starts with a letter: the name of a Service. At most 63 characters. Source: RFC 1035. */
export function dns1035Label(): z.ZodString {
  return nameField('dns-1035-label');
}

/** DNS labels joined by dots, at most 253 characters: the name of a Secret or a Deployment. Source: RFC 1123. */
export function dnsSubdomain(): z.ZodString {
  return nameField('dns-subdomain');
}

/** A number or a string, such as a port or `25%`. The string holds at most `maxLength` characters. @default 253 */
export function intOrString(
  options: { readonly maxLength?: number } = {},
): z.ZodUnion<readonly [z.ZodInt32, z.ZodString]> {
  const schema = z.union([z.int32(), z.string().max(options.maxLength ?? 253)], {
    error: 'must be an integer or a string',
  });
  return withMeta(schema, { 'x-kubernetes-int-or-string': true });
}
