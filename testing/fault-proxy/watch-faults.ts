import { Transform, type TransformCallback } from 'node:stream';
import type { WatchEvent } from '../../operator/client/api-client';
import type { Exchange, BufferedResponse } from './exchange';
import type { Fault } from './fault-proxy';

/**
 * A watch ends in the middle of an event, after some whole ones; what is no watch passes.
 *
 * @param after how many events come whole
 * @param options.cleanly HTTP's end of the body follows, as from a proxy that lost its server. @default the connection ends
 */
export function cutEvents(after: number, { cleanly = false }: { readonly cleanly?: boolean } = {}): Fault {
  return endsAfter(after, (line, out) => {
    out.push(line.subarray(0, Math.ceil(line.length / 2)));
    out.end(cleanly ? undefined : new Error('fault: the watch was cut'));
  });
}

/** A watch says after some events that its version is too old, with HTTP status 200, and ends; what is no watch passes. */
export function goneInStream(after: number): Fault {
  return endsAfter(after, (_line, out) => {
    out.push(Buffer.from(`${JSON.stringify(EXPIRED)}\n`));
    out.end();
  });
}

/** A watch's first events come whole; the next is given to `end`, which ends the stream. What is no watch passes. */
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

/** As the API server says it: https://kubernetes.io/docs/reference/using-api/api-concepts/#410-gone-responses */
const EXPIRED = {
  type: 'ERROR',
  object: {
    ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code: 410, reason: 'Expired' },
    message: 'fault: too old resource version',
  },
};

/** One event of a watch never comes, the first that fits; the next do, as if nothing had been. What is no watch passes. */
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

/** A watch is opened, and no event ever comes; what is no watch passes. */
export const silentWatch: Fault = async (exchange) => {
  if (exchange.request.verb !== 'watch') return exchange.pass();
  return exchange.relay(
    await exchange.forward(),
    dropChunksWhile(exchange, () => true),
  );
};

/** Watches that are open when the signal aborts are silent from then on, without an end; what is opened later passes. */
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

/** Every event of a watch comes this much later, in milliseconds, while reads and writes go on; what is no watch passes. */
export function delayedEvents(ms: number): Fault {
  return async (exchange) => {
    if (exchange.request.verb !== 'watch') return exchange.pass();
    return exchange.relay(await exchange.forward(), new DelayTransform(ms, () => exchange.markFaulted()));
  };
}

/** Where the lines of a stream go. */
interface LineSink {
  push(bytes: Buffer): void;
  /** Nothing follows. @param error with it, the stream fails. @default it ends as it should */
  end(error?: Error): void;
}

/** Takes a stream apart into its lines, line ends included. */
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
    // What was pushed last is still to be written when the stream fails.
    if (error === undefined) this.push(null);
    else setTimeout(() => this.destroy(error), 5);
  }
}

/** Brings everything later, and in its order. */
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

/** Whether a read can be answered from an older revision: a get or a first page that asks for no version of its own. */
export function canBeStale({ verb, url }: Exchange['request']): boolean {
  const { searchParams: query } = url;
  return (verb === 'get' || verb === 'list') && !query.has('continue') && !query.has('resourceVersion');
}

/**
 * Gets and lists are answered as the cluster stood at an older revision; what is neither passes, and so does everything once the server has
 * forgotten that revision.
 *
 * @param revision a resourceVersion, asked for with each read
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

/** The one object of a list, as a get answers it: lists of built-in types leave kind and version out of their items. */
function onlyItem(answer: BufferedResponse): BufferedResponse | undefined {
  const { kind, apiVersion, items } = JSON.parse(answer.body.toString('utf8')) as List;
  const [item] = items;
  if (item === undefined) return undefined;
  const object = { kind: kind.replace(/List$/, ''), apiVersion, ...item };
  return { ...answer, body: Buffer.from(JSON.stringify(object)) };
}

/**
 * Lists come in pages of this many objects at most, however many were asked for at once; what is no list passes.
 *
 * @param further what becomes of requests for further pages. @default they are answered, as small
 */
export function limitPageSize(limit: number, further?: Fault): Fault {
  return (exchange) => {
    const { verb, url } = exchange.request;
    if (verb !== 'list' || !url.searchParams.has('limit')) return exchange.pass();
    const query = new URLSearchParams(url.searchParams);
    if (query.has('continue') && further !== undefined) return further(exchange);
    query.set('limit', String(limit));
    // That there is another page shows that the list did not come in one piece.
    if (query.has('continue')) exchange.markFaulted();
    return exchange.pass({ target: `${url.pathname}?${query.toString()}` });
  };
}

/** A server that knows no streaming lists: it refuses their parameters as invalid. Others go on to `then`. */
export function withoutStreamingLists(then: Fault): Fault {
  return (exchange) => {
    if (!exchange.request.url.searchParams.has('sendInitialEvents')) return then(exchange);
    exchange.respondWithError(400, 'BadRequest');
    return Promise.resolve();
  };
}
