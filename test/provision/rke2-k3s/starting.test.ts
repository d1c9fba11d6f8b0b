import { mkdirSync, writeFileSync } from 'node:fs';
import { missingShells, shells } from '../shells';
import { StandInServer, input } from './stand-in-server';

/** A service that starts just now, as after a reboot: it is not up yet, and not gone either. */

if (missingShells.length > 0) console.warn(`not tested, because not installed: ${missingShells.join(', ')}`);

const WANTED = input();

function rebooted(shell: readonly string[], asks: number): StandInServer {
  const machine = new StandInServer(shell);
  machine.set('active', '');
  machine.set('starting', '\n'.repeat(asks));
  mkdirSync(machine.path('state/prod'), { recursive: true });
  writeFileSync(machine.path('state/prod/installation'), 'k3s server\n');
  return machine;
}

describe.each(shells)('%s', (_, shell) => {
  test('a snapshot is taken once the server is up again', () => {
    const machine = rebooted(shell, 2);
    expect(machine.run(WANTED, 'snapshot').answer).toEqual({ ok: true, changed: true });
  });

  test('a service whose uninstaller is gone is stopped though it is only starting', () => {
    const machine = rebooted(shell, 1_000);
    expect(machine.run(WANTED, 'uninstall').answer).toMatchObject({ ok: true, changed: true });
    expect(machine.get('stops')).toBe('stop\n');
  });
});
