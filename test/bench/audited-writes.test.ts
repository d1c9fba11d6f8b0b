import type { AuditEvent } from '../../local';
import { auditedWrites } from './operator/audited-writes';

function request(verb: string, resource: string, at: string, more: Partial<AuditEvent> = {}): AuditEvent {
  return {
    ...{ auditID: 'a', stage: 'ResponseComplete', verb, requestURI: '/', user: { username: 'operator' } },
    ...{ objectRef: { resource }, responseStatus: { code: 200 } },
    ...{ requestReceivedTimestamp: `2030-01-01T00:00:0${at}Z`, stageTimestamp: `2030-01-01T00:00:0${at}Z` },
    ...more,
  };
}

test('only writes of the account count; events stand apart, Leases nowhere', () => {
  const log = [
    request('list', 'deployments', '0.000000'),
    request('update', 'leases', '0.100000'),
    request('create', 'deployments', '1.000500', { responseStatus: { code: 201 } }),
    request('patch', 'helloapps', '2.000000', { objectRef: { resource: 'helloapps', subresource: 'status' } }),
    request('create', 'events', '3.000000'),
    request('create', 'deployments', '4.000000', { user: { username: 'somebody' } }),
    request('patch', 'deployments', '5.000000', { stage: 'ResponseStarted' }),
  ];
  const start = Date.parse('2030-01-01T00:00:00Z');
  expect(auditedWrites(log, 'operator')).toEqual({
    counts: { 'create deployments 201': 1, 'patch helloapps/status 200': 1 },
    ...{ total: 2, events: 1, firstAt: start + 1000.5, lastAt: start + 2000 },
  });
});
