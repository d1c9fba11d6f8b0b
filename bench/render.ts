import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import type { AnyKind } from '../constructs/kind/kind';
import type { KubeObject } from '../constructs/kube/kube-object';
import { renderDefaulted, withDefaults } from '../constructs/kind/render';
import { HelloApp, MicroServiceDeploy } from '../constructs/kinds';
import { quantile } from './measures';

/** A kind to measure, and the specs of its objects. */
interface Subject {
  readonly kind: AnyKind;
  readonly spec: (i: number) => object;
}

const subjects: readonly Subject[] = [
  { kind: HelloApp, spec: (i) => ({ image: `registry.example.com/app:${String(i)}`, size: i % 10 }) },
  {
    kind: MicroServiceDeploy,
    spec: (i) => ({
      ...{ msName: `ms-${String(i)}`, fullName: `ms-${String(i)}-v1`, version: '1.0.0', path: 'v1' },
      ...{ image: `registry.example.com/ms:${String(i)}`, replicas: 3, autoscaling: i % 2 === 0 },
      config: 'a=1\nb=2\n',
    }),
  },
];

/** Objects of a kind, each different as in a real cluster. */
function objectsOf({ kind, spec }: Subject, count: number): readonly KubeObject[] {
  return Array.from({ length: count }, (_, i) => ({
    apiVersion: kind.apiVersion,
    kind: kind.kind,
    metadata: { name: `object-${String(i)}`, namespace: 'default', uid: `uid-${String(i)}` },
    spec: spec(i),
  }));
}

/** Renders all objects once. @returns milliseconds per object */
function pass(kind: AnyKind, objects: readonly KubeObject[]): number {
  const start = process.hrtime.bigint();
  for (const object of objects) renderDefaulted(kind, withDefaults(kind, object));
  return Number(process.hrtime.bigint() - start) / 1e6 / objects.length;
}

/** `npm run bench:render -- [--rounds=40] [--objects=200] [--json]` */
function main(): void {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '40' },
      objects: { type: 'string', default: '200' },
      json: { type: 'boolean', default: false },
    },
  });
  const [rounds, count] = [Number(values.rounds), Number(values.objects)];
  const runs = subjects.map((subject) => ({ ...subject, objects: objectsOf(subject, count), ms: [] as number[] }));
  for (const { kind, objects } of runs) for (let i = 0; i < 3; i += 1) pass(kind, objects); // warms up the JIT compiler
  // The kinds alternate, so that a slow phase of the machine affects them alike.
  for (let round = 0; round < rounds; round += 1) {
    for (const { kind, objects, ms } of runs) ms.push(pass(kind, objects));
  }
  const results = runs.map(({ kind, objects, ms }) => {
    const children = objects[0] === undefined ? 0 : renderDefaulted(kind, withDefaults(kind, objects[0])).length;
    return {
      kind: kind.kind,
      children,
      median: quantile(ms, 0.5),
      p10: quantile(ms, 0.1),
      p90: quantile(ms, 0.9),
    };
  });
  if (values.json) console.log(JSON.stringify({ rounds, objects: count, node: process.version, results }));
  else print(results, `${String(rounds)} rounds of ${String(count)} objects`);
}

interface Result {
  readonly kind: string;
  readonly children: number;
  readonly median: number;
  readonly p10: number;
  readonly p90: number;
}

function print(results: readonly Result[], what: string): void {
  console.log(`${what}; Node ${process.version}, ${String(cpus().length)} x ${cpus()[0]?.model ?? 'CPU'}`);
  console.log(`${'kind'.padEnd(20)} children   ms/object (median)   p10 - p90`);
  for (const { kind, children, median, p10, p90 } of results) {
    const range = `${p10.toFixed(3)} - ${p90.toFixed(3)}`;
    console.log(`${kind.padEnd(20)} ${String(children).padStart(8)}   ${median.toFixed(3).padStart(18)}   ${range}`);
  }
}

main();
