import type { Result } from './result';
import type { Values } from './values';

/** Something of a run failed. The message has every diagnostic; `result` what was done all the same. */
export class DeploymentError extends Error {
  override readonly name = 'DeploymentError';
  constructor(
    message: string,
    readonly result: Result,
  ) {
    super(message);
  }
}

/** The run was ended from outside, as a killed `pulumi` is: what was under way is not in the state. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
}

/** The run goes no further since something else failed. Told to nobody: the cause is. */
export class StoppedError extends Error {
  override readonly name = 'StoppedError';
}

/**
 * Thrown by a provider: the resource is there, but did not become what it should. It is kept in the state, and the next run updates
 * it.
 */
export class PartialError extends Error {
  override readonly name = 'PartialError';
  constructor(
    message: string,
    readonly id: string,
    readonly outputs: Values,
  ) {
    super(message);
  }
}
