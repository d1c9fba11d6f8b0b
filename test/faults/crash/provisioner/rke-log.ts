import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RkeStandIn } from '../../../support/rke';

/** When runs of the stand-in for `rke` began and ended, in the order in which it happened. */
export class RkeLog {
  private readonly path: string;

  private constructor(standIn: RkeStandIn) {
    this.path = join(standIn.folder, 'runs');
  }

  /** Puts itself in front of the stand-in. */
  static of(standIn: RkeStandIn): RkeLog {
    const log = new RkeLog(standIn);
    const rke = join(standIn.bin, 'rke');
    const inner = join(standIn.bin, 'rke-inner');
    renameSync(rke, inner);
    const script = `#!/bin/sh
case "$1" in up|remove) ;; *) exec '${inner}' "$@" ;; esac
echo "begin $*" >>'${log.path}'
'${inner}' "$@"
code=$?
echo "end $*" >>'${log.path}'
exit $code
`;
    writeFileSync(rke, script, { mode: 0o755 });
    return log;
  }

  /** All that ran has been killed. */
  killed(): void {
    appendFileSync(this.path, 'killed\n');
  }

  /** What has happened since a line, that one included. */
  since(line: number): readonly string[] {
    return this.lines().slice(line);
  }

  get length(): number {
    return this.lines().length;
  }

  private lines(): readonly string[] {
    return existsSync(this.path) ? readFileSync(this.path, 'utf8').trim().split('\n') : [];
  }
}

/** The runs that came to their end, without repetitions: `up --init`, `up`, `remove`. */
export function effectsIn(lines: readonly string[]): readonly string[] {
  const ends = lines.filter((line) => line.startsWith('end ')).map((line) => line.replace(/^end | --config.*$/g, ''));
  return [...new Set(ends)];
}

/** Runs that began while another one was under way. */
export function overlaps(lines: readonly string[]): readonly string[] {
  let under: string | undefined;
  return lines.flatMap((line) => {
    const before = under;
    under = line.startsWith('begin ') ? line : undefined;
    return before !== undefined && under !== undefined ? [`${line}, while: ${before}`] : [];
  });
}
