import { tmpdir } from 'node:os';
import { cacheFolder, LocalControlPlaneError } from '../local';
import { codeOf, isError } from '../local/errors';
import { InvalidObjectError } from '../constructs/core/errors';
import { ApiError, TransportError } from '../operator/src/client/errors';
import { KubeconfigError } from '../operator/src/client/kubeconfig';

/** The command cannot do what it was asked for. The message says what failed, where, why, and what to do. */
export class CliError extends Error {
  override readonly name: string = 'CliError';
}

/** The command line cannot be understood; the exit code is 2. */
export class UsageError extends CliError {
  override readonly name = 'UsageError';
}

/** Somebody asked the command to end. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  constructor(readonly signal: NodeJS.Signals | 'EPIPE') {
    super(`stopped by ${signal}`);
  }
}

/** What a person is told of an error: its own words where they were written for people, else the stack, for a report. */
export function explain(error: unknown): string {
  const code = codeOf(error);
  if (code === 'ENOSPC' || code === 'EDQUOT') return fullDisk(error);
  if (error instanceof ApiError) return `${error.request} was refused by the API server: ${error.message}`;
  if (isForPeople(error)) return error.message;
  return `this should not happen, please report it: ${isError(error) ? (error.stack ?? error.message) : String(error)}`;
}

function isForPeople(error: unknown): error is Error {
  return [CliError, LocalControlPlaneError, KubeconfigError, InvalidObjectError, TransportError].some(
    (type) => error instanceof type,
  );
}

function fullDisk(error: unknown): string {
  const why = isError(error) ? error.message.replace(/[.\s]*$/, '') : String(error);
  return (
    `the disk is full: ${why}. Free some space (downloaded and built parts lie in ${cacheFolder()}, ` +
    `what is running in ${tmpdir()}) and run it again.`
  );
}
