import type { MachineFailure } from './transport';

/** Why a task failed: for one of the transport's reasons, or its script's own (`PreflightFailed`, `DiskFull`, ...). */
export type TaskFailure = MachineFailure | (string & {});

/** A task failed. The message says what, where and what to do, and holds no secret. */
export class TaskError extends Error {
  override readonly name = 'TaskError';
  constructor(
    /** The task's id. */
    readonly task: string,
    readonly reason: TaskFailure,
    message: string,
    options?: { readonly cause?: unknown },
  ) {
    super(`${task}: ${message}`, options);
  }
}
