import { setTimeout as delay } from 'node:timers/promises';
import { useFaultBench } from '../fault-bench';
import { form } from '../form';
import { alone } from './alone';
import { CALM_WITHIN_MS, startAuditing } from '../support/calm';
import { liveThrough } from '../support/live-through';

jest.setTimeout(form({ short: CALM_WITHIN_MS, long: 900_000 }));

const bench = useFaultBench();

/** How long the work has gone on when the trouble begins, and how long that lasts, in milliseconds. */
const [beforeMs, troubleMs] = form({ short: [500, 3_000], long: [5_000, 30_000] });

beforeAll(async () => {
  alone(bench);
  await startAuditing(bench);
}, 60_000);

test('the API server is killed in the middle of work, and comes back', async () => {
  const { faults } = bench.plane;
  await liveThrough(bench, async (work) => {
    const working = work();
    await delay(beforeMs);
    await bench.outage(async () => {
      await faults.killApiServer();
      await delay(troubleMs);
      await faults.startApiServer();
    });
    await working;
  });
});

test('the API server freezes in the middle of work, and thaws', async () => {
  const { faults } = bench.plane;
  await liveThrough(bench, async (work) => {
    const working = work();
    await delay(beforeMs);
    await bench.outage(async () => {
      faults.pauseApiServer();
      await delay(troubleMs);
      faults.resumeApiServer();
    });
    await working;
  });
});

test('the operator is frozen while users work and the server forgets the past', async () => {
  await liveThrough(bench, async (work) => {
    bench.operator.pause();
    await work();
    await bench.plane.faults.compactEtcd();
    await delay(form({ short: 0, long: 180_000 }));
    bench.operator.resume();
  });
});

test('the operator is gone while users work and the server forgets the past', async () => {
  await liveThrough(bench, async (work) => {
    await bench.operator.kill();
    await work();
    await bench.plane.faults.compactEtcd();
    await startAuditing(bench);
  });
});
