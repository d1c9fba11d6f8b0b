import type { Exchange } from '../proxy/exchange';
import type { Fault } from '../proxy/fault-proxy';
import type { ProxiedRequest } from '../proxy/proxied-request';
import type { Choice } from './choices';
import { contentIn, nameIn, targetOf } from './crash-point';
import type { Moment, WriteAddress } from './crash-point';

/** A write at which the operator was stopped. */
export interface Crash {
  readonly moment: Moment;
  readonly write: WriteAddress;
}

/**
 * The fault that finds the moment of a crash. From that moment on nothing that the operator asks for reaches the server, until `release`:
 * whoever is told has all the time to kill it.
 */
export class Crasher {
  /** Every write that came to the proxy, oldest first. */
  readonly writes: WriteAddress[] = [];
  /** Those that the server accepted, in the order of its answers. */
  readonly accepted: WriteAddress[] = [];
  private stage = '';
  private isHolding = false;
  /** How many were accepted, by target. */
  private readonly counts = new Map<string, number>();

  constructor(
    private readonly choice: Choice,
    private readonly onCrash: (crash: Crash) => void,
  ) {}

  /** Writes belong to this stage from now on. */
  enter(stage: string): void {
    this.stage = stage;
  }

  /** The operator is dead; the next one is let through. */
  release(): void {
    this.isHolding = false;
  }

  readonly fault: Fault = async (exchange) => {
    if (this.isHolding) return exchange.silence();
    const { request } = exchange;
    if (!request.writes || request.beside) return exchange.pass();
    const write = this.record(request);
    const moment = this.choice(write);
    if (moment === undefined) return this.pass(exchange, write);
    return this.crash(exchange, { moment, write });
  };

  private async pass(exchange: Exchange, write: WriteAddress): Promise<void> {
    const answer = await exchange.forward();
    this.answered(write, answer.statusCode);
    await exchange.relay(answer);
  }

  private async crash(exchange: Exchange, crash: Crash): Promise<void> {
    if (crash.moment === 'after') this.answered(crash.write, (await exchange.wholeAnswer()).status);
    this.isHolding = true;
    this.onCrash(crash);
    return exchange.silence();
  }

  private answered(write: WriteAddress, status = 0): void {
    if (status < 200 || status > 299) return;
    const key = targetOf(write);
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
    this.accepted.push(write);
  }

  private record(request: ProxiedRequest): WriteAddress {
    const { verb, resource } = request;
    const target = { stage: this.stage, verb, resource, name: nameIn(request), content: contentIn(request) };
    const write = { ...target, occurrence: (this.counts.get(targetOf(target)) ?? 0) + 1 };
    this.writes.push(write);
    return write;
  }
}
