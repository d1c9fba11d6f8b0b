/** One thing that is wrong with an input, and where. */
export interface Problem {
  /** Where, as a path such as `spec.version`. Empty for the whole. */
  readonly path: string;
  /** What is wrong and what to do. */
  readonly message: string;
  /** `remove`: what is at the path does not belong there. Absent: another value corrects it. */
  readonly remedy?: 'remove';
}

/** The path of a field of what is at a path: `spec.image`, or `data["app.conf"]` where the name has dots. */
export function childPath(path: string, field: string): string {
  if (!/^[\w$-]+$/.test(field)) return `${path}["${field.replaceAll('"', String.raw`\"`)}"]`;
  return path === '' ? field : `${path}.${field}`;
}

/** A step into a JSON value: a field's name or an index. */
export type PathStep = string | number;

/**
 * A path as problems have it, and as Pulumi's `ignoreChanges` and `replaceOnChanges` read it:
 * `spec.containers[0].image`, `data["app.conf"]`.
 * Source: Pulumi documentation, "ignoreChanges", property paths.
 */
export function propertyPath(path: readonly PathStep[]): string {
  return path.reduce<string>((at, step) => (typeof step === 'number' ? `${at}[${step}]` : childPath(at, step)), '');
}

/** A definition contains something that Kubernetes cannot express or would reject. Thrown by `defineKind`. */
export class KindDefinitionError extends Error {
  override readonly name = 'KindDefinitionError';
  constructor(
    readonly kind: string,
    readonly problems: readonly Problem[],
    options?: { readonly cause?: unknown },
  ) {
    super(formatProblems(`kind ${kind} cannot be defined:`, problems), options);
  }
}

/** An object does not fit its kind's schema. */
export class InvalidObjectError extends Error {
  override readonly name = 'InvalidObjectError';
  constructor(
    /** Kind and name of the object, for example `HelloApp default/web`. */
    readonly object: string,
    readonly problems: readonly Problem[],
    options?: { readonly cause?: unknown },
  ) {
    super(formatProblems(`${object} is invalid:`, problems), options);
  }
}

/** An object cannot be converted to another version of its kind. */
export class ConversionError extends Error {
  override readonly name = 'ConversionError';
  constructor(
    /** Kind and name of the object, for example `HelloApp default/web`. */
    readonly object: string,
    /** The requested `apiVersion`. */
    readonly desiredApiVersion: string,
    readonly problems: readonly Problem[],
    options?: { readonly cause?: unknown },
  ) {
    super(formatProblems(`${object} cannot be converted to ${desiredApiVersion}:`, problems), options);
  }
}

/** A kind's own code rendered something it must not: an unnamed child, one outside `owns`, two of one name. */
export class RenderError extends Error {
  override readonly name: string = 'RenderError';
  constructor(
    readonly object: string,
    message: string,
    options?: { readonly cause?: unknown },
  ) {
    super(`${object}: ${message}`, options);
  }
}

/** The props of a construct are invalid. Reports all problems at once. */
export class InvalidPropsError extends Error {
  override readonly name = 'InvalidPropsError';
  constructor(
    /** The construct's class and path, for example `Platform kindred`. */
    readonly construct: string,
    readonly problems: readonly Problem[],
    options?: { readonly cause?: unknown },
  ) {
    super(formatProblems(`${construct} has invalid props:`, problems), options);
  }
}

/** A heading, and one indented line for each problem. */
export function formatProblems(heading: string, problems: readonly Problem[]): string {
  return [heading, ...problems.map(({ path, message }) => `  ${path === '' ? '' : `${path}: `}${message}`)].join('\n');
}

/** The message of an error, whichever realm created it (tests run in one of their own), or the text of anything else that was thrown. */
export function errorMessage(error: unknown): string {
  const message: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'message') : undefined;
  return typeof message === 'string' && message !== '' ? message : String(error);
}
