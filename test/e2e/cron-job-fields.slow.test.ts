import * as fc from 'fast-check';
import { CronTab } from '../../constructs/kinds';
import { TIME_ZONES } from '../../constructs/kinds/time-zones';
import { objectProblems } from '../../constructs/kind/validate';
import { useControlPlane } from '../support/use-control-plane';
import { waitFor } from '../../testing/wait-for';
import { FILES_OF_SOME_MACHINES, SCHEDULES, ZONES } from '../support/cron-job-cases';
import { Api, installCrd } from './crds/api';

/**
 * Schedules and time zones of a CronTab against those of a CronJob, on a real API server. The fast test is
 * `constructs/kinds/schedule-fields.test.ts`.
 */
const RUNS = 2000;
const CRON_JOBS = '/apis/batch/v1/namespaces/default/cronjobs';
const CRON_TABS = `/apis/${CronTab.apiVersion}/namespaces/default/${CronTab.plural}`;
const plane = useControlPlane({ components: 'api' });
let api: Api;

interface Fields {
  readonly schedule?: string;
  readonly timeZone?: string;
}

interface Verdict {
  readonly accepted: boolean;
  /** Why a field is refused. */
  readonly causes: readonly string[];
}

async function verdict(path: string, object: object): Promise<Verdict> {
  const { status, body } = await api.ask('POST', `${path}?dryRun=All&fieldValidation=Strict`, object);
  if (status === 201) return { accepted: true, causes: [] };
  if (status !== 422) throw new Error(`the API server answered ${status}: ${String(body.message)}`);
  const { causes = [] } = body.details as { causes?: readonly { field: string; message: string }[] };
  return { accepted: false, causes: causes.map(({ field, message }) => `${field}: ${message}`) };
}

function cronJob({ schedule = '@daily', timeZone }: Fields): Promise<Verdict> {
  const template = { spec: { restartPolicy: 'OnFailure', containers: [{ name: 'a', image: 'a' }] } };
  const spec = { schedule, timeZone, jobTemplate: { spec: { template } } };
  return verdict(CRON_JOBS, { apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'a' }, spec });
}

function cronTabObject({ schedule = '@daily', timeZone }: Fields) {
  const { apiVersion, kind } = CronTab;
  return {
    ...{ apiVersion, kind, metadata: { name: 'a' } },
    spec: { cronSpec: schedule, image: 'a', ...(timeZone === undefined ? {} : { timeZone }) },
  };
}

function cronTab(fields: Fields): Promise<Verdict> {
  return verdict(CRON_TABS, cronTabObject(fields));
}

/** Which of the three accept the fields. */
async function accepting(fields: Fields) {
  const [job, tab] = await Promise.all([cronJob(fields), cronTab(fields)]);
  return {
    cronJob: job.accepted,
    cronTab: tab.accepted,
    typeScript: objectProblems(CronTab, cronTabObject(fields)).length === 0,
  };
}

function all(accepted: boolean) {
  return { cronJob: accepted, cronTab: accepted, typeScript: accepted };
}

beforeAll(async () => {
  api = await Api.of(plane.adminKubeconfig);
  await installCrd(api, CronTab);
  await waitFor(async () => (await api.ask('GET', CRON_TABS)).status === 200, { describe: 'CronTabs to be served' });
}, 60_000);

afterAll(() => api.close());

test.each(SCHEDULES)('schedule %j: %p', async (schedule, accepted) => {
  expect(await accepting({ schedule })).toEqual(all(accepted));
});

test.each(ZONES)('time zone %j: %p', async (timeZone, accepted) => {
  expect(await accepting({ timeZone })).toEqual(all(accepted));
});

test.each(FILES_OF_SOME_MACHINES)('time zone %j is refused, whatever the server has', async (timeZone) => {
  expect(await accepting({ timeZone })).toMatchObject({ cronTab: false, typeScript: false });
});

test('every zone of the list is one of the server', async () => {
  const refused: string[] = [];
  for (const timeZone of TIME_ZONES) {
    const { cronJob: job, cronTab: tab } = await accepting({ timeZone });
    if (!job || !tab) refused.push(timeZone);
  }
  expect(refused).toEqual([]);
}, 60_000);

test('the list has every zone that this Node.js knows; add what is missing to time-zones.ts', () => {
  expect(Intl.supportedValuesOf('timeZone').filter((name) => !TIME_ZONES.has(name))).toEqual([]);
});

test.each([
  [{ schedule: '* * *' }, 'spec.cronSpec: Invalid value: "* * *": must be five fields'],
  [{ schedule: '* * * * fri-1' }, 'spec.cronSpec: Invalid value: "* * * * fri-1": a range must not run backwards'],
  [
    { schedule: 'TZ=UTC * * * * *' },
    'spec.cronSpec: Invalid value: "TZ=UTC * * * * *": must not name a time zone with TZ=',
  ],
  [{ schedule: '@every 3000000h' }, 'evaluating rule: the duration of @every must be at most 292 years'],
  [{ timeZone: 'Local' }, 'spec.timeZone: Invalid value: "Local": must be a time zone of the IANA database'],
  [
    { timeZone: 'Foo/Bar' },
    'unknown time zone Foo/Bar evaluating rule: must be a time zone of the IANA database, in its spelling',
  ],
])('%j is refused with one message', async (fields, message) => {
  const { causes } = await cronTab(fields);
  expect(causes).toEqual([expect.stringContaining(message)]);
});

const blank = fc.constantFrom(' ', ' ', ' ', ' ', ' ', '  ', '\t', '\n', '\u00a0', '\u200b');
const value = fc.constantFrom(...'* ? 0 1 5 +5 05 6 7 12 13 31 60 jan Mar sun FRI x'.split(' '));
const item = fc
  .tuple(value, fc.option(value, { freq: 3 }), fc.option(fc.constantFrom('0', '1', '+2', '05', ''), { freq: 4 }))
  .map(([low, high, step]) => `${low}${high === null ? '' : `-${high}`}${step === null ? '' : `/${step}`}`);
const field = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('*', '1', '1-5', '*/2') },
  { weight: 1, arbitrary: fc.array(item, { minLength: 1, maxLength: 3 }).map((items) => items.join(',')) },
);
const schedules = fc
  .tuple(fc.array(fc.tuple(field, blank), { minLength: 5, maxLength: 5 }), fc.boolean())
  .map(([fields, trailing]) => {
    const text = fields.flat();
    return (trailing ? text : text.slice(0, -1)).join('');
  });

test('any schedule', async () => {
  let both = 0;
  await fc.assert(
    fc.asyncProperty(schedules, async (schedule) => {
      const found = await accepting({ schedule });
      expect(found).toEqual(all(found.cronJob));
      if (found.cronJob) both += 1;
    }),
    { numRuns: RUNS },
  );
  expect(both).toBeGreaterThan(RUNS / 20);
}, 120_000);
