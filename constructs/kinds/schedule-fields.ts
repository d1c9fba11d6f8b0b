import { z } from 'zod';
import { withRule } from '../kind/fields';
import { cel } from '../kind/schema/cel';
import { TIME_ZONES } from './time-zones';

/**
 * The `spec.schedule` of a CronJob, as the API server validates it: five fields, a macro, or `@every` and a
 * duration. It is not trimmed, and rendered as written.
 *
 * The server parses it with robfig/cron v3 (`ParseStandard`) and refuses `TZ=`. The rules accept what that
 * accepts, oddities too: any blanks around the fields, `+5` and `005`, empty items as in `1,,2`, and text
 * that the parser ignores, as in `*-5`. The only limits of our own: at most 1024 characters, since CEL needs
 * a bound, and 18 digits in a step.
 *
 * They are CEL rules, not a `pattern` of the CRD: the API server would quote the whole pattern, which tells
 * users nothing. And they are patterns, not a computation, because splitting a string in CEL exceeds the cost
 * limit of a rule.
 */
export function cronJobSchedule(): z.ZodString {
  const fits = new RegExp(CRON_JOB_SCHEDULE);
  const schedule = withRule(
    z.string().max(1024),
    cel(
      `self.contains('TZ') || self.matches('${CRON_JOB_SCHEDULE}')`,
      `${FIVE_FIELDS}, or @hourly, @daily, @weekly, @monthly, @yearly, or @every and a duration such as 90m`,
    ),
    (text) => text.includes('TZ') || fits.test(text),
  );
  const withoutZone = withRule(
    schedule,
    cel("!self.contains('TZ')", 'must not name a time zone with TZ= or CRON_TZ=; use the field timeZone'),
    (text) => !text.includes('TZ'),
  );
  const bounded = withRule(
    withoutZone,
    // duration() calls what the parser calls: it fails beyond 64 bits of nanoseconds, else the rule is true.
    cel(
      `!self.matches('^${EVERY}$') || duration(self.substring(7)) <= duration('2562047h47m16.854775807s')`,
      'the duration of @every must be at most 292 years',
    ),
    isDurationInRange,
  );
  return forwardRanges(bounded, CRON_JOB.blank);
}

/**
 * The schedule of etcd snapshots of RKE2 and K3s, which parse it as a CronJob's is parsed.
 *
 * It ends up in a file on machines, so it is narrower than {@link cronJobSchedule}: fields with one space
 * between them, or a macro.
 */
export function snapshotSchedule(): z.ZodString {
  const fits = new RegExp(SNAPSHOT_SCHEDULE);
  const schedule = withRule(
    z.string().max(100),
    cel(`self.matches('${SNAPSHOT_SCHEDULE}')`, `${FIVE_FIELDS}, or @hourly, @daily, @weekly, @monthly, @yearly`),
    (text) => fits.test(text),
  );
  return forwardRanges(schedule, SNAPSHOT.blank);
}

/**
 * The `spec.timeZone` of a CronJob: a name of the IANA time zone database, in its own spelling. `Local` is
 * refused, and what only some machines know (`posix/UTC`, `right/UTC`, `localtime`, in small letters).
 *
 * Which zones exist depends on the API server's copy of the database, so no list is part of the CRD: the rule
 * loads the zone with the function that the validation of a CronJob calls, in the same process. The error
 * of an unknown zone has the rule's message. Here, where the answer may not depend on a machine,
 * {@link TIME_ZONES} decides. See docs/adr/0022-the-api-server-looks-time-zones-up.md.
 */
export function timeZoneField(): z.ZodString {
  return withRule(
    z.string().max(64),
    cel(
      `self.matches('^${ZONE_PART}(/${ZONE_PART})*$') && self.lowerAscii() != 'local' && ` +
        "timestamp('2000-01-01T00:00:00Z').getFullYear(self) > 0",
      'must be a time zone of the IANA database, in its spelling, such as Europe/Berlin or Etc/UTC',
    ),
    (text) => TIME_ZONES.has(text),
  );
}

/** A part of a name between slashes, as long as the validation of a CronJob allows. */
const ZONE_PART = '[A-Z][A-Za-z0-9._+-]{0,13}';

const FIVE_FIELDS =
  'must be five fields (minute hour day-of-month month day-of-week) with values in range, such as 30 4 * * 1-5';

/**
 * The patterns are RE2 in a string literal of CEL, and JavaScript. Both read `\t` and `\u1680` alike, the one
 * in the literal, the other in the pattern. Other characters that need an escape stand in a class.
 */
interface Form {
  /** The characters between fields, as the inside of a class. */
  readonly blank: string;
  /** Whether fields may have blanks around them, empty items, and ignored text. */
  readonly oddities: boolean;
}

/** The blanks are those of Go's `unicode.IsSpace`. */
const CRON_JOB: Form = {
  blank: String.raw`\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000`,
  oddities: true,
};
const SNAPSHOT: Form = { blank: ' ', oddities: false };

/** What may stand before a number. */
const ZEROS = '[+]?0*';
const STEP = `(/${ZEROS}[1-9][0-9]{0,17})?`;

