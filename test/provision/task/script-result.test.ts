import { NoResultError, decodeOutput, parseScriptResult } from '../../../provision/task/script-io';

test('the last line counts, whatever stands before it', () => {
  const stdout = 'Welcome!\n{"ok":false}\n{"ok":true,"changed":true,"outputs":{"token":"w6k="}}\r\n\n';
  const answer = parseScriptResult(stdout);
  expect(answer).toEqual({ ok: true, changed: true, outputs: { token: 'w6k=' } });
  expect(decodeOutput(answer, 'token')).toBe('é');
  expect(decodeOutput(answer, 'other')).toBeUndefined();
});

test('outputs are bytes of UTF-8', () => {
  const text = 'a\n"é😀';
  const outputs = { config: Buffer.from(text).toString('base64') };
  expect(decodeOutput({ ok: true, changed: false, outputs }, 'config')).toBe(text);
});

test('its text is cut to what can be read, and nothing else of it counts', () => {
  const line = {
    ok: false,
    changed: false,
    reason: 'ServiceFailed',
    message: `\u001b[1mno\u0000w${'x'.repeat(9000)}`,
    more: 1,
  };
  const answer = parseScriptResult(JSON.stringify(line));
  expect(answer).toEqual({ ok: false, changed: false, reason: 'ServiceFailed', message: expect.any(String) as string });
  expect(answer.message).toMatch(/^no wx+\.\.\.$/);
  expect(answer.message).toHaveLength(4096);
});

test.each(['', 'two words', 'a'.repeat(65), 'A\n', '\u001b[1mA'])('%j is no reason', (reason) => {
  expect(parseScriptResult(JSON.stringify({ ok: false, changed: false, reason }))).toEqual({
    ok: false,
    changed: false,
  });
});

test.each([
  ['', 'empty'],
  ['\n \n', 'empty'],
  ['Permission canary denied', 'not JSON'],
  ['{"ok":true,"outputs":{"token":"canary', 'not JSON'],
  ['["canary"]', 'not an object'],
  ['null', 'not an object'],
  ['{"ok":"canary","changed":true}', 'no "ok" and "changed"'],
  ['{"ok":true}', 'no "ok" and "changed"'],
  ['{"ok":false,"changed":false,"reason":7}', 'no text as reason'],
  ['{"ok":true,"changed":true,"outputs":{"canary":7}}', 'not base64'],
  ['{"ok":true,"changed":true,"outputs":{"token":"canary not base64"}}', 'not base64'],
])('%j is no answer', (stdout, why) => {
  let thrown: unknown;
  try {
    parseScriptResult(stdout);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(NoResultError);
  const { message, cause } = thrown as NoResultError;
  expect(message).toContain(why);
  // What a script wrote may hold secrets.
  expect(message).not.toContain('canary');
  expect(cause).toBeUndefined();
});
