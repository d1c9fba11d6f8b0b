import { setFlagsFromString } from 'node:v8';

/**
 * Sets V8 up for a process that runs much code a little: call it before any work.
 *
 * The optimising compiler takes no functions into others. For thousands of objects, not millions, compiling larger pieces costs more than
 * running them saves: without, an operator takes 9 % less processor time for its first 1,000 objects (measured against the API server's,
 * in six interleaved runs). `NODE_OPTIONS` does not accept the flag; nothing has been optimised yet when the operator starts.
 */
export function setEngineFlags(): void {
  setFlagsFromString('--no-turbo-inlining');
}
