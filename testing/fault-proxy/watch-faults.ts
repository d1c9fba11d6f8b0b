/** Faults of watches and lists. */
import { Transform, type TransformCallback } from 'node:stream';
import type { WatchEvent } from '../../operator/client/api-client';
import type { Exchange, BufferedResponse } from './exchange';
import type { Fault } from './fault-proxy';

/**
 * A watch ends in the middle of an event, after some complete ones; other requests pass.
 *
 * @param after how many events arrive complete
 * @param options.cleanly the HTTP body ends regularly, as from a proxy that lost its server. @default the
 * connection ends
 */
export function cutEvents(after: number, { cleanly = false }: { readonly cleanly?: boolean } = {}): Fault {
  return endsAfter(after, (line, out) => {
    out.push(line.subarray(0, Math.ceil(line.length / 2)));
    out.end(cleanly ? undefined : new Error('fault: the watch was cut'));
  });
}

/**
 * A watch reports after some events that its version is too old, with HTTP status 200, and ends; other
 * requests pass.
 */
export function goneInStream(after: number): Fault {
  return endsAfter(after, (_line, out) => {
    out.push(Buffer.from(`${JSON.stringify(EXPIRED)}\n`));
    out.end();
  });
}

/**
 * The first events of a watch arrive complete; the next is passed to `end`, which ends the stream. Other
 * requests pass.
 */
function endsAfter(count: number, end: (line: Buffer, out: LineSink) => void): Fault {
  return async (exchange) => {
    if (exchange.request.verb !== 'watch') return exchange.pass();
    const answer = await exchange.forward();
    let left = count;
    const lines = new LineTransform((line, out) => {
      if (left > 0) {
        left -= 1;
        out.push(line);
      } else {
        exchange.markFaulted();
        end(line, out);
      }
    });
    await exchange.relay(answer, lines).finally(() => answer.destroy());
  };
}

/**
 * The API server's own event: https://kubernetes.io/docs/reference/using-api/api-concepts/#410-gone-responses
 */
const EXPIRED = {
  type: 'ERROR',
  object: {
    ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code: 410, reason: 'Expired' },
    message: 'fault: too old resource version',
  },
};

/** The first event of a watch that matches is lost; the next ones arrive. Other requests pass. */
export function dropEvent(fits: (event: WatchEvent) => boolean): Fault {
  let isLost = false;
  return async (exchange) => {
    if (exchange.request.verb !== 'watch') return exchange.pass();
    const lines = new LineTransform((line, out) => {
      if (isLost || !fits(JSON.parse(line.toString('utf8')) as WatchEvent)) {
        out.push(line);
        return;
      }
      isLost = true;
      exchange.markFaulted();
    });
    await exchange.relay(await exchange.forward(), lines);
  };
}

/** A watch is opened, and no event ever arrives; other requests pass. */
export const silentWatch: Fault = async (exchange) => {
  if (exchange.request.verb !== 'watch') return exchange.pass();
  return exchange.relay(
    await exchange.forward(),
    dropChunksWhile(exchange, () => true),
  );
};

/**
 * Watches that are open when the signal aborts deliver nothing from then on, and do not end; later requests
 * pass.
 */
export function silentAfter(signal: AbortSignal): Fault {
  return async (exchange) => {
    if (exchange.request.verb !== 'watch' || signal.aborted) return exchange.pass();
    return exchange.relay(
      await exchange.forward(),
      dropChunksWhile(exchange, () => signal.aborted),
    );
  };
}

function dropChunksWhile(exchange: Exchange, isSilent: () => boolean): Transform {
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      if (isSilent()) {
        exchange.markFaulted();
        done();
      } else {
        done(null, chunk);
      }
    },
  });
}

/**
 * Every event of a watch is delayed by this many milliseconds, while reads and writes continue; other
 * requests pass.
 */
export function delayedEvents(ms: number): Fault {
  return async (exchange) => {
    if (exchange.request.verb !== 'watch') return exchange.pass();
    return exchange.relay(await exchange.forward(), new DelayTransform(ms, () => exchange.markFaulted()));
  };
}

/** The output for the lines of a stream. */
interface LineSink {
  push(bytes: Buffer): void;
  /**
   * Ends the output.
   * @param error fails the stream. @default it ends regularly
   */
  end(error?: Error): void;
}

/** Splits a stream into its lines, line ends included. */
class LineTransform extends Transform {
  private rest: Buffer = Buffer.alloc(0);
  private over = false;

