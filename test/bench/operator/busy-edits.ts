import { setTimeout as delay } from 'node:timers/promises';
import type { BusyEdits } from '../../../bench/results';
import { owned } from '../../../constructs/core/owned';
import type { KubeObject } from '../../../constructs/core/kube-object';
import { HelloApp } from '../../../constructs/kinds';
import { deleteMany } from '../../e2e/operator/many-objects';
import type { Contestant } from './contestant';
import { imageOf } from './edits';
import { MeasuredProcess } from './measured-process';
import type { Rounds } from './rounds';
import { Sightings } from './sightings';
import type { Stage } from './stage';

/** Objects that a user edits in turn. */
const edited = 50;
const pollMs = 250;

/**
 * Edits images, one after another, while an operator that was just started brings many other objects about. Ends with the last edit that
 * was made while others waited.
 */
export async function measureBusyEdits(
  on: { readonly stage: Stage; readonly rounds: Rounds; readonly signal: AbortSignal },
  contestant: Contestant,
  count: number,
): Promise<BusyEdits> {
  const { stage, rounds, signal } = on;
  const mine = await rounds.fresh(edited);
  const before = MeasuredProcess.start(await contestant.program(count), signal);
  await before.settled(mine.length);
  await before.stop();
  const others = await rounds.fresh(count);
  const operator = MeasuredProcess.start(await contestant.program(count), signal);
  await operator.reconciling();
  const backlog = watchBacklog(operator);
  const edits = await editWhile(() => backlog.open, stage, mine, signal);
  await backlog.end();
  await operator.settled(count);
  await operator.stop();
  await deleteMany(stage.client, [...mine, ...others]);
  return { objects: count, ...edits };
}

/** Whether keys still wait, looked at now and then. */
function watchBacklog(operator: MeasuredProcess): { readonly open: boolean; readonly end: () => Promise<void> } {
  const backlog = { open: true, ended: false };
  const look = async (): Promise<void> => {
    while (backlog.open && !backlog.ended) {
      const { open, done } = await operator.work();
      // The objects that the user edits are open too now and then: more than a handful must wait.
      backlog.open = open > 5 || done === 0;
      await delay(pollMs);
    }
  };
  const looking = look();
  return {
    get open() {
      return backlog.open;
    },
    end: async () => {
      backlog.ended = true;
      await looking;
    },
  };
}

async function editWhile(
  busy: () => boolean,
  { client }: Stage,
  objects: readonly KubeObject[],
  signal: AbortSignal,
): Promise<Pick<BusyEdits, 'toChild' | 'request'>> {
  const namespace = objects[0]?.metadata.namespace ?? '';
  const deployments = await Sightings.start(client, owned.Deployment, namespace, signal);
  const [toChild, request]: [number[], number[]] = [[], []];
  try {
    for (let i = 0; busy(); i += 1) {
      const name = objects[i % objects.length]?.metadata.name ?? '';
      const image = `registry.example.com/busy:${String(i)}`;
      const changed = deployments.next(name, (object) => imageOf(object) === image);
      const began = performance.now();
      const options = { type: 'merge', fieldManager: 'bench' } as const;
      await client.patch(HelloApp.type, { namespace, name }, { spec: { image } }, options);
      const answered = performance.now() - began;
      const seen = (await changed) - began;
      if (!busy()) break;
      request.push(answered);
      toChild.push(seen);
    }
  } finally {
    await deployments.stop();
  }
  return { toChild, request };
}
