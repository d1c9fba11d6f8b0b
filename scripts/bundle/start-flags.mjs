/**
 * The first statement of the operator's bundle. It makes V8 compile WebAssembly with its baseline compiler
 * only.
 *
 * undici parses HTTP with llhttp, which is WebAssembly. V8 would optimize it a second after the start;
 * meanwhile the process grows by half of its size for some 100 ms, which the memory limit would have to allow
 * for. llhttp parses only the heads of messages, not their bodies. NODE_OPTIONS does not accept this flag,
 * hence it is set here. The banner comes first in the bundle, so it must contain the directive.
 */
export const startFlags = "'use strict';require('node:v8').setFlagsFromString('--liftoff-only');";
