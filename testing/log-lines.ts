/** One line of the operator's JSON log. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly time: string;
  readonly [field: string]: unknown;
}

interface Waiter {
  readonly wanted: (line: LogLine) => boolean;
  readonly resolve: (line: LogLine) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The JSON log of a process, parsed line by line as it is written; callers wait for a line without polling.
 */
export class LogLines {
  /** Every line so far, oldest first. */
  readonly all: LogLine[] = [];
  private rest = '';
  private ended: string | undefined;
  private readonly waiters = new Set<Waiter>();

  /** Adds output of the process. */
  push(chunk: string): void {
    const lines = (this.rest + chunk).split('\n');
    this.rest = lines.pop() ?? '';
    for (const text of lines) if (text !== '') this.add(parsed(text));
  }

  /** The process has ended: rejects every caller that still waits for a line. */
  end(why: string): void {
    this.ended = why;
    for (const { reject } of this.waiters) reject(new Error(why));
    this.waiters.clear();
  }

  /**
   * The first line with this message, past or future.
   *
   * @throws Error when the process ends first, or after `timeoutMs`
   */
  async line(msg: string, timeoutMs = 60_000): Promise<LogLine> {
    const wanted = (line: LogLine): boolean => line.msg === msg;
    const there = this.all.find(wanted);
    if (there !== undefined) return there;
    if (this.ended !== undefined) throw new Error(`${this.ended}; it never logged "${msg}"`);
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<LogLine>((resolve, reject) => {
        this.waiters.add({ wanted, resolve, reject });
        const tooLate = (): void => reject(new Error(`the operator did not log "${msg}" in ${String(timeoutMs)} ms`));
        timer = setTimeout(tooLate, timeoutMs);
      });
    } finally {
      clearTimeout(timer);
    }
  }

  /** The lines of level `error` and above. */
  errors(): readonly LogLine[] {
    return this.all.filter(({ level }) => level === 'error' || level === 'fatal');
  }

  private add(line: LogLine): void {
    this.all.push(line);
    for (const waiter of this.waiters) {
      if (!waiter.wanted(line)) continue;
      this.waiters.delete(waiter);
      waiter.resolve(line);
    }
  }
}

/** Parses a line; one that is not JSON (a crash of Node itself) becomes an error. */
function parsed(text: string): LogLine {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return { level: 'error', msg: text, time: '' };
  }
}
