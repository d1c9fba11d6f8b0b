/**
 * What a Node.js process of ours needs besides its old generation, in MiB: about 40 for code and buffers (measured: 40 resident
 * on an empty process of Node 20) and about 60 for the young generation and for V8's own slack (measured: the heap limit stands 58
 * over `--max-old-space-size`), and a little room.
 */
const NON_OLD_SPACE_MIB = 112;

/** The least memory limit that leaves a useful heap, in MiB. */
export const MIN_MEMORY_MIB = 192;

/**
 * The size of the old generation, in MiB, for so much memory: garbage is collected hard before the kernel kills the process. V8's
 * own guess takes no account of what else stands in the container.
 */
export function oldSpaceMiB(memoryMiB: number): number {
  return memoryMiB - NON_OLD_SPACE_MIB;
}

/**
 * Each half of the young generation, in MiB. V8 lets it grow to 16 on its own, which the memory of a process that mostly waits never gives
 * back (measured with 1,000 objects: 92 MiB resident instead of 112, for the same processor time).
 */
export const SEMI_SPACE_MIB = 4;

/**
 * Threads beside the main one on which V8 compiles and collects garbage. Node starts four; with one, a process is 5 MiB smaller and
 * takes no more processor time (measured with 1,000 and 2,000 objects).
 */
export const V8_THREADS = 1;

/** `NODE_OPTIONS` of an operator for so much memory. */
export function nodeOptions(memoryMiB: number): string {
  return [
    `--max-old-space-size=${oldSpaceMiB(memoryMiB)}`,
    `--max-semi-space-size=${SEMI_SPACE_MIB}`,
    `--v8-pool-size=${V8_THREADS}`,
  ].join(' ');
}
