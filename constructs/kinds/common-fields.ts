import { z } from 'zod';

/** A container image reference. The schema only requires one; the registry decides what exists. */
export function imageField(): z.ZodString {
  return z.string().min(1).max(1024);
}

/**
 * A time as the API server writes it, RFC 3339. The server checks the format; zod's own pattern would repeat
 * that.
 */
export function dateTimeField(): z.ZodString {
  return z.string().meta({ format: 'date-time' });
}

/** A number of pods: what a Deployment's `replicas` can hold. */
export function replicasField(): z.ZodInt32 {
  return z.int32().min(0);
}
