import { operatorKinds } from './support/bench';
import type { Bench } from './support/bench';
import { ready } from './support/conditions';
import { quiet } from './support/quiet';

/** An operator that comes back to a cluster in which nothing has changed. */
export function restartTests(bench: Bench): void {
  test('a restarted operator writes nothing', async () => {
    const namespace = await bench.namespace('restart');
    const samples = operatorKinds.flatMap((kind) => kind.samples.map((sample) => ({ kind, ...sample })));
    await Promise.all(samples.map(({ kind, name, spec }) => bench.make(kind, { namespace, name }, spec)));
    for (const { kind, name } of samples) await bench.until(kind.type, { namespace, name }, 'Ready', ready);
    await quiet(bench, bench.operator);
    expect(await bench.operator.stop()).toEqual({ code: 0, signal: null });
    expect(bench.operator.log.errors()).toEqual([]);

    const before = (await bench.audit()).writes().length;
    const operator = await bench.start();
    await operator.working();
    // Every object and the shared key of one have been looked at.
    await quiet(bench, operator, samples.length + 1);
    expect((await bench.audit()).writes().slice(before)).toEqual([]);
    expect(operator.log.errors()).toEqual([]);
  });
}
