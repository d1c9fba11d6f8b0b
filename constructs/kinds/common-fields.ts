import { z } from 'zod';
import { withRule } from '../kind/fields';
import { cel } from '../kind/schema/cel';

/** A container image reference. The schema only requires one; the registry decides what exists. */
export function imageField(): z.ZodString {
  return z.string().min(1).max(1024);
}

/**
 * A time as the API server writes it, RFC 3339. The server checks the format; zod's own pattern would repeat
 * that.
 */
export function dateTimeField(): z.ZodString {
  return z.string().meta({ format: 'date-time' });
}

/** A number of pods: what a Deployment's `replicas` can hold. */
export function replicasField(): z.ZodInt32 {
  return z.int32().min(0);
}

/**
 * The schedule of a CronJob: five fields or a macro.
 *
 * The controller uses robfig/cron's standard parser (Kubernetes documentation, "Schedule syntax"). The
 * pattern accepts what that parser accepts, except `@every`, which CronJobs accept but their documentation
 * does not name, and a `TZ=` prefix, which they reject. It is a CEL rule, not a `pattern` of the CRD: the API
 * server would quote the whole pattern, which tells users nothing.
 */
export function cronSchedule(): z.ZodString {
  const schedule = withRule(
    z.string().max(100),
    cel(
      `self.matches('${CRON_SCHEDULE}')`,
      'must be five fields (minute hour day-of-month month day-of-week) with values in range, such as 30 4 * * 1-5, ' +
        'or @hourly, @daily, @weekly, @monthly, @yearly',
    ),
    (text) => schedulePattern.test(text),
  );
  return withRule(
    schedule,
    cel(`!self.matches('${REVERSED_RANGE}')`, 'a range must not run backwards: write 1-5, not 5-1'),
    (text) => !reversedRange.test(text),
  );
}

const STEP = '(/[1-9][0-9]{0,2})?';

function cronField(value: string): string {
  const item = `([*?]|${value}(-${value})?)${STEP}`;
  return `${item}(,${item})*`;
}

const MINUTE = cronField('[0-5]?[0-9]');
const HOUR = cronField('([01]?[0-9]|2[0-3])');
const DAY_OF_MONTH = cronField('(0?[1-9]|[12][0-9]|3[01])');
const MONTHS = caseInsensitivePatterns('Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec');
const MONTH = cronField(`(0?[1-9]|1[0-2]|${MONTHS.join('|')})`);
const DAYS = caseInsensitivePatterns('Sun Mon Tue Wed Thu Fri Sat');
const DAY_OF_WEEK = cronField(`(0?[0-6]|${DAYS.join('|')})`);

/** Patterns of names in upper, lower or mixed case; zod's patterns have no flags. */
function caseInsensitivePatterns(words: string): readonly string[] {
  return words.split(' ').map((word) => word.replaceAll(/./g, (c) => `[${c.toUpperCase()}${c.toLowerCase()}]`));
}

/** The pattern of a schedule, in RE2 syntax. */
const CRON_SCHEDULE = `^(${[MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK].join(' ')}|@(hourly|daily|midnight|weekly|monthly|yearly|annually))$`;

const schedulePattern = new RegExp(CRON_SCHEDULE);

/**
 * A range that runs backwards, which the controller rejects: `5-1`, `30-15`, `FRI-MON`. It does not find one
 * of a number and a name, such as `FRI-1`. It is a pattern, not a computation, because splitting a string in
 * CEL exceeds the cost limit of a rule.
 */
const REVERSED_RANGE = `(^|[ ,])(${reversedRangePatterns().join('|')})([/ ,]|$)`;

function reversedRangePatterns(): readonly string[] {
  const upTo = (last: number): readonly number[] => Array.from({ length: last + 1 }, (_, digit) => digit);
  const ones = (tens: string): readonly string[] =>
    upTo(8).map((b) => `${tens}[${String(b + 1)}-9]-${tens}${String(b)}`);
  return [
    ...ones('0?'),
    '[1-5][0-9]-0?[0-9]',
    ...[1, 2, 3, 4].map((tens) => `[${String(tens + 1)}-5][0-9]-${String(tens)}[0-9]`),
    ...['1', '2', '3', '4', '5'].flatMap(ones),
    ...[MONTHS, DAYS].flatMap((all) => all.slice(1).map((later, i) => `${later}-(${all.slice(0, i + 1).join('|')})`)),
  ];
}

const reversedRange = new RegExp(REVERSED_RANGE);
