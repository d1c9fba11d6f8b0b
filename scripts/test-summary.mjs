// Counts what ran, so that one line can tell.

/**
 * What a run of Jest counts. A file that could not be run is one failure, and so is a run that failed without saying why.
 *
 * @param code - Jest's exit code
 * @param readReport - gives the text of its JSON report; throws when there is none
 */
export function jestCounts(code, readReport) {
  let report;
  try {
    report = JSON.parse(readReport());
  } catch {
    console.log('jest ended without a report');
    return { passed: 0, failed: 1 };
  }
  const passed = report.numPassedTests;
  const failed = report.numFailedTests + report.numRuntimeErrorTestSuites;
  const silent = code !== 0 && failed === 0;
  if (silent) console.log(`jest failed (${code}) though no test did: see what it printed above`);
  return { passed, failed: silent ? 1 : failed };
}

/** All counts in one. */
export function sum(counts) {
  return {
    passed: counts.reduce((total, { passed }) => total + passed, 0),
    failed: counts.reduce((total, { failed }) => total + failed, 0),
  };
}

/** `123 passed, 0 failed`. */
export function summaryLine({ passed, failed }) {
  return `${passed} passed, ${failed} failed`;
}
