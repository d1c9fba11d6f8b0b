import { nodeConfigHash } from '../../../provision/rke2-k3s/config';
import { missingShells, shells } from '../shells';
import { StandInServer, input } from './stand-in-server';

/** An API that answers, and then does not for one question: no answer must not be taken for one. */

if (missingShells.length > 0) console.warn(`not tested, because not installed: ${missingShells.join(', ')}`);

const [OLD, NEW] = [input(), input({ version: 'v1.34.9+k3s1' })];
const FAILED = { ok: false, reason: 'Failed' };

describe.each(shells)('%s', (_, shell) => {
  test("drain does not take somebody else's cordon for none", () => {
    const machine = new StandInServer(shell);
    machine.set('applied', nodeConfigHash(OLD, OLD.nodes[0]!));
    machine.set('unschedulable', 'true');
    machine.set('fails', 'unschedulable');
    expect(machine.run(NEW, 'drain').answer).toMatchObject(FAILED);
    expect(machine.get('cordoned')).toBe('');
  });

  test.each(['drain', 'ready'] as const)('%s does not leave a node cordoned by us and say that all is well', (step) => {
    const machine = new StandInServer(shell);
    machine.set('applied', nodeConfigHash(OLD, OLD.nodes[0]!));
    machine.set('unschedulable', 'true');
    machine.set('cordoned', 'x');
    machine.set('fails', 'kindred\\.dev/cordoned');
    expect(machine.run(OLD, step).answer).toMatchObject(FAILED);
    machine.unset('fails');
    expect(machine.run(OLD, step).answer).toMatchObject({ ok: true, changed: true });
    expect([machine.get('unschedulable'), machine.get('cordoned')]).toEqual(['', '']);
  });

  test('ready does not forget a taint of ours that it could not look for', () => {
    const machine = new StandInServer(shell);
    machine.set('node-taints', 'ours:NoSchedule');
    machine.set('taints', 'ours:NoSchedule ');
    machine.set('fails', 'spec.taints');
    expect(machine.run(OLD, 'ready').answer).toMatchObject(FAILED);
    expect(machine.get('node-taints')).toBe('ours:NoSchedule');
    machine.unset('fails');
    expect(machine.run(OLD, 'ready').answer).toMatchObject({ ok: true, changed: true });
    expect(machine.get('asked')).toContain('taint node n1 ours:NoSchedule-');
  });

  test('a node that may be the last is not taken out', () => {
    const machine = new StandInServer(shell);
    machine.set('active', '');
    machine.set('fails', 'get nodes -o');
    expect(machine.run(OLD, 'leave').answer).toMatchObject(FAILED);
    expect(machine.get('asked')).not.toMatch(/^(drain|delete)/m);
    machine.unset('fails');
    expect(machine.run(OLD, 'leave').answer).toMatchObject({ ok: true, changed: false });
    machine.set('nodes', 'n1 n2');
    // The other one is no member of etcd, which does not remove its last.
    machine.set('members', 'n1');
    expect(machine.run(OLD, 'leave').answer).toMatchObject({ ok: true, changed: false });
    expect(machine.get('asked')).not.toMatch(/^(drain|delete)/m);
    machine.unset('members');
    expect(machine.run(OLD, 'leave').answer).toMatchObject({ ok: true, changed: true });
    expect(machine.get('asked')).toMatch(/^delete node n1/m);
  });
});
