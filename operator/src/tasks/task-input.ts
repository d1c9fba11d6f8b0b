import { createHash } from 'node:crypto';
import type { ObjectKeyRef } from '../../../constructs/kind/reads';
import { leavesOf, renderSource, stdinText, type LeafSource, type NamedValue } from '../../../provision/task/script-io';
import type { OutputRef, StdinValue } from '../../../provision/task/task';

/** Looks up what stands elsewhere. What a lookup throws ends the run; its message must hold no secret. */
export interface ValueLookup {
  secret(ref: ObjectKeyRef): Promise<string>;
  /** @param path - below the configured directory */
  file(path: string): Promise<string>;
}

/** All that a script reads, in plain text. */
export interface TaskInput {
  readonly stdin: string;
  /** Of the script and the values whose change is a reason to run again. */
  readonly hash: string;
}

/** Looks up and renders what a script reads. @param output - gives the output of an earlier task, in plain text */
export async function taskInput(
  script: string,
  values: readonly StdinValue[],
  lookup: ValueLookup,
  output: (ref: OutputRef) => string,
): Promise<TaskInput> {
  const rendered: (NamedValue & Pick<StdinValue, 'volatile'>)[] = [];
  for (const { name, from, volatile } of values) {
    const found = new Map<LeafSource, string>();
    for (const leaf of leavesOf(from)) found.set(leaf, await leafValue(leaf, lookup, output));
    const value = renderSource(from, (leaf) => found.get(leaf) ?? '');
    rendered.push({ name, value, ...(volatile !== undefined && { volatile }) });
  }
  const lasting = rendered.filter(({ volatile }) => volatile !== true);
  const hash = createHash('sha256')
    .update(JSON.stringify([script, lasting.map(({ name, value }) => [name, value])]))
    .digest('hex');
  return { stdin: stdinText(rendered), hash };
}

async function leafValue(leaf: LeafSource, lookup: ValueLookup, output: (ref: OutputRef) => string): Promise<string> {
  if ('secret' in leaf) return lookup.secret(leaf.secret);
  if ('file' in leaf) return lookup.file(leaf.file);
  return output(leaf.output);
}
