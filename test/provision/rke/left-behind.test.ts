import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RKE_UP } from '../../../provision/rke/tasks';
import { killedUp, lab } from './left-behind-lab';

/** What a run passes on and leaves behind, where things go wrong. */

describe('a killed run left its folder on this machine', () => {
  test('nobody went on since: its state counts', async () => {
    await killedUp(1);
    await expect(lab.apply(lab.input(1), RKE_UP)).resolves.toMatchObject({ ok: true });
    expect(lab.rke.machines()).toEqual(['127.0.0.11']);
  });
});

test('a secret at which a long line of RKE is cut off is hidden all the same', async () => {
  const registry = { url: 'r.example.com', credentialsSecretRef: { namespace: 'machines', name: 'registry' } };
  lab.secrets.set('registry/password', 'CANARY-pass-word-pass-word-pass-word');
  // The line is longer than what is passed on, and the secret stands across the end of that.
  const line = `level=fatal msg="${'. '.repeat(285)}CANARY-pass-word-pass-word-pass-word"`;
  writeFileSync(join(lab.rke.bin, 'rke'), `#!/bin/sh\nprintf '%s\\n' '${line}'\nexit 1\n`);
  const { message } = await lab.apply(lab.input(1, { options: { privateRegistries: [registry] } }), RKE_UP);
  expect(message).toContain('. . .');
  expect(message).not.toContain('CANARY');
});
