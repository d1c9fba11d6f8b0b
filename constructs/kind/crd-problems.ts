import type { Problem } from '../kube/errors';
import { childPath } from '../kube/errors';
import { maxNameLength, nameProblem } from '../kube/names';
import type { KindProps } from './kind-props';
import type { z } from 'zod';

/** The parts of a definition of which the CRD and the samples are made as they are. */
type CrdProps = Pick<
  KindProps<z.ZodObject, z.ZodObject>,
  'group' | 'plural' | 'scope' | 'crdAnnotations' | 'columns' | 'samples' | 'names'
>;

/**
 * Why the API server would refuse the CRD of a kind, or one of its samples, whatever their schema says: found
 * here, since the server says it only when the kind is installed.
 * Source: the validation of `apiextensions.k8s.io/v1` and of ObjectMeta, tried on Kubernetes 1.36.
 *
 * Caveat: rules in CEL are compiled by the server alone; see `celProblems` for what is found of them.
 */
export function crdProblems(props: CrdProps): readonly Problem[] {
  const name = `${props.plural}.${props.group}`;
  const nameLimit = maxNameLength({ format: 'dns-subdomain' });
  return [
    ...(name.length <= nameLimit
      ? []
      : [
          {
            path: 'group',
            message: `the CRD is called <plural>.<group>, which has ${name.length} characters; at most ${nameLimit} are allowed`,
          },
        ]),
    ...(SCOPES.includes(props.scope)
      ? []
      : [{ path: 'scope', message: `"${props.scope}" is none of ${SCOPES.join(', ')}` }]),
    ...columnProblems(props.columns ?? []),
    ...annotationProblems(props),
    ...sampleProblems(props),
  ];
}

const SCOPES: readonly string[] = ['Namespaced', 'Cluster'];
const COLUMN_TYPES: readonly string[] = ['string', 'integer', 'number', 'boolean', 'date'];
const MAX_INT32 = 2 ** 31 - 1;

function columnProblems(columns: NonNullable<CrdProps['columns']>): readonly Problem[] {
  return columns.flatMap(({ name, type, priority = 0 }, i) => {
    const at = `columns[${i}]`;
    return [
      ...(name === '' ? [{ path: `${at}.name`, message: 'it is empty; give the column a heading' }] : []),
      ...(COLUMN_TYPES.includes(type)
        ? []
        : [{ path: `${at}.type`, message: `"${type}" is none of ${COLUMN_TYPES.join(', ')}` }]),
      ...(Number.isInteger(priority) && Math.abs(priority) <= MAX_INT32
        ? []
        : [{ path: `${at}.priority`, message: `${priority} is no integer of 32 bits; write 0, or 1 for -o wide` }]),
    ];
  });
}

/** All annotations of an object together, in bytes. Source: `TotalAnnotationSizeLimitB`. */
const MAX_ANNOTATION_BYTES = 262_144;
const APPROVED = 'api-approved.kubernetes.io';

/** Whether the CRD needs an annotation `api-approved.kubernetes.io` for its group. Source: KEP-1111. */
export function isProtectedGroup(group: string): boolean {
  return /(^|\.)(k8s\.io|kubernetes\.io)$/.test(group);
}

function annotationProblems({ group, crdAnnotations = {} }: CrdProps): readonly Problem[] {
  const annotations: Readonly<Record<string, unknown>> = crdAnnotations;
  const entries = Object.entries(annotations);
  const problems: Problem[] = entries.flatMap(([key, value]) => {
    const path = childPath('crdAnnotations', key);
    const problem = qualifiedNameProblem(key.toLowerCase());
    return [
      ...(problem === undefined ? [] : [{ path, message: problem }]),
      ...(typeof value === 'string' ? [] : [{ path, message: 'it is no text; write it in quotes' }]),
    ];
  });
  const bytes = entries.reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(String(value)),
    0,
  );
  if (bytes > MAX_ANNOTATION_BYTES) {
    const message = `they have ${bytes} bytes; an object may have ${MAX_ANNOTATION_BYTES}, so that some have to go`;
    problems.push({ path: 'crdAnnotations', message });
  }
  const approval = annotations[APPROVED];
  const isApproval = (text: string): boolean => text.startsWith('unapproved') || URL.canParse(text);
  if (isProtectedGroup(group) && typeof approval === 'string' && !isApproval(approval)) {
    const message = `"${approval}" is neither a URL nor begins with "unapproved": write "unapproved, <why>", or the address of the approval`;
    problems.push({ path: childPath('crdAnnotations', APPROVED), message });
  }
  return problems;
}

const NAME_PART = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/** Why a text cannot be the key of a label or an annotation, or a finalizer. Source: `IsQualifiedName`. */
export function qualifiedNameProblem(key: string): string | undefined {
  const slash = key.indexOf('/');
  const [prefix, name] = slash < 0 ? [undefined, key] : [key.slice(0, slash), key.slice(slash + 1)];
  const inPrefix = prefix === undefined ? undefined : nameProblem(prefix, { format: 'dns-subdomain' });
  if (inPrefix !== undefined) return `what is before the "/": ${inPrefix}`;
  if (name.length <= 63 && NAME_PART.test(name)) return undefined;
  const rule = 'at most 63 letters, digits, "-", "_" and ".", starting and ending with a letter or digit';
  return `"${name}" must be ${rule}${prefix === undefined ? '; a domain and "/" may stand before it' : ''}`;
}

/** Why a text cannot be the value of a label. Source: `IsValidLabelValue`. */
function labelValueProblem(value: unknown): string | undefined {
  if (typeof value === 'string' && (value === '' || (value.length <= 63 && NAME_PART.test(value)))) return undefined;
  const rule = 'a text of at most 63 letters, digits, "-", "_" and ".", starting and ending with a letter or digit';
  return `${JSON.stringify(value)} must be ${rule}`;
}

function sampleProblems({ samples = [], names = { format: 'dns-subdomain' } }: CrdProps): readonly Problem[] {
  return samples.flatMap(({ name, labels = {} }, i) => {
    const at = `samples[${i}]`;
    const first = samples.findIndex((other) => other.name === name);
    const problem = nameProblem(name, names);
    return [
      ...(problem === undefined ? [] : [{ path: `${at}.name`, message: problem }]),
      ...(first === i ? [] : [{ path: `${at}.name`, message: `"${name}" is the name of samples[${first}] already` }]),
      ...Object.entries(labels).flatMap(([key, value]) => {
        const path = childPath(`${at}.labels`, key);
        const wrong = [qualifiedNameProblem(key), labelValueProblem(value)];
        return wrong.flatMap((message) => (message === undefined ? [] : [{ path, message }]));
      }),
    ];
  });
}
