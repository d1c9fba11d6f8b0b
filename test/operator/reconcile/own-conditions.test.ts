import { z } from 'zod';
import { defineKind } from '../../../constructs/kind/kind';
import type { Condition } from '../../../constructs/kube/kube-object';
import type { Readiness } from '../../../operator/status/conditions';
import { writeStatus } from '../../../operator/reconcile/write-status';
import { Harness, ref } from './harness';

const Thing = defineKind({
  group: 'example.com',
  version: 'v1',
  kind: 'Thing',
  plural: 'things',
  scope: 'Namespaced',
  description: 'Something with a condition of its own.',
  spec: z.object({ size: z.int32().default(1).describe('How large.') }),
  conditionTypes: [{ type: 'Made', description: 'It stands.' }],
  lastUpdateTime: true,
  effects: [
    {
      ...{ name: 'make', phase: 'apply', plan: 'test.make', timeoutSeconds: 60, condition: 'Made' },
      input: () => ({}),
      maxAttempts: () => 1,
    },
  ],
  owns: [],
  children() {
    // None.
  },
});

describe('the status of a kind with conditions of its own', () => {
  const readiness: Readiness = { state: 'failing', reason: 'R', message: 'm' };
  let harness: Harness;

  /** Writes the status that was written before. @returns the writes that it took */
  async function again(): Promise<readonly string[]> {
    const { object } = harness.objects.get(ref('a')) ?? {};
    if (object === undefined) throw new Error('it is gone');
    harness.server.takeRequests();
    const conditions = [{ type: 'Made', status: 'False', reason: 'R', message: 'm' } as const];
    await writeStatus(harness.context, { object, readiness, observed: {}, conditions });
    return harness.server.writes;
  }

  function standing(change: (conditions: readonly Condition[]) => readonly Condition[]): void {
    const { status } = harness.object('a');
    harness.server.setStatus(Thing.type, ref('a'), {
      ...status,
      conditions: change(status.conditions as readonly Condition[]),
    });
  }

  beforeEach(async () => {
    harness = new Harness(Thing);
    await harness.add('a', {});
    expect(await again()).toHaveLength(1);
  });

  it('is not written again', async () => {
    expect(await again()).toEqual([]);
  });

  it('is not written again where the server keeps them in another order', async () => {
    standing((conditions) => [...conditions].reverse());
    expect(await again()).toEqual([]);
  });

  it('does not say of a generation that nobody has looked at that it is made', async () => {
    harness.respec('a', { size: 2 });
    harness.annotate('a', { 'kindred.dev/paused': 'true' });
    await harness.reconcile('a');
    const { conditions } = harness.object('a').status;
    const observed = conditions.map(({ type, observedGeneration }) => `${type} of ${String(observedGeneration)}`);
    expect(observed).toEqual(['Ready of 2', 'Made of 1']);
    expect((await harness.reconcile('a')).writes).toEqual([]);
  });

  it("is not written again where somebody else's condition stands among them", async () => {
    const time = '2026-01-01T00:00:00Z';
    const other: Condition = { type: 'Backup', status: 'True', reason: 'R', message: 'm', lastTransitionTime: time };
    standing((conditions) => [...conditions, other]);
    expect(await again()).toEqual([]);
  });
});
