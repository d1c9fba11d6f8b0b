import type { KindVersion } from '../../constructs/kind/versions';
import { ConversionError } from '../../constructs/kube/errors';
import type { AnyKind } from '../../constructs/kind/kind';
import { isObject, type KubeObject } from '../../constructs/kube/kube-object';
import { groupOf } from '../../constructs/kube/resource-type';
import { describeObject } from '../../constructs/kind/validate';
import { runWithTimeLimit } from '../process/time-limit';
import { convertObject } from '../../constructs/kind/conversion';

/** The API version and kind of a review, in both directions. Source: "Webhook conversion" of the documentation of CRD versions. */
const REVIEW = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'ConversionReview' } as const;

/** The request of the API server. */
export interface ReviewRequest {
  readonly uid: string;
  readonly desiredAPIVersion: string;
  readonly objects: readonly KubeObject[];
}

/** The response: every object in the order of the request, or why there is none. */
interface ReviewResponse {
  readonly apiVersion: typeof REVIEW.apiVersion;
  readonly kind: typeof REVIEW.kind;
  readonly response: {
    readonly uid: string;
    readonly result: { readonly status: 'Success' } | { readonly status: 'Failed'; readonly message: string };
    readonly convertedObjects?: readonly KubeObject[];
  };
}

/** The response, and what the operator itself has to know about it. */
export interface ReviewResult {
  readonly answer: ReviewResponse;
  /** The kind of the first object, if it is known. */
  readonly kind: AnyKind | undefined;
  /** An error of the operator, not of the object. */
  readonly bug?: unknown;
}

/**
 * Parses the body of a request.
 *
 * @returns a sentence that says what is wrong when it is not a review: then there is no `uid` to respond to
 */
export function parseReview(body: unknown): ReviewRequest | string {
  const expected = `a ${REVIEW.kind} of ${REVIEW.apiVersion}`;
  if (!isObject(body) || body.apiVersion !== REVIEW.apiVersion || body.kind !== REVIEW.kind) {
    return `${expected} is expected`;
  }
  const { request } = body;
  if (!isObject(request)) return `${expected} must have a request`;
  const { uid, desiredAPIVersion, objects } = request;
  if (typeof uid !== 'string' || uid === '') return 'request.uid must be a string';
  if (typeof desiredAPIVersion !== 'string') return 'request.desiredAPIVersion must be a string';
  if (!Array.isArray(objects)) return 'request.objects must be a list';
  const bad = objects.findIndex((object) => !isKubeObject(object));
  if (bad !== -1) return `request.objects[${bad}] must be an object with apiVersion, kind and metadata`;
  return { uid, desiredAPIVersion, objects: objects as KubeObject[] };
}

/**
 * How long the conversion of all objects of a review may take, in milliseconds: meanwhile the Lease is not renewed.
 */
const LIMIT_MS = 5_000;

/**
 * Converts the objects of a review: all of them, or none with the reason, which names the object and its
 * field.
 *
 * Guarantees: never throws, whatever the objects contain and the kinds' own functions do.
 */
export function review(kinds: readonly AnyKind[], { uid, desiredAPIVersion, objects }: ReviewRequest): ReviewResult {
  const kind = objects[0] && definitionsOf(kinds, objects[0])[0];
  const converted: KubeObject[] = [];
  const convertAll = (): void => {
    for (const object of objects) {
      const definition = kindOf(kinds, object, desiredAPIVersion);
      converted.push(convertObject(definition, object, desiredAPIVersion, { incomplete: true }));
    }
  };
  try {
    runWithTimeLimit(convertAll, LIMIT_MS);
  } catch (error) {
    // The first one that is not converted.
    return failedReview(uid, kind, error, objects[converted.length] as KubeObject, desiredAPIVersion);
  }
  const response = { uid, result: { status: 'Success' as const }, convertedObjects: converted };
  return { kind, answer: { ...REVIEW, response } };
}

function failedReview(
  uid: string,
  kind: AnyKind | undefined,
  error: unknown,
  object: KubeObject,
  desired: string,
): ReviewResult {
  const isExpected = error instanceof ConversionError;
  const message = isExpected
    ? error.message
    : `${describeObject(object)} cannot be converted to ${desired}: an error of the operator's own; see its log`;
  const answer: ReviewResponse = { ...REVIEW, response: { uid, result: { status: 'Failed', message } } };
  return { kind, answer, ...(isExpected ? {} : { bug: error }) };
}

function definitionsOf(kinds: readonly AnyKind[], object: KubeObject): readonly AnyKind[] {
  const group = groupOf(object);
  return kinds.filter((kind) => kind.group === group && kind.kind === object.kind);
}

/** Of several definitions of a kind, the first one that has both versions; else the first one. */
function kindOf(kinds: readonly AnyKind[], object: KubeObject, desired: string): AnyKind {
  const definitions = definitionsOf(kinds, object);
  const known = (kind: AnyKind, apiVersion: string): boolean =>
    [kind.apiVersion, ...(kind.versions as readonly KindVersion[]).map((version) => version.apiVersion)].includes(
      apiVersion,
    );
  const found = definitions.find((kind) => known(kind, object.apiVersion) && known(kind, desired)) ?? definitions[0];
  if (found !== undefined) return found;
  const message = `this operator does not run the kind ${object.kind} of ${groupOf(object)}, or it has one version only`;
  throw new ConversionError(describeObject(object), desired, [{ path: 'kind', message }]);
}

function isKubeObject(value: unknown): value is KubeObject {
  return (
    isObject(value) &&
    typeof value.apiVersion === 'string' &&
    typeof value.kind === 'string' &&
    isObject(value.metadata)
  );
}
