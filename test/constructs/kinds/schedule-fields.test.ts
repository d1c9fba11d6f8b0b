import { CronTab } from '../../../constructs/kinds';
import { cronJobSchedule, snapshotSchedule, timeZoneField } from '../../../constructs/kinds/schedule-fields';
import { TIME_ZONES } from '../../../constructs/kinds/time-zones';
import { FILES_OF_SOME_MACHINES, SCHEDULES, ZONES } from '../../support/cron-job-cases';
import { wrongPaths } from './support';

/** The messages with which a field refuses a text. */
function refusals(field: ReturnType<typeof cronJobSchedule>, text: string): readonly string[] {
  return field.safeParse(text).error?.issues.map(({ message }) => message) ?? [];
}

describe('a schedule is taken as the API server takes it', () => {
  test.each(SCHEDULES)('%j: %p', (cronSpec, accepted) => {
    expect(wrongPaths(CronTab, { cronSpec, image: 'i' })).toEqual(accepted ? [] : ['spec.cronSpec']);
  });

  test.each([
    ['* * *', /^must be five fields .* such as 30 4 \* \* 1-5, or @hourly, .* or @every and a duration such as 90m$/],
    ['* * * * fri-1', /^a range must not run backwards: write 1-5, not 5-1$/],
    ['CRON_TZ=UTC 0 5 * * *', /^must not name a time zone with TZ= or CRON_TZ=; use the field timeZone$/],
    ['@every 3000000h', /^the duration of @every must be at most 292 years$/],
  ])('%j has one message', (schedule, message) => {
    expect(refusals(cronJobSchedule(), schedule)).toEqual([expect.stringMatching(message)]);
  });

  test('has at most 1024 characters', () => {
    expect(refusals(cronJobSchedule(), `* * * * *${' '.repeat(1015)}`)).toEqual([]);
    expect(refusals(cronJobSchedule(), `* * * * *${' '.repeat(1016)}`)).toHaveLength(1);
  });
});

describe('a schedule of snapshots', () => {
  test.each([
    ['0 */12 * * *', true],
    ['30 4 * * mon-FRI', true],
    ['@daily', true],
    ['0 0 * * fri-1', false],
    ['0  0 * * *', false],
    ['0 0 * * * ', false],
    ['*-$(id) * * * *', false],
    ['1,,2 * * * *', false],
    ['@every 5m', false],
    ['TZ=UTC 0 0 * * *', false],
  ])('%j: %p', (schedule, accepted) => {
    expect(refusals(snapshotSchedule(), schedule)).toHaveLength(accepted ? 0 : 1);
  });
});

describe('a time zone is taken as the API server takes it', () => {
  test.each(ZONES)('%j: %p', (timeZone, accepted) => {
    expect(wrongPaths(CronTab, { timeZone })).toEqual(accepted ? [] : ['spec.timeZone']);
  });

  test.each(FILES_OF_SOME_MACHINES)('%s is not of the IANA database', (timeZone) => {
    expect(refusals(timeZoneField(), timeZone)).toEqual([
      'must be a time zone of the IANA database, in its spelling, such as Europe/Berlin or Etc/UTC',
    ]);
  });

  test('every name that is known passes the pattern of the CRD', () => {
    const rules = CronTab.schema.spec.properties as { timeZone: { 'x-kubernetes-validations': [{ rule: string }] } };
    const [{ rule }] = rules.timeZone['x-kubernetes-validations'];
    const pattern = new RegExp(/self[.]matches\('(.*?)'\)/.exec(rule)?.[1] ?? '$.');
    expect([...TIME_ZONES].filter((name) => !pattern.test(name) || name.length > 64)).toEqual([]);
    expect(TIME_ZONES.size).toBe(598);
  });
});
