import { clusterProblems, clusterTasks } from '../../../provision';
import { inputOf, node } from '../inputs';
import { shells } from '../shells';
import { StandInServer, input } from './stand-in-server';

/** A node as the script lists it. */
const line = (n: number, ready: 'True' | 'False' | 'Unknown' | '', etcd = true): string =>
  `n${n}|10.0.0.${n}|${ready}|${etcd ? 'true' : ''}`;

describe.each(shells)('nodes that left the plan, in %s', (_, shell) => {
  let server: StandInServer;
  beforeEach(() => {
    server = new StandInServer(shell);
  });

  /** Removes what is not in the plan. @returns names of the nodes that were deleted, in order */
  function run(wanted: readonly number[], nodes: readonly string[], guarded?: readonly number[]) {
    server.set('nodelist', `${nodes.join('\n')}\n`);
    const machines = wanted.map((n) => node(`10.0.0.${n}`, { roles: ['controlplane', 'etcd', 'worker'] }));
    const labels = (numbers: readonly number[]): string => ` ${numbers.map((n) => `10.0.0.${n}`).join(' ')} `;
    const values = { staying: labels(wanted), ...(guarded && { guarded: labels(guarded) }) };
    const options = guarded && { server: { isProtected: (_: unknown, i: number) => guarded.includes(wanted[i]!) } };
    const { answer } = server.run(input({ nodes: machines }), 'members', values, options);
    const asked = server.get('asked').split('\n');
    const deleted = asked.flatMap((words) => /^delete node (\S+)/.exec(words)?.[1] ?? []);
    const drained = asked.flatMap((words) => /^drain (\S+)/.exec(words)?.[1] ?? []);
    const annotated = asked.flatMap((words) => /^annotate node (.*)/.exec(words)?.[1] ?? []);
    return { ok: answer.ok, reason: answer.reason, deleted, drained, annotated };
  }

  test('nothing is removed while all are wanted, nor a node without our label', () => {
    const nodes = [line(1, 'True'), line(2, 'True'), 'foreign||True|true'];
    expect(run([1, 2], nodes)).toMatchObject({ ok: true, deleted: [], drained: [], annotated: [] });
  });

  test('each node that is not wanted is drained and deleted', () => {
    const nodes = [line(1, 'True'), line(2, 'True'), line(3, 'True'), line(4, 'True', false)];
    const gone = ['n2', 'n3', 'n4'];
    expect(run([1], nodes)).toMatchObject({ ok: true, deleted: gone, drained: gone });
  });

  test.each(['False', 'Unknown', ''] as const)('one that is not ready (%p) goes first, and is not drained', (ready) => {
    const nodes = [line(1, 'True'), line(2, 'True'), line(3, ready)];
    expect(run([1], nodes)).toMatchObject({ ok: true, deleted: ['n3', 'n2'], drained: ['n2'] });
  });

  test('a member whose removal would cost etcd its quorum is not removed', () => {
    // Of 1, 2 and 3, the server 3 is to stay, and it is down: without 2, one of two members would be left.
    const nodes = [line(1, 'True'), line(2, 'True'), line(3, 'Unknown')];
    expect(run([1, 3], nodes)).toMatchObject({ ok: false, reason: 'QuorumAtRisk', deleted: [] });
  });

  test('an agent may go whatever etcd is like', () => {
    const nodes = [line(1, 'True'), line(2, 'Unknown'), line(3, 'True', false)];
    expect(run([1, 2], nodes)).toMatchObject({ ok: true, deleted: ['n3'] });
  });

  test('a protected node is not removed, nor any other with it', () => {
    const nodes = [line(1, 'True'), line(2, 'True'), `${line(3, 'True')}|true`];
    expect(run([1], nodes, [1])).toMatchObject({ ok: false, reason: 'Protected', deleted: [], annotated: [] });
    // Who carries the plan out otherwise has a protection of its own.
    expect(run([1], nodes)).toMatchObject({ ok: true, deleted: ['n2', 'n3'] });
  });

  test('nodes that stay are annotated as the plan says, and only where they are not', () => {
    const nodes = [`${line(1, 'True')}|true`, line(2, 'True'), `${line(3, 'True')}|true`, 'foreign||True|true|true'];
    const annotated = ['n2 --overwrite kindred.dev/protected=true', 'n3 kindred.dev/protected-'];
    expect(run([1, 2, 3], nodes, [1, 2])).toMatchObject({ ok: true, deleted: [], annotated });
  });

  test('nothing is removed when the API does not answer', () => {
    server.set('fails', 'get nodes');
    expect(run([1], [line(1, 'True'), line(2, 'True')])).toMatchObject({ ok: false, deleted: [] });
  });
});

describe.each(['rke2', 'k3s'] as const)('removals of an earlier plan of %s', (distribution) => {
  const servers = [1, 2, 3, 4, 5].map((n) => node(`10.0.0.${n}`, { roles: ['controlplane', 'etcd', 'worker'] }));
  const plan = (numbers: readonly number[]) => {
    const given = inputOf({ distribution, nodes: numbers.flatMap((n) => servers[n - 1] ?? []) });
    expect(clusterProblems(given)).toEqual([]);
    return clusterTasks(given);
  };

  test.each([
    ['fewer', [1, 2, 3], [1]],
    ['another order', [1, 2, 3], [2, 1, 3]],
    ['the first servers go', [1, 2, 3, 4, 5], [3, 4, 5]],
    ['only the last stays', [1, 2, 3], [3]],
    ['more', [3], [3, 1, 2]],
  ])('none runs for a machine that stays: %s', (_, before, after) => {
    const next = new Set(plan(after).map(({ id }) => id));
    const gone = plan(before).filter(({ id, remove }) => remove !== undefined && !next.has(id));
    const stay = after.map((n) => `10.0.0.${n}`);
    expect(gone.filter(({ id }) => stay.includes(id.split('/')[0] ?? ''))).toEqual([]);
    const left = before.filter((n) => !after.includes(n)).map((n) => `10.0.0.${n}/install`);
    expect(gone.map(({ id }) => id)).toEqual(expect.arrayContaining(left));
    // Records of the first versions have `<admin>/member`, whose removal took the admin out. It is replaced where the admin stays.
    expect(stay.filter((address) => !next.has(`${address}/member`))).toEqual([]);
  });
});
