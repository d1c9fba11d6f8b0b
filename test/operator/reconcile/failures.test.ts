import { RenderError } from '../../../constructs/kube/errors';
import { TransportError } from '../../../operator/client/errors';
import { classify, ReconcileError } from '../../../operator/reconcile/problems';
import { NotLeaderError } from '../../../operator/leader/leader-election';
import { apiError } from '../../../testing/api-server/requests';

describe('classify', () => {
  it.each<[string, unknown, string, string]>([
    ['a conflict', apiError(409, 'Conflict', 'm'), 'stale', 'Conflict'],
    ['what is gone', apiError(404, 'NotFound', 'm'), 'stale', 'NotFound'],
    ['a conflict without a reason', apiError(409, '', 'm'), 'stale', ''],
    ['no answer', new TransportError('m', 'GET /'), 'stale', 'ErrUnreachable'],
    ['a Lease that was lost', new NotLeaderError('m'), 'stale', 'NotLeader'],
    ['an invalid child', apiError(422, 'Invalid', 'm'), 'terminal', 'ErrInvalidChild'],
    ['a bad request', apiError(400, 'BadRequest', 'm'), 'terminal', 'ErrInvalidChild'],
    ['a quota or a missing permission', apiError(403, 'Forbidden', 'm'), 'retry', 'ErrForbidden'],
    ['a method that is not allowed', apiError(405, 'MethodNotAllowed', 'm'), 'retry', 'ErrServer'],
    ['too many requests', apiError(429, 'TooManyRequests', 'm'), 'retry', 'ErrServer'],
    ['a webhook that is away', apiError(500, 'InternalError', 'm'), 'retry', 'ErrServer'],
    ['a server that is away', apiError(503, 'ServiceUnavailable', 'm'), 'retry', 'ErrServer'],
    ['a terminal error', new ReconcileError('NoSuchNode', 'm', { isTerminal: true }), 'terminal', 'NoSuchNode'],
    ['an error that may pass', new ReconcileError('NoSuchNode', 'm'), 'retry', 'NoSuchNode'],
    ['any other error', new RangeError('m'), 'retry', 'ErrReconcile'],
    ['what is no error', 'm', 'retry', 'ErrReconcile'],
  ])('%s', (_, error, kind, reason) => {
    expect(classify(error)).toEqual({ kind, reason, message: 'm' });
  });

  it('names whose children a kind renders wrongly', () => {
    expect(classify(new RenderError('Foo default/x', 'm')).message).toBe('Foo default/x: m');
  });
});
