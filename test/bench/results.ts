import type { LimitRun, OperatorRun, Results, Round } from '../../bench/results';

/** What an operator did, as far as a test cares. */
export function run(
  objectsPerSecond: number,
  more: Partial<OperatorRun['converged']> = {},
  edits?: OperatorRun['edits'],
): OperatorRun {
  const used = { cpuSeconds: 1.5, peakMiB: 90 };
  const writes = { 'create deployments 201': 10, 'patch helloapps/status 200': 10 };
  return {
    converged: {
      ...{ objectsPerSecond, writes, writesPerObject: 2, events: 0, ...used },
      ...{ requests: { 'create 201': 10, 'patch 200': 10, 'watch 200': 2 } },
      ...{ firstWriteMs: 400, convergedMs: 900, lastWriteMs: 950 },
      ...more,
    },
    restarted: { writes: {}, writeCount: 0, events: 0, reconcilingMs: 300, ...used },
    ...(edits === undefined ? {} : { edits }),
  };
}

/** What a bare loop did, as far as a test cares. */
export function bare(objectsPerSecond: number): LimitRun {
  return { objectsPerSecond, cpuSeconds: 0.75, peakMiB: 55 };
}

/** Results of one suite of ten objects. */
export function resultsOf(rounds: readonly Round[], more: Partial<Results> = {}): Results {
  return {
    machine: { cpus: 2, model: 'Some CPU', memoryGiB: 8, system: 'Linux 6', node: 'v20.19.0', load: 0.5 },
    ...{ kubernetes: 'v1.36.3', skipped: [], concurrency: 32, peerWorkers: 16 },
    suites: [{ objects: 10, rounds }],
    ...{ busy: undefined, synth: undefined },
    ...more,
  };
}
