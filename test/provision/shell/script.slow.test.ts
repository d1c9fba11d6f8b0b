// The gate keeps all but the waits, and these under one shell: script.test.ts.
import { buildScript } from '../../../provision/shell/script';
import { WAIT_FUNCTION } from '../../../provision/shell/functions';
import { runScript, shells } from '../shells';
import { fresh, props, testWaits } from './script-waits';

describe.each(shells)('%s', (name, shell) => {
  if (name !== shells[0]?.[0]) testWaits(shell);

  test('waiting is bounded', () => {
    const text = buildScript(props(fresh()), [
      WAIT_FUNCTION,
      'if wait_for 1 false; then finish; fi',
      'wait_for 1 true',
      'finish',
    ]);
    expect(runScript(shell, text).answer.ok).toBe(true);
  });
});
