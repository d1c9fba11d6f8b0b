/** Receives one line for a person to read, without its line break. */
export type Progress = (line: string) => void;

/** The default: stderr, so that a command's stdout contains only its own output. */
export const progressToStderr: Progress = (line) => {
  process.stderr.write(`${line}\n`);
};

/** After how long a person is told that something takes long, and how often again, in milliseconds. */
const [firstAfterMs, thenEveryMs] = [2_000, 30_000];

/**
 * Waits for work, and says after two seconds what takes so long, then every half minute: `Pushing shop:1 (32 s)`.
 *
 * @param what - without a full stop
 * @returns what the work returns
 */
export async function whileSlow<T>(what: string, onProgress: Progress, work: () => Promise<T>): Promise<T> {
  const started = Date.now();
  let timer: NodeJS.Timeout;
  const tell = (): void => {
    onProgress(`${what} (${duration(Date.now() - started)})`);
    timer = setTimeout(tell, thenEveryMs);
  };
  timer = setTimeout(tell, firstAfterMs);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
  }
}

/** On stderr if it is a terminal: what comes and goes is for whoever waits there, and would be noise in the log of a script. */
export const progressToTerminal: Progress = (line) => {
  if (process.stderr.isTTY) progressToStderr(line);
};

/** A duration for people: `0.4 s`, `48 s`, `2 min 31 s`. @param ms - milliseconds */
export function duration(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** A size for people: `412 KB`, `87 MB`. @param bytes - bytes */
export function size(bytes: number): string {
  if (bytes < 1_000_000) return `${Math.ceil(bytes / 1000)} KB`;
  return bytes < 10_000_000_000 ? `${Math.round(bytes / 1_000_000)} MB` : `${Math.round(bytes / 1_000_000_000)} GB`;
}
