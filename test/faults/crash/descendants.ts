import { readdirSync, readFileSync } from 'node:fs';
import type { OperatorProcess } from '../../../testing';

/** Kills an operator and everything that it has started, as the end of its pod does. */
export async function killWithDescendants(operator: OperatorProcess): Promise<void> {
  if (!operator.running) return;
  // Frozen, it starts nothing more.
  operator.pause();
  const others = descendantsOf(operator.pid);
  await operator.kill();
  for (const pid of others) killIfThere(pid);
}

/** The processes that a process has started, and those that these have started. Reads `/proc`: Linux only. */
function descendantsOf(pid: number): readonly number[] {
  const byParent = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    const parent = parentOf(name);
    if (parent !== undefined) byParent.set(parent, [...(byParent.get(parent) ?? []), Number(name)]);
  }
  const below = (of: number): readonly number[] => (byParent.get(of) ?? []).flatMap((each) => [each, ...below(each)]);
  return below(pid);
}

/** Source: proc(5), `/proc/pid/stat`: the fields after the name, which may hold anything and ends at the last parenthesis. */
function parentOf(name: string): number | undefined {
  if (!/^\d+$/.test(name)) return undefined;
  try {
    const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined; // it has ended meanwhile
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // ended meanwhile
  }
}
