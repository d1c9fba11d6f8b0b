import { k8s } from 'cdk8s-plus-27';
import { z } from 'zod';
import { cel } from '../kind/schema/cel';
import { withRule } from '../kind/fields';
import { defineKind, type KindObject } from '../kind/kind';
import { owned } from '../kube/resource-type';
import { dateTimeField, imageField } from './common-fields';
import { cronJobSchedule, timeZoneField } from './schedule-fields';

/** A container that runs on a schedule. Without a spec, nothing runs. */
export const CronTab = defineKind({
  group: 'stable.example.com',
  version: 'v1',
  kind: 'CronTab',
  plural: 'crontabs',
  shortNames: ['ct'],
  scope: 'Namespaced',
  description: 'A container that runs on a schedule. Without a spec nothing is scheduled.',
  spec: withRule(
    z.object({
      cronSpec: cronJobSchedule()
        .optional()
        .describe(
          'When to run: five fields (minute, hour, day of month, month, day of week), or @hourly, @daily and the like, or @every 90m.',
        ),
      image: imageField().optional().describe('Container image to run.'),
      timeZone: timeZoneField()
        .optional()
        .describe('IANA time zone of the schedule, for example Europe/Berlin. Default: that of the control plane.'),
      suspend: z.boolean().default(false).describe('Start no new runs.'),
      command: z
        .array(z.string().max(4096).describe('One word of the command.'))
        .max(64)
        .optional()
        .describe("Command to run instead of the image's entry point."),
    }),
    cel('has(self.cronSpec) == has(self.image)', 'cronSpec and image go together: give both or neither'),
    (spec) => (spec.cronSpec === undefined) === (spec.image === undefined),
  ),
  status: z.object({
    lastScheduleTime: dateTimeField().optional().describe('When a run was last started.'),
    active: z.int32().min(0).optional().describe('Number of runs under way.'),
  }),
  columns: [
    { name: 'Schedule', type: 'string', jsonPath: '.spec.cronSpec' },
    { name: 'Suspend', type: 'boolean', jsonPath: '.spec.suspend' },
    { name: 'Active', type: 'integer', jsonPath: '.status.active' },
    { name: 'Last', type: 'date', jsonPath: '.status.lastScheduleTime', description: 'When a run was last started.' },
  ],
  // A CronJob appends 11 characters to its name for the names of its Jobs, which are values of labels.
  names: { format: 'dns-subdomain', maxLength: 52 },
  owns: [owned.CronJob],
  samples: [
    // What the original takes.
    { name: 'test' },
    { name: 'nightly', spec: { cronSpec: '0 3 * * *', image: 'busybox:1.36' } },
  ],
  readyReason: ({ spec }) =>
    spec.cronSpec === undefined ? { reason: 'NothingScheduled', message: 'The spec asks for no runs.' } : undefined,
  children(scope, self) {
    const { cronSpec: schedule, image, timeZone, suspend, command } = self.spec;
    if (schedule === undefined || image === undefined) return;
    new k8s.KubeCronJob(scope, 'cron-job', {
      metadata: { name: self.metadata.name },
      spec: {
        schedule,
        timeZone,
        suspend,
        concurrencyPolicy: 'Forbid',
        jobTemplate: {
          spec: {
            template: {
              spec: { restartPolicy: 'OnFailure', containers: [{ name: 'crontab', image, command }] },
            },
          },
        },
      },
    });
  },
  observe({ children }) {
    const status = children.one(owned.CronJob)?.status;
    if (status === undefined) return {};
    return { lastScheduleTime: status.lastScheduleTime, active: status.active?.length ?? 0 };
  },
});
export type CronTab = KindObject<typeof CronTab>;
