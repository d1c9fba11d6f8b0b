import { setTimeout as delay } from 'node:timers/promises';
import { Transform } from 'node:stream';
import type { TransformCallback } from 'node:stream';
import type { Fault } from './fault-proxy';
import { cutEvents } from './watch-faults';

/** The connection ends in the middle of the answer; of a watch, in the middle of its next event. */
export const cutAnswer: Fault = async (exchange) => {
  if (exchange.request.verb === 'watch') return cutEvents(0)(exchange);
  const answer = await exchange.wholeAnswer();
  return exchange.sendPart(answer, Math.ceil(answer.body.length / 2));
};

/** Half of the answer comes as if it were all: HTTP is satisfied, JSON is not. Watches are cut between two chunks, without an error. */
export const truncatedAnswer: Fault = async (exchange) => {
  if (exchange.request.verb === 'watch') return cutEvents(0, { cleanly: true })(exchange);
  const answer = await exchange.wholeAnswer();
  exchange.hurt();
  exchange.send({ ...answer, body: answer.body.subarray(0, Math.ceil(answer.body.length / 2)) });
};

/** How slow an answer is. */
export interface Slowness {
  /** Before the request is sent on, in milliseconds. */
  readonly delayMs: number;
  /** So many bytes come at once ... @default all that there are */
  readonly bytes?: number;
  /** ... and then nothing for this long, in milliseconds. @default 10 */
  readonly everyMs?: number;
}

/** The request is slow to go, and the answer trickles. */
export function slow({ delayMs, bytes = Infinity, everyMs = 10 }: Slowness): Fault {
  return async (exchange) => {
    exchange.hurt();
    await delay(delayMs, undefined, { signal: exchange.gone });
    await exchange.relay(await exchange.forward(), new Trickle(bytes, everyMs));
  };
}

/** Passes a few bytes at a time. */
class Trickle extends Transform {
  constructor(
    private readonly bytes: number,
    private readonly everyMs: number,
  ) {
    super();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.push(chunk.subarray(0, this.bytes));
    const rest = chunk.subarray(this.bytes);
    if (rest.length === 0) done();
    else setTimeout(() => (this.destroyed ? done() : this._transform(rest, _encoding, done)), this.everyMs);
  }
}
