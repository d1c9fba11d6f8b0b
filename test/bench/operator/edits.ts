import type { Edits } from '../../../bench/results';
import { owned, type ResourceType } from '../../../constructs/kube/resource-type';
import type { KubeObject } from '../../../constructs/kube/kube-object';
import { HelloApp } from '../../../constructs/kinds';
import type { ApiClient } from '../../../operator/client/api-client';
import { Sightings } from './sightings';

interface Podded {
  readonly template: { readonly spec: { readonly containers: readonly { readonly image: string }[] } };
}

interface Observed extends KubeObject {
  readonly status?: { readonly observedGeneration?: number };
}

/**
 * Edits the image of each object twice, one edit at a time, and takes the time until its Deployment was seen changed. The next edit
 * waits until the operator has written the status too, so that it has nothing to do.
 */
export async function measureEdits(
  client: ApiClient,
  objects: readonly KubeObject[],
  signal: AbortSignal,
): Promise<Edits> {
  const { namespace = '' } = objects[0]?.metadata ?? {};
  const watch = (type: ResourceType): Promise<Sightings> => Sightings.start(client, type, namespace, signal);
  const [deployments, apps] = await Promise.all([watch(owned.Deployment), watch(HelloApp.type)]);
  const edits = { first: [] as number[], later: [] as number[], request: [] as number[] };
  const edit = async (name: string, image: string): Promise<number> => {
    const changed = deployments.next(name, (object) => imageOf(object) === image);
    const began = performance.now();
    const options = { type: 'merge', fieldManager: 'bench' } as const;
    const { metadata } = await client.patch(HelloApp.type, { namespace, name }, { spec: { image } }, options);
    edits.request.push(performance.now() - began);
    const seen = (await changed) - began;
    await apps.next(name, (object) => (object as Observed).status?.observedGeneration === metadata.generation);
    return seen;
  };
  try {
    for (const turn of ['first', 'later'] as const) {
      for (const { metadata } of objects) {
        edits[turn].push(await edit(metadata.name, `registry.example.com/${turn}:${metadata.name}`));
      }
    }
  } finally {
    await Promise.all([deployments.stop(), apps.stop()]);
  }
  return edits;
}

/** The image of a Deployment's one container. */
export function imageOf({ spec }: KubeObject): string | undefined {
  return (spec as Podded).template.spec.containers[0]?.image;
}