const MONTHS = anyCase('Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec');
const DAYS = anyCase('Sun Mon Tue Wed Thu Fri Sat');

/** The values of the five fields. */
const VALUES = [
  `${ZEROS}[1-5]?[0-9]`,
  `${ZEROS}(1?[0-9]|2[0-3])`,
  `${ZEROS}([1-9]|[12][0-9]|3[01])`,
  `(${ZEROS}([1-9]|1[0-2])|${MONTHS.join('|')})`,
  `(${ZEROS}[0-6]|${DAYS.join('|')})`,
];

/**
 * Patterns of names in upper, lower or mixed case; zod's patterns have no flags. Go's `strings.ToLower` takes
 * the dotted capital I (U+0130) to be an i.
 */
function anyCase(words: string): readonly string[] {
  return words.split(' ').map((word) =>
    word.replaceAll(/./g, (c) => {
      const both = `${c.toUpperCase()}${c.toLowerCase()}`;
      return `[${both === 'Ii' ? String.raw`Ii\u0130` : both}]`;
    }),
  );
}

function fiveFields({ blank, oddities }: Form): string {
  const fields = VALUES.map((value) => {
    const item = `([*?]${oddities ? `(-[^/,${blank}]*)?` : ''}|${value}(-${value})?)${STEP}`;
    return oddities ? `(,*${item}(,+${item})*,*|,+)` : `${item}(,${item})*`;
  });
  return oddities ? `[${blank}]*${fields.join(`[${blank}]+`)}[${blank}]*` : fields.join(blank);
}

const MACRO = '@(hourly|daily|midnight|weekly|monthly|yearly|annually)';
/** `@every` and what Go's `time.ParseDuration` takes; both micro signs are units. */
const UNITS = String.raw`ns|us|\u00b5s|\u03bcs|ms|s|m|h`;
const EVERY = `@every [-+]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(${UNITS}))+)`;

const CRON_JOB_SCHEDULE = `^(${fiveFields(CRON_JOB)}|${MACRO}|${EVERY})$`;
const SNAPSHOT_SCHEDULE = `^(${fiveFields(SNAPSHOT)}|${MACRO})$`;

/** Whether the duration of `@every` fits into 64 bits of nanoseconds, as Go counts it. */
function isDurationInRange(schedule: string): boolean {
  const [, sign, duration] = /^@every ([-+]?)(.*)$/.exec(schedule) ?? [];
  if (duration === undefined) return true;
  let total = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of duration.matchAll(DURATION_PART)) {
    const nanoseconds = NANOSECONDS[unit] ?? 0n;
    total += BigInt(whole) * nanoseconds + (BigInt(fraction) * nanoseconds) / 10n ** BigInt(fraction.length);
  }
  return total < 2n ** 63n || (sign === '-' && total === 2n ** 63n);
}

const DURATION_PART = new RegExp(`([0-9]*)[.]?([0-9]*)(${UNITS})`, 'g');

const NANOSECONDS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  '\u00b5s': 1_000n,
  '\u03bcs': 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

/** Adds the rule that a range must not run backwards, as in `5-1`, `30-15` and `FRI-1`. */
function forwardRanges(schedule: z.ZodString, blank: string): z.ZodString {
  const pattern = `(^|[,${blank}])(${reversedRanges().join('|')})([/,${blank}]|$)`;
  const reversed = new RegExp(pattern);
  return withRule(
    schedule,
    cel(`!self.matches('${pattern}')`, 'a range must not run backwards: write 1-5, not 5-1'),
    (text) => !reversed.test(text),
  );
}

function reversedRanges(): readonly string[] {
  const upTo = (last: number): readonly number[] => Array.from({ length: last + 1 }, (_, digit) => digit);
  const ones = (tens: number | ''): readonly string[] => upTo(8).map((b) => `${tens}[${b + 1}-9]-${ZEROS}${tens}${b}`);
  const numbers = [
    ...ones(''),
    `[1-5][0-9]-${ZEROS}[0-9]`,
    ...[1, 2, 3, 4].map((tens) => `[${tens + 1}-5][0-9]-${ZEROS}${tens}[0-9]`),
    ...[1, 2, 3, 4, 5].flatMap(ones),
  ];
  return [`${ZEROS}(${numbers.join('|')})`, ...reversedNames(MONTHS, 1), ...reversedNames(DAYS, 0)];
}

/** The ranges that run backwards and have at least one name. `first`: the number of the first name. */
function reversedNames(names: readonly string[], first: number): readonly string[] {
  const numberOf = (index: number): number => first + index;
  return names.flatMap((name, i) => {
    const earlier = names.slice(0, i);
    const later = names.slice(i + 1).map((_, j) => numberOf(i + 1 + j));
    return [
      ...(earlier.length > 0
        ? [`${name}-(${earlier.join('|')}|${ZEROS}(${earlier.map((_, j) => numberOf(j)).join('|')}))`]
        : []),
      ...(later.length > 0 ? [`${ZEROS}(${later.join('|')})-${name}`] : []),
    ];
  });
}
