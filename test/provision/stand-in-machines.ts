import { createHash } from 'node:crypto';
import { base64 } from '../../provision';

/** What a script answers with, on stdout. */
export interface Said {
  readonly ok: boolean;
  readonly stdout: string;
}

/**
 * Machines that answer as the scripts of a plan do, and run none: for tests of who carries a plan out. They remember what each step was last begun
 * with, whether it succeeded or not, as machines do.
 */
export class StandInMachines {
  #begun: string[] = [];
  /** What each step was last begun with, but for its turn, as a hash. */
  readonly made = new Map<string, string>();
  /** The step that fails halfway. @default none does */
  failing: string | undefined;
  #count = 0;
  readonly #turns = new Map<string, { readonly change: string; readonly turn: string }>();

  /** Begins a step. @param stdin - what it reads, without the script */
  begin(id: string, script: string, stdin: string): Said {
    this.#begun.push(id);
    const lines = stdin.split('\n').filter((line) => !/^(turn|with) /.test(line));
    this.made.set(
      id,
      createHash('sha256')
        .update([script, ...lines].join('\n'))
        .digest('hex'),
    );
    const outputs = {
      token: 'token',
      kubeconfig: 'kubeconfig',
      hostname: id,
      node: 'yes',
      turn: this.#turn(id, stdin),
    };
    const ok = id !== this.failing;
    const coded = Object.fromEntries(Object.entries(outputs).map(([name, value]) => [name, base64(value)]));
    const answer = { ok, changed: true, ...(ok ? {} : { reason: 'Failed', message: 'it fails' }), outputs: coded };
    return { ok, stdout: JSON.stringify(answer) };
  }

  /** What was begun since this was last asked. */
  takeBegun(): readonly string[] {
    const taken = this.#begun;
    this.#begun = [];
    return taken;
  }

  #turn(id: string, stdin: string): string {
    const change = /^change (.*)$/m.exec(stdin)?.[1];
    if (change === undefined) return '';
    const before = this.#turns.get(id);
    const next = before?.change === change ? before : { change, turn: String(++this.#count) };
    this.#turns.set(id, next);
    return next.turn;
  }
}
