import { RemoteCluster, type RemoteClusterArgs } from '../../../stacks/remote-cluster/remote-cluster';
import { answers } from './clusters';
import { record, type Registered } from './recorder';

/** The type of a Command. */
export const COMMAND = /^command:/;
/** Runs a program with one cluster and its provider. @returns what was registered */
export const run = (args: RemoteClusterArgs, { preview = false } = {}): Promise<readonly Registered[]> =>
  record(() => new RemoteCluster('prod', args).provider, { preview, answers });

/** Everything of a resource that decides whether the next run does something to it. */
const inputsByName = (found: readonly Registered[]) =>
  new Map(found.map(({ name, inputs }) => [name, JSON.stringify(inputs)]));

/** Names of the resources that a run does something to, after another one. */
export interface Changes {
  readonly added: readonly string[];
  readonly gone: readonly string[];
  readonly changed: readonly string[];
}

/** What the second run does that was recorded, after the first. */
export function changed(before: readonly Registered[], after: readonly Registered[]): Changes {
  const [old, now] = [inputsByName(before), inputsByName(after)];
  return {
    added: [...now.keys()].filter((name) => !old.has(name)),
    gone: [...old.keys()].filter((name) => !now.has(name)),
    changed: [...now.keys()].filter((name) => old.has(name) && old.get(name) !== now.get(name)),
  };
}
