import { createContext, Script, type Context } from 'node:vm';

/** A function has not returned in time, and was stopped. */
export class TimeLimitError extends Error {
  override readonly name = 'TimeLimitError';
  constructor(readonly limitMs: number) {
    super(`it has not returned after ${limitMs / 1000} s and was stopped`);
    // Where the function was, V8 does not say; this one is of no use.
    this.stack = `${this.name}: ${this.message}`;
  }
}

/** The context that functions are called from, made at the first call. Its only name is `call`. */
let caller: { readonly context: Context; readonly script: Script; readonly scope: { call: () => void } } | undefined;

/**
 * Calls a synchronous function, and stops it if it has not returned in time, wherever it is: in a loop, in a regular
 * expression, in `JSON.parse`. V8 stops it from another thread, as `node:vm` has it; that thread is made for each call,
 * which costs some 25 to 100 µs.
 *
 * Caveats: what is stopped runs no `catch` and no `finally`; so call functions that leave nothing half done. One native
 * call, such as a `replace` that makes 100 MB of text, is stopped when it has ended. If the process got little processor
 * time meanwhile, because it was suspended or the machine is busy, the function is called once more.
 *
 * @throws TimeLimitError when it was stopped; whatever `call` throws
 */
export function runWithTimeLimit<T>(call: () => T, limitMs: number): T {
  const { context, script, scope } = (caller ??= makeCaller());
  const results: T[] = [];
  scope.call = () => void results.push(call());
  const before = process.cpuUsage();
  try {
    for (let attempt = 1; ; attempt += 1) {
      try {
        // Without displayErrors, which would write the line of the source into the stacks of errors.
        script.runInContext(context, { timeout: limitMs, displayErrors: false });
        return results[0] as T;
      } catch (error) {
        if ((error as NodeJS.ErrnoException | undefined)?.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
        const { user, system } = process.cpuUsage(before);
        const isStarved = (user + system) / 1000 < limitMs / 10;
        if (!isStarved || attempt === MAX_ATTEMPTS) throw new TimeLimitError(limitMs);
      }
    }
  } finally {
    scope.call = () => undefined;
  }
}

/** How often a function is called in all if the process got little processor time: longer, and the Lease is lost. */
const MAX_ATTEMPTS = 2;

function makeCaller(): NonNullable<typeof caller> {
  const scope = { call: () => undefined };
  // No file of the author, for those who read a stack.
  return { scope, context: createContext(scope), script: new Script('call()', { filename: 'kindred:time-limit' }) };
}