  constructor(private readonly onLine: (line: Buffer, out: LineSink) => void) {
    super();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.rest = Buffer.concat([this.rest, chunk]);
    for (let end = this.rest.indexOf(10); end >= 0 && !this.over; end = this.rest.indexOf(10)) {
      const line = this.rest.subarray(0, end + 1);
      this.rest = this.rest.subarray(end + 1);
      this.onLine(line, { push: (bytes) => void this.push(bytes), end: (error) => this.finish(error) });
    }
    done();
  }

  override _flush(done: TransformCallback): void {
    done(null, this.over ? undefined : this.rest);
  }

  private finish(error?: Error): void {
    this.over = true;
    // The last bytes must be written before the stream fails.
    if (error === undefined) this.push(null);
    else setTimeout(() => this.destroy(error), 5);
  }
}

/** Delays every chunk, and keeps their order. */
class DelayTransform extends Transform {
  private readonly timers = new Set<NodeJS.Timeout>();

  constructor(
    private readonly ms: number,
    private readonly onLate: () => void,
  ) {
    super();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.onLate();
    this.after(() => void this.push(chunk));
    done();
  }

  override _flush(done: TransformCallback): void {
    this.after(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    for (const timer of this.timers) clearTimeout(timer);
    done(error);
  }

  private after(act: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      act();
    }, this.ms);
    this.timers.add(timer);
  }
}

/**
 * Whether a read can be served from an older revision: a get or a first page that requests no version of its
 * own.
 */
function canBeStale({ verb, url }: Exchange['request']): boolean {
  const { searchParams: query } = url;
  return (verb === 'get' || verb === 'list') && !query.has('continue') && !query.has('resourceVersion');
}

/**
 * Gets and lists are served from an older revision of the cluster; all other requests pass, and so does
 * everything once the server no longer has that revision.
 *
 * @param revision returns the resourceVersion; called for each read
 */
export function staleReads(revision: () => string): Fault {
  return async (exchange) => {
    const { request } = exchange;
    if (!canBeStale(request)) return exchange.pass();
    const { name, url } = request;
    const query = new URLSearchParams(url.searchParams);
    query.set('resourceVersion', revision());
    query.set('resourceVersionMatch', 'Exact');
    if (name !== undefined) query.set('fieldSelector', `metadata.name=${name}`);
    const path = name === undefined ? url.pathname : url.pathname.slice(0, url.pathname.lastIndexOf('/'));
    const answer = await exchange.fetchResponse({ target: `${path}?${query.toString()}` });
    if (answer.status !== 200) return exchange.pass();
    const found = name === undefined ? answer : onlyItem(answer);
    exchange.markFaulted();
    if (found === undefined) exchange.respondWithError(404, 'NotFound');
    else exchange.send(found);
  };
}

interface List {
  readonly kind: string;
  readonly apiVersion: string;
  readonly items: readonly object[];
}

/**
 * The only object of a list, as a get returns it: lists of built-in types leave kind and version out of their
 * items.
 */
function onlyItem(answer: BufferedResponse): BufferedResponse | undefined {
  const { kind, apiVersion, items } = JSON.parse(answer.body.toString('utf8')) as List;
  const [item] = items;
  if (item === undefined) return undefined;
  const object = { kind: kind.replace(/List$/, ''), apiVersion, ...item };
  return { ...answer, body: Buffer.from(JSON.stringify(object)) };
}

/**
 * Lists are served in pages of at most this many objects, whatever limit was requested; other requests pass.
 *
 * @param further the fault for requests for further pages. @default they are served, with the same limit
 */
export function limitPageSize(limit: number, further?: Fault): Fault {
  return (exchange) => {
    const { verb, url } = exchange.request;
    if (verb !== 'list' || !url.searchParams.has('limit')) return exchange.pass();
    const query = new URLSearchParams(url.searchParams);
    if (query.has('continue') && further !== undefined) return further(exchange);
    query.set('limit', String(limit));
    // A further page proves that the list was not complete.
    if (query.has('continue')) exchange.markFaulted();
    return exchange.pass({ target: `${url.pathname}?${query.toString()}` });
  };
}

/** A server without streaming lists: it rejects their parameters as invalid. Other requests go to `then`. */
export function withoutStreamingLists(then: Fault): Fault {
  return (exchange) => {
    if (!exchange.request.url.searchParams.has('sendInitialEvents')) return then(exchange);
    exchange.respondWithError(400, 'BadRequest');
    return Promise.resolve();
  };
}
