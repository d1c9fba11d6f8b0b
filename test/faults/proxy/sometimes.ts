import { createHash } from 'node:crypto';
import type { Fault } from './fault-proxy';
import { sentenceOf } from './proxied-request';

/**
 * Hurts a share of the requests, the others pass. Which, depends on the seed, on what is asked, and on how often it was asked before, but
 * not on the order in which different requests come: so a run with the same seed hurts the same ones.
 *
 * @param rate from 0, none, to 1, all
 */
export function sometimes(seed: string, rate: number, fault: Fault): Fault {
  const asked = new Map<string, number>();
  return (exchange) => {
    const sentence = sentenceOf(exchange.request);
    const times = asked.get(sentence) ?? 0;
    asked.set(sentence, times + 1);
    return chance(`${seed} ${sentence} ${String(times)}`) < rate ? fault(exchange) : exchange.pass();
  };
}

/** A number from 0 to 1, without 1, that depends on a text alone. */
export function chance(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32;
}
