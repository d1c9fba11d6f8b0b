import type { ResourceType } from '../../../constructs/kube/resource-type';
import { operatorKinds, type Bench } from './support/bench';
import { ready } from './support/conditions';
import { quiet } from './support/quiet';

const NAMESPACES: ResourceType = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', scope: 'Cluster' };

/** The end of a namespace in which objects stand, on a real API server. */
export function namespaceEndTests(bench: Bench): void {
  test('a namespace with an object of every kind ends cleanly and quietly', async () => {
    const namespace = await bench.namespace('ending');
    const samples = operatorKinds.flatMap((kind) => kind.samples.map((sample) => ({ kind, ...sample })));
    await Promise.all(samples.map(({ kind, name, spec }) => bench.make(kind, { namespace, name }, spec)));
    for (const { kind, name } of samples) await bench.until(kind.type, { namespace, name }, 'Ready', ready);
    const logged = bench.operator.log.all.length;
    await bench.client.delete(NAMESPACES, { name: namespace });
    await bench.gone(NAMESPACES, { name: namespace });
    await quiet(bench, bench.operator);
    const lines = bench.operator.log.all.slice(logged).filter(({ controller, level }) => {
      return controller !== undefined && level !== 'info';
    });
    expect(lines).toEqual([]);
  });
}
