import { z } from 'zod';
import { isObject } from '../../constructs/core/is-object';
import type { Problem } from '../../constructs';

const required =
  (what: string) =>
  ({ input }: { readonly input?: unknown }): string =>
    input === undefined ? 'is required' : what;

const text = z.string({ error: required('it must be a text') });

const machines = z
  .array(z.string({ error: 'it must be the name or the address of a node' }), {
    error: 'it must be a list of names or addresses of nodes',
  })
  .optional();

const attempts = { error: 'it must be a whole number of at least 1' };

/**
 * The fields of `cluster`. What stands in those that a Cluster's spec has too is for its own schema to see; of them, this says only what
 * everything else here relies on.
 */
const fields = z.strictObject({
  name: text,
  distribution: text,
  version: text,
  nodes: z.array(
    z.looseObject(
      { name: z.string({ error: 'it must be a text' }).optional() },
      { error: 'it must be an object with address and roles' },
    ),
    { error: required('it must be a list of objects with address and roles') },
  ),
  options: z.unknown().optional(),
  installer: z
    .looseObject(
      {},
      { error: 'it must be an object with url or path, sha256 and artifacts, as far as they are needed' },
    )
    .optional(),
  dialAttempts: z.int(attempts).min(1, attempts).optional(),
  removable: machines,
  lost: machines,
});

/** Fields of the right types, whose values are still to be checked. */
export type ClusterFields = z.output<typeof fields>;

/** One thing that is wrong below `cluster`. */
export interface ClusterProblem extends Problem {
  /** What it is: a field that must go, a machine that must be named no longer, or a value that is missing or must be another. */
  readonly kind: 'unknown-field' | 'unknown-machine' | 'wrong-value';
}

/** The cluster that was configured, or everything that is of a wrong type, missing or unknown. Paths begin below `cluster`. */
export type CheckedFields = { readonly fields: ClusterFields } | { readonly problems: readonly ClusterProblem[] };

/** Checks what every later check relies on. */
export function checkedFields(cluster: unknown): CheckedFields {
  const parsed = fields.safeParse(cluster);
  return parsed.success ? { fields: parsed.data } : { problems: parsed.error.issues.flatMap(problemsOf) };
}

function problemsOf(issue: z.core.$ZodIssue): readonly ClusterProblem[] {
  if (issue.code !== 'unrecognized_keys') {
    return [{ kind: 'wrong-value', path: pathOf(issue.path), message: issue.message }];
  }
  const known = Object.keys(fields.shape).join(', ');
  return issue.keys.map((path) => ({ kind: 'unknown-field', path, message: `is no field of it; it has ${known}` }));
}

function pathOf([first, ...rest]: readonly PropertyKey[]): string {
  return rest.reduce<string>(
    (at, key) => (typeof key === 'number' ? `${at}[${key}]` : `${at}.${String(key)}`),
    String(first),
  );
}

/**
 * A value without the fields that are null: a key with nothing behind it, which is as good as none. A `hostKey:` of that kind must not
 * count as given.
 */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const given = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(given.map(([name, field]) => [name, withoutNulls(field)]));
}
