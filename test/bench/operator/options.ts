import { parseArgs } from 'node:util';

/** What is measured, and where the figures go. */
export interface Options {
  readonly objects: number;
  readonly rounds: number;
  /** First edits of an object in all rounds together, and as many later ones. */
  readonly edits: number;
  /** Objects at once, for the operator and for the bare requests. */
  readonly concurrency: number;
  readonly out: string;
}

/**
 * Reads the command line.
 *
 * @throws RangeError for a number that is none
 */
export function readOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      objects: { type: 'string', default: '1000' },
      rounds: { type: 'string', default: '3' },
      edits: { type: 'string', default: '200' },
      concurrency: { type: 'string', default: '32' },
      out: { type: 'string', default: 'dist/bench.json' },
    },
  });
  const options = {
    objects: positive('objects', values.objects),
    rounds: positive('rounds', values.rounds),
    edits: positive('edits', values.edits),
    concurrency: positive('concurrency', values.concurrency),
    out: values.out,
  };
  if (options.edits > options.objects * options.rounds) {
    throw new RangeError(`--edits=${values.edits}: at most one for each of the objects of every round`);
  }
  return options;
}

function positive(name: string, text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new RangeError(`--${name}=${text}: it must be a whole number above 0`);
}
