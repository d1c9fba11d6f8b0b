import { waitFor } from '../../../local/testing';
import type { FaultBench } from '../fault-bench';
import { passing, when } from '../proxy/fault-proxy';
import type { Fault, SeenRequest } from '../proxy/fault-proxy';
import { aboutWork } from '../proxy/faults';
import { startAuditing } from '../support/calm';
import { liveThrough } from '../support/live-through';

/** What a fault must have hit; each by its name, given the requests that were hurt until now. */
export type Hits = Readonly<Record<string, (hurt: readonly SeenRequest[]) => boolean>>;

/** A fault by its name, and what it must hit while the operator is at work: one that hits nothing tests nothing. */
export type NamedFault = readonly [what: string, fault: Fault, hits: Hits];

export const writes = (hurt: readonly SeenRequest[]): boolean => hurt.some(isWrite);
export const watches = (hurt: readonly SeenRequest[]): boolean => hurt.some(({ verb }) => verb === 'watch');
export const gets = (hurt: readonly SeenRequest[]): boolean => hurt.some(({ verb }) => verb === 'get');
/** Further pages of the lists that fill a cache; those of an audit come without trouble too. */
export const pages = (hurt: readonly SeenRequest[]): boolean =>
  hurt.some(({ verb, metadataOnly, url }) => verb === 'list' && !metadataOnly && url.searchParams.has('continue'));

/** Writes, from the first to the last of which it is so long, in milliseconds: how often they are tried again shows only in time. */
export const writesFor = (ms: number): Hits[string] => lasting(isWrite, ms);
/** The same of watches. */
export const watchesFor = (ms: number): Hits[string] => lasting(({ verb }) => verb === 'watch', ms);

function lasting(isOne: (request: SeenRequest) => boolean, ms: number): Hits[string] {
  return (hurt) => {
    const hit = hurt.filter(isOne);
    return (hit.at(-1)?.at ?? 0) - (hit[0]?.at ?? 0) >= ms;
  };
}

function isWrite({ writes: isOne, beside }: SeenRequest): boolean {
  return isOne && !beside;
}

/** Tests that work goes on, or is caught up with, under each of the faults, on one control plane. */
export function testUnderFaults(bench: FaultBench, faults: readonly NamedFault[]): void {
  beforeAll(async () => {
    await startAuditing(bench);
  }, 60_000);

  // A test that failed may have left none.
  beforeEach(async () => {
    if (!bench.operator.running) await startAuditing(bench);
  }, 60_000);

  test.each(faults)('%s', async (_what, fault, hits) => {
    await liveThrough(bench, async (work) => {
      try {
        await underFault(bench, when(aboutWork, fault), hits, async () => {
          // Watches are opened anew, into the fault.
          bench.proxy.cut();
          await work();
        });
      } finally {
        bench.heal();
      }
    });
  });
}

/** Has work done under a fault, until that has hit what it is to hit. Then it ends, but nothing is cut. */
export async function underFault(
  { proxy }: FaultBench,
  fault: Fault,
  hits: Hits,
  work: () => Promise<void>,
): Promise<void> {
  const began = Date.now();
  proxy.fault = fault;
  try {
    await work();
    for (const [what, isHit] of Object.entries(hits))
      await waitFor(() => isHit(proxy.hits(began)), { describe: `the fault to hit ${what}`, timeout: 60_000 });
  } finally {
    proxy.fault = passing;
  }
}
