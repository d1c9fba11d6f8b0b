/** `NODE_OPTIONS` of an operator that has `memoryMiB` of memory. */
export function nodeOptions(memoryMiB: number): string {
  return [
    `--max-old-space-size=${oldSpaceMiB(memoryMiB)}`,
    `--max-semi-space-size=${SEMI_SPACE_MIB}`,
    `--v8-pool-size=${V8_THREADS}`,
  ].join(' ');
}

/**
 * The size of the old generation, in MiB, for `memoryMiB` of memory: V8 collects garbage hard before the
 * kernel kills the process. V8's own default ignores what else is in the container's memory.
 */
function oldSpaceMiB(memoryMiB: number): number {
  return memoryMiB - NON_OLD_SPACE_MIB;
}

/**
 * What one of our Node.js processes needs besides its old generation, in MiB: about 40 for code and buffers
 * (measured: 40 resident in an empty process of Node 20), about 60 for the young generation and V8's own
 * slack (measured: the heap limit is 58 above `--max-old-space-size`), and a reserve.
 */
const NON_OLD_SPACE_MIB = 112;

/**
 * The size of each half of the young generation, in MiB. By default V8 lets it grow to 16, and a process that
 * mostly waits never gives that memory back (measured with 1,000 objects: 92 MiB resident instead of 112, for
 * the same processor time).
 */
const SEMI_SPACE_MIB = 4;

/**
 * Threads beside the main one on which V8 compiles and collects garbage. Node starts four; with one, a process is 5 MiB smaller and
 * takes no more processor time (measured with 1,000 and 2,000 objects).
 */
const V8_THREADS = 1;

/** The least memory limit that leaves a useful heap, in MiB. */
export const MIN_MEMORY_MIB = 192;
