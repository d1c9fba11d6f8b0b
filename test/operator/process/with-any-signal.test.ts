import { getEventListeners } from 'node:events';
import { withAnySignal } from '../../../operator/process/wait';

function two(): readonly [AbortController, AbortController] {
  return [new AbortController(), new AbortController()];
}

test('what is done under several signals is cut by any of them, with its reason', async () => {
  const [one, other] = two();
  const reason = new Error('enough');
  const cut = withAnySignal([one.signal, other.signal], (signal) => {
    other.abort(reason);
    one.abort(new Error('too late'));
    return Promise.resolve(signal);
  });
  expect((await cut).reason).toBe(reason);
});

test('it is cut from the beginning where one was aborted before', async () => {
  const [one, other] = two();
  const reason = new Error('long ago');
  other.abort(reason);
  expect((await withAnySignal([one.signal, other.signal], (signal) => Promise.resolve(signal))).reason).toBe(reason);
});

test.each([
  ['ends', () => Promise.resolve('done')],
  ['fails', () => Promise.reject(new Error('failed'))],
])('when it %s, nothing of it is left with the signals', async (_, act) => {
  const [one, other] = two();
  await withAnySignal([one.signal, other.signal], act).catch(() => undefined);
  expect([one, other].map(({ signal }) => getEventListeners(signal, 'abort'))).toEqual([[], []]);
});
