import type { Exchange } from '../proxy/exchange';
import type { Fault } from '../proxy/fault-proxy';
import { sentenceOf } from '../proxy/proxied-request';

/** A request that came and was held, and what the server said when it was let go. */
export interface HeldRequest {
  readonly sentence: string;
  readonly exchange: Exchange;
}

/** Holds requests on their way to the server, until they are let go: then they reach it, whether or not the client still waits. */
export class HeldRequests {
  readonly all: HeldRequest[] = [];
  private readonly statuses = new Map<string, number[]>();
  private readonly arrivals: Promise<void>[] = [];
  private open: () => void = () => undefined;
  private readonly released = new Promise<void>((resolve) => {
    this.open = resolve;
  });

  /** Holds whatever it is asked to do. */
  readonly hold: Fault = (exchange) => {
    const sentence = sentenceOf(exchange.request);
    this.all.push({ sentence, exchange });
    const arrival = this.released.then(async () => {
      const answer = await exchange.wholeAnswer({ outlivesClient: true });
      this.statuses.set(sentence, [...(this.statuses.get(sentence) ?? []), answer.status]);
      if (!exchange.gone.aborted) exchange.send(answer);
    });
    this.arrivals.push(arrival);
    return arrival;
  };

  /** Lets all go; resolves when the server has answered all. @returns its statuses, by what was asked */
  async release(): Promise<ReadonlyMap<string, readonly number[]>> {
    this.open();
    await Promise.all(this.arrivals);
    return this.statuses;
  }
}
