/**
 * What stands before the operator's bundle: it has V8 compile WebAssembly with its first compiler only.
 *
 * undici parses HTTP with llhttp, which is WebAssembly. V8 would optimize it a second after the start, in which the process grows by
 * half of its size for some 100 ms, and the memory limit has to bear that. Bodies are not parsed by it, only their heads.
 * NODE_OPTIONS does not take this flag, hence here. The banner comes first, so the directive has to stand in it.
 */
export const startFlags = "'use strict';require('node:v8').setFlagsFromString('--liftoff-only');";
