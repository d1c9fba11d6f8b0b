import type { Fault } from '../proxy/fault-proxy';
import { sentenceOf } from '../proxy/proxied-request';

/** A write, when it came and when it ended for who asked, in milliseconds since 1970. */
export interface WriteTime {
  readonly sentence: string;
  readonly came: number;
  /** Undefined as long as it is open. */
  ended?: number;
}

/** Remembers when writes came to a proxy and when they ended, so that nobody need look in time. */
export class WriteTimes {
  readonly all: WriteTime[] = [];

  /** A fault that notes each write and then does what another one does. */
  under(fault: Fault): Fault {
    return async (exchange) => {
      const { request, gone } = exchange;
      if (request.writes && !request.beside) {
        const write: WriteTime = { sentence: sentenceOf(request), came: Date.now() };
        this.all.push(write);
        const end = (): void => void (write.ended ??= Date.now());
        if (gone.aborted) end();
        else gone.addEventListener('abort', end, { once: true });
      }
      await fault(exchange);
    };
  }

  /** Those that had come and not ended at a moment. */
  openAt(moment: number): readonly string[] {
    return this.all
      .filter(({ came, ended = Infinity }) => came <= moment && ended >= moment)
      .map(({ sentence }) => sentence);
  }
}
