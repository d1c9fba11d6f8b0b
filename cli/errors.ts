/** The command failed. The message says what failed, where, why, and what to do. */
export class CliError extends Error {
  override readonly name: string = 'CliError';
  /** Source files that the mistake may be in, as absolute paths. */
  readonly files: readonly string[];
  constructor(message: string, { files = [], ...options }: ErrorOptions & { readonly files?: readonly string[] } = {}) {
    super(message, options);
    this.files = files;
  }
}

/** The command line cannot be understood; the exit code is 2. */
export class UsageError extends CliError {
  override readonly name = 'UsageError';
}

/** The user ended the command, by a signal or by closing its stdout. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
  constructor(readonly signal: NodeJS.Signals | 'EPIPE') {
    super(`stopped by ${signal}`);
  }
}
