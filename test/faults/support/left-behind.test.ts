import type { KubeObject } from '../../../constructs/kube/kube-object';
import { findLeftoverField } from './steady-state';

type Entry = Readonly<Record<string, unknown>>;

const spec = (...fields: string[]): Entry => ({
  'f:spec': Object.fromEntries(fields.map((name) => [`f:${name}`, {}])),
});

function child(...managedFields: Entry[]): KubeObject {
  const metadata = { name: 'job', managedFields };
  return { apiVersion: 'batch/v1', kind: 'CronJob', metadata };
}

const created = (...fields: string[]): Entry => ({
  ...{ manager: 'kindred', operation: 'Update' },
  fieldsV1: spec(...fields),
});
const applied = (...fields: string[]): Entry => ({
  ...{ manager: 'kindred', operation: 'Apply' },
  fieldsV1: spec(...fields),
});

test.each([
  ['what was never changed', child(created('schedule', 'timeZone'))],
  ['what is applied only', child(applied('schedule'))],
  ['what an apply names too', child(applied('schedule', 'suspend'), created('schedule'))],
  ['what others own', child(applied('schedule'), { ...created('timeZone'), manager: 'them' })],
  ['a status', child(applied('schedule'), { ...created('timeZone'), subresource: 'status' })],
])('%s leaves nothing behind', (_, object) => {
  expect(findLeftoverField(object)).toBeUndefined();
});

test('what was created and is applied no more is left behind', () => {
  expect(findLeftoverField(child(applied('schedule'), created('schedule', 'timeZone')))).toBe('f:spec.f:timeZone');
});
