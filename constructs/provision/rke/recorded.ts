import { renderSource } from '../stdin';
import type { Task } from '../task';
import { machinesOf } from './file/nodes';
import { removeScript } from './scripts/remove';
import { connectionValues, fileTargets } from './targets';
import type { RkeTaskOptions } from './tasks';
import { RKE_UP } from './tasks';

/**
 * The task that a carrier recorded, as it is taken away now, whatever version of this project it was recorded by: with the present script, the host
 * keys that are known now, and all machines of the cluster.yml that RKE last ran with. Other tasks than {@link RKE_UP} stay as they are.
 *
 * @param textOf - the text of a file that the task reads, or undefined where there is none
 */
export function rkeRecordToRemove<T extends Omit<Task, 'apply'>>(
  task: T,
  cluster: string,
  options: Pick<RkeTaskOptions, 'hostKeys' | 'unknownHosts'>,
  textOf: (file: string) => string | undefined,
): T {
  const { id, stdin = [] } = task;
  const yml = stdin.find(({ name }) => name === 'cluster_yml')?.from;
  if (id !== RKE_UP || yml === undefined) return task;
  // Written by yamlSource, and so JSON. A secret's value says nothing about a machine.
  const text = renderSource(yml, (leaf) => ('file' in leaf ? (textOf(leaf.file) ?? '{}') : ''));
  const config = JSON.parse(text) as Readonly<Record<string, unknown>>;
  const values = connectionValues(fileTargets(machinesOf(config, []), config), options)
    // Those that the plan was made with, by the same names, stay.
    .filter(({ name }) => name !== 'known_hosts');
  const names = new Set(values.map(({ name }) => name));
  return {
    ...task,
    remove: removeScript(cluster, RKE_UP),
    stdin: [...stdin.filter(({ name }) => !names.has(name)), ...values],
  };
}
