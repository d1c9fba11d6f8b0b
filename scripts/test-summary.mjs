// Counts the results of a test run, and lists what failed.
import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/**
 * The counts of a Jest run. A file that could not be run counts as one failure, and so does a run that failed
 * although none of its tests did.
 *
 * @param run - `code`: Jest's exit code; `killed`: why the run was killed, if it was; `root`: of the files; `readReport`: returns
 * the text of Jest's JSON report, and throws when there is none
 */
export function jestCounts({ code, killed, root, readReport }) {
  let report;
  try {
    report = JSON.parse(readReport());
  } catch (error) {
    return {
      passed: 0,
      failed: 1,
      skipped: 0,
      failures: [{ name: 'Jest', error: killed ?? `there is no report: ${error.message}` }],
    };
  }
  const failures = report.testResults.flatMap((file) => failuresOf(file, root));
  if (killed !== undefined) failures.push({ name: 'Jest', error: killed });
  if (code !== 0 && failures.length === 0) {
    failures.push({ name: 'Jest', error: `it ended with ${code} although no test failed; see its output above` });
  }
  return { passed: report.numPassedTests, failed: failures.length, skipped: report.numPendingTests, failures };
}

function failuresOf({ name: path, status, message, assertionResults }, root) {
  const file = relative(root, path);
  const failed = assertionResults.filter((test) => test.status === 'failed');
  if (status === 'failed' && failed.length === 0) {
    return [{ file, name: 'the file could not be run, or left an error behind', error: suiteError(message) }];
  }
  return failed.map(({ fullName, failureMessages }) => ({
    file,
    name: fullName,
    error: firstLine(failureMessages[0]),
  }));
}

/** The error below Jest's own headings, which begin with a bullet. */
function suiteError(message) {
  const lines = linesOf(message);
  return lines.find((line) => !line.startsWith('●')) ?? lines[0] ?? '';
}

function firstLine(message) {
  return linesOf(message)[0] ?? '';
}

function linesOf(message = '') {
  return stripVTControlCharacters(message)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** Adds up counts. */
export function sum(counts) {
  const total = (key) => counts.reduce((value, count) => value + count[key], 0);
  return {
    passed: total('passed'),
    failed: total('failed'),
    skipped: total('skipped'),
    failures: counts.flatMap(({ failures }) => failures),
  };
}

/** Two lines for each failure: its name and file, then the first line of its error. */
export function failureLines({ failures }) {
  return failures.flatMap(({ name, file, error }) => [
    `FAILED ${name}${file === undefined ? '' : ` (${file})`}`,
    `  ${error}`,
  ]);
}

/** `123 passed, 0 failed`, and how many were skipped, if any were. */
export function summaryLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
