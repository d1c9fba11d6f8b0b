import type { AuditEvent } from '../../local';
import { summarizeAudit } from '../../bench/audit';

function request(verb: string, resource: string, at: string, more: Partial<AuditEvent> = {}): AuditEvent {
  return {
    ...{ auditID: 'a', stage: 'ResponseComplete', verb, requestURI: '/', user: { username: 'operator' } },
    ...{ objectRef: { resource }, responseStatus: { code: 200 } },
    ...{ requestReceivedTimestamp: `2030-01-01T00:00:0${at}Z`, stageTimestamp: `2030-01-01T00:00:0${at}Z` },
    ...more,
  };
}

test('only what the account wrote counts as writes; events stand apart, Leases nowhere; requests are all, watches once', () => {
  const log = [
    request('list', 'deployments', '0.000000'),
    request('watch', 'deployments', '0.050000', { stage: 'ResponseStarted' }),
    request('update', 'leases', '0.100000'),
    request('create', 'deployments', '1.000500', { responseStatus: { code: 201 } }),
    request('patch', 'helloapps', '2.000000', { objectRef: { resource: 'helloapps', subresource: 'status' } }),
    request('create', 'events', '3.000000', { responseStatus: { code: 201 } }),
    request('create', 'deployments', '4.000000', { user: { username: 'somebody' } }),
    request('watch', 'deployments', '5.000000'),
  ];
  const start = Date.parse('2030-01-01T00:00:00Z');
  expect(summarizeAudit(log, 'operator')).toEqual({
    writes: { 'create deployments 201': 1, 'patch helloapps/status 200': 1 },
    requests: { 'list 200': 1, 'watch 200': 1, 'update 200': 1, 'create 201': 2, 'patch 200': 1 },
    ...{ writeCount: 2, events: 1, firstAt: start + 1000.5, lastAt: start + 2000, done: 1, doneAt: start + 2000 },
  });
});

test('an object is done with the first write of its status that the server took', () => {
  const status = (name: string, at: string, code = 200): AuditEvent => {
    const objectRef = { resource: 'helloapps', subresource: 'status', namespace: 'bench-1', name };
    return request('patch', 'helloapps', at, { objectRef, responseStatus: { code } });
  };
  const log = [
    request('create', 'deployments', '1.000000', { responseStatus: { code: 201 } }),
    ...[status('a', '2.000000'), status('b', '3.000000', 409), status('b', '4.000000')],
    ...[status('a', '5.000000'), status('b', '6.000000')],
  ];
  const start = Date.parse('2030-01-01T00:00:00Z');
  expect(summarizeAudit(log, 'operator')).toMatchObject({ done: 2, doneAt: start + 4000, lastAt: start + 6000 });
});
