import type { IncomingMessage, ServerResponse } from 'node:http';
import { Counter, type Registry } from 'prom-client';
import type { AnyKind } from '../../constructs/kind/kind';
import type { Logger } from '../process/logger';
import { review, parseReview } from './conversion-review';

/** Options of `handleConversion`. */
export interface ConversionHandlerOptions {
  readonly kinds: readonly AnyKind[];
  readonly logger: Logger;
  readonly metrics: ConversionMetrics;
  /** @default 3 MiB */
  readonly maxBodyBytes?: number;
}

/**
 * Handles `POST /convert`, a ConversionReview in and out. An object that cannot be converted fails its
 * review, with status 200 as the API server requires; a body that is not a review gets a 4xx, whose text the
 * API server shows.
 */
export async function handleConversion(
  options: ConversionHandlerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const refused = refuse(request);
  if (refused !== undefined) {
    request.resume();
    options.metrics.request('', 'invalid');
    send(response, refused);
    return;
  }
  const limit = options.maxBodyBytes ?? MAX_BODY_BYTES;
  const body = await readBody(request, limit);
  const { answer, kind, result } =
    body === undefined ? invalid(413, `a review of more than ${limit} bytes is not taken\n`) : convert(options, body);
  options.metrics.request(kind, result);
  send(response, answer);
}

/**
 * The maximum size of a body, in bytes: the API server's own limit for one object. It converts objects from
 * etcd one by one, so a review is little more than one object of at most 1.5 MiB.
 */
const MAX_BODY_BYTES = 3 * 1024 * 1024;

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly type: 'application/json' | 'text/plain; charset=utf-8';
  readonly headers?: Readonly<Record<string, string>>;
}

/** The path of the reviews. */
const CONVERT_PATH = '/convert';

/** Why a request is rejected before its body is read. */
function refuse({ url = '/', method, headers }: IncomingMessage): Answer | undefined {
  // The API server adds a query with its timeout.
  if (url.split('?', 1)[0] !== CONVERT_PATH) return text(404, `not found; this server has ${CONVERT_PATH}\n`);
  if (method !== 'POST')
    return { ...text(405, `only POST is served at ${CONVERT_PATH}\n`), headers: { Allow: 'POST' } };
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (type === 'application/json') return undefined;
  return text(415, `Content-Type must be application/json, not ${type ?? 'absent'}\n`);
}

interface Outcome {
  readonly answer: Answer;
  readonly kind: string;
  readonly result: ConversionResult;
}

function convert({ kinds, logger }: ConversionHandlerOptions, body: Buffer): Outcome {
  const parsed = parse(body);
  if (parsed === undefined) return invalid(400, 'the body is not JSON\n');
  const request = parseReview(parsed.json);
  if (typeof request === 'string') return invalid(400, `${request}\n`);
  const { answer, kind, bug } = review(kinds, request);
  const { result } = answer.response;
  if (result.status === 'Failed') {
    // The API server shows the same to the user; a list that fails is reported only here.
    const fields = { uid: request.uid, desired: request.desiredAPIVersion, reason: result.message };
    if (bug === undefined) logger.warn(fields, 'an object cannot be converted');
    else logger.error({ ...fields, err: bug }, 'converting an object failed');
  }
  return {
    answer: { status: 200, body: JSON.stringify(answer), type: 'application/json' },
    kind: kind?.crdName ?? '',
    result: result.status === 'Success' ? 'success' : 'failure',
  };
}

function parse(body: Buffer): { readonly json: unknown } | undefined {
  try {
    return { json: JSON.parse(body.toString('utf8')) };
  } catch {
    return undefined;
  }
}

function invalid(status: number, body: string): Outcome {
  return { answer: text(status, body), kind: '', result: 'invalid' };
}

function text(status: number, body: string): Answer {
  return { status, body, type: 'text/plain; charset=utf-8' };
}

function send(response: ServerResponse, { status, body, type, headers }: Answer): void {
  response.writeHead(status, {
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...headers,
  });
  response.end(body);
}

/**
 * The body of a request; undefined when it is longer than `limit` bytes. Then the rest is read and dropped,
 * so that the client, which reads the response only after it has written, receives it.
 *
 * @throws Error when the client disconnects
 */
async function readBody(request: IncomingMessage, limit: number): Promise<Buffer | undefined> {
  let chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= limit) chunks.push(chunk);
    else chunks = [];
  }
  return size <= limit ? Buffer.concat(chunks) : undefined;
}

/**
 * The result of a request: `failure` when an object could not be converted, `invalid` when the body was not a
 * review.
 */
type ConversionResult = 'success' | 'failure' | 'invalid';

/** The metrics of conversions. */
export class ConversionMetrics {
  private readonly requests: Counter<'kind' | 'result'>;

  /** @param registry one that does not have these metrics yet */
  constructor(registry: Registry) {
    this.requests = new Counter({
      name: 'kindred_conversion_requests_total',
      help: 'Requests to convert objects between versions, by kind (the name of its CRD) and result: success, failure, invalid.',
      labelNames: ['kind', 'result'],
      registers: [registry],
    });
  }

  /**
   * @param kind the name of a CRD, or empty when the request named no known kind: callers must not choose
   * labels
   */
  request(kind: string, result: ConversionResult): void {
    this.requests.inc({ kind, result });
  }
}
