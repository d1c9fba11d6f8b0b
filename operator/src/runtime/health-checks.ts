/** Answers undefined when all is well, else the reason why not, in one line. Must be quick: it runs at every probe. */
export type HealthCheck = () => string | undefined;

/** The checks of one endpoint, by name (a path segment: letters, digits, `-`). */
export type HealthChecks = Readonly<Record<string, HealthCheck>>;

/** What a run of the checks gave. */
export interface HealthReport {
  readonly ok: boolean;
  /** The names of the checks that failed, with their reasons. */
  readonly failed: readonly { readonly name: string; readonly reason: string }[];
  /** One line a check, as the API server's own `/readyz?verbose` prints them: `[+]name ok`, `[-]name failed: reason`. */
  readonly lines: readonly string[];
}

/** Runs every check. One that throws has failed, with the error's message as its reason. */
export function runChecks(checks: HealthChecks): HealthReport {
  const failed: { name: string; reason: string }[] = [];
  const lines: string[] = [];
  for (const [name, check] of Object.entries(checks)) {
    const reason = reasonOf(check);
    if (reason !== undefined) failed.push({ name, reason });
    lines.push(reason === undefined ? `[+]${name} ok` : `[-]${name} failed: ${reason}`);
  }
  return { ok: failed.length === 0, failed, lines };
}

function reasonOf(check: HealthCheck): string | undefined {
  try {
    return check();
  } catch (error) {
    return `the check itself failed: ${error instanceof Error ? error.message : String(error)}`;
  }
}
