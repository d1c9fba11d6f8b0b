import { CliError, InterruptedError } from '../../cli/errors';
import { formatError } from '../../cli/format-error';
import { CleanupStack } from '../../cli/shutdown';
import { LocalControlPlaneError } from '../../local';
import { ApiError, TransportError } from '../../operator/client/errors';

describe('what a person is told', () => {
  test.each<[Error, string]>([
    [new CliError('what, where, why'), 'what, where, why'],
    [new LocalControlPlaneError('port 1 is taken'), 'port 1 is taken'],
    [new TransportError('no answer', 'GET /'), 'no answer'],
    [
      new ApiError({ code: 403, reason: 'Forbidden', message: 'not you', causes: [] }, 'GET /api'),
      'GET /api was refused by the API server: not you',
    ],
  ])('%s', (error, text) => expect(formatError(error)).toBe(text));

  test('a full disk, wherever it stands in the chain of causes', () => {
    const cause = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    expect(formatError(new LocalControlPlaneError('cannot write etcd.', { cause }))).toMatch(
      /^the disk is full: cannot write etcd\. Free some space \(.*\) and run it again\.$/,
    );
  });

  test('what nobody foresaw comes with its stack, for a report', () => {
    expect(formatError(new TypeError('x is undefined'))).toMatch(
      /please report it: TypeError: x is undefined\n.* at /s,
    );
    expect(formatError('text')).toBe('this should not happen, please report it: text');
  });

  test('an interruption names its signal', () =>
    expect(new InterruptedError('SIGTERM').message).toBe('stopped by SIGTERM'));
});

describe('undoing', () => {
  test('the last comes first, and a failure keeps nobody from their turn', async () => {
    const done: string[] = [];
    const undo = new CleanupStack();
    undo.add('stop the plane', () => Promise.resolve(void done.push('plane')));
    undo.add('stop the operator', () => Promise.reject(new Error('stuck')));
    undo.add('close', () => Promise.resolve(void done.push('close')));
    await expect(undo.run()).rejects.toThrow('could not stop the operator: stuck');
    expect(done).toEqual(['close', 'plane']);
    await expect(undo.run()).resolves.toBeUndefined();
  });
});
