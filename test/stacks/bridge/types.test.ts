import * as pulumi from '@pulumi/pulumi';
import type { ApiObject, Chart } from 'cdk8s';
import type { IConstruct } from 'constructs';
import { HelloApp } from '../../../constructs';
import {
  ConstructResources,
  KindResource,
  outputs,
  resourceOptions,
  type KubernetesObject,
} from '../../../stacks/bridge';

type Equal<A, B> = [A, B] extends [B, A] ? true : false;
const holds = <T extends true>(value: T): T[] => [value];

/** Checked by the compiler; never run. */
export function types(chart: Chart, construct: IConstruct, object: ApiObject, text: pulumi.Output<string>): void {
  holds<Equal<ReturnType<typeof outputs.text>, string>>(true);
  holds<Equal<ReturnType<typeof outputs.number>, number>>(true);
  const a: number = outputs.any(pulumi.output({ a: 1 })).a;
  outputs.number(a);
  // @ts-expect-error -- a text is no number
  outputs.number(text);

  const tree = new ConstructResources('tree', { constructs: construct, namespace: text }, { protect: true });
  holds<Equal<ReturnType<typeof tree.resourceOf>, KubernetesObject>>(true);
  const resource: pulumi.CustomResource = tree.resourceOf(object);
  holds<Equal<typeof tree.resources, ReadonlyMap<string, KubernetesObject>>>(true);
  resourceOptions(construct, { dependsOn: [resource, tree], aliases: ['old/path', { name: 'x' }] });
  // @ts-expect-error -- there is no such option
  resourceOptions(construct, { protected: true });
  // @ts-expect-error -- nor such a scope
  resourceOptions(construct, { scope: 'Namespace' });

  new KindResource(chart, 'a', {
    kind: HelloApp,
    metadata: { name: 'a' },
    spec: { image: text, size: pulumi.output(1) },
  });
  new KindResource(chart, 'b', { kind: HelloApp, metadata: { name: 'a' }, spec: pulumi.output({ image: 'a' }) });
  // @ts-expect-error -- size is a number
  new KindResource(chart, 'c', { kind: HelloApp, metadata: { name: 'a' }, spec: { image: text, size: text } });
  // @ts-expect-error -- the name is explicit
  new KindResource(chart, 'd', { kind: HelloApp, metadata: {}, spec: { image: text } });
}

it('the types of the bridge are checked by the compiler', () => {
  expect(types).toHaveLength(4);
});
