import { parseArgs } from 'node:util';

/** The options of the benchmark: what is measured, and where the figures go. */
export interface Options {
  /** Number of objects of each suite with all operators. */
  readonly objects: readonly number[];
  /** Number of objects of a suite with our operator and the bare requests alone; 0 for none. */
  readonly scale: number;
  readonly rounds: number;
  /**
   * Number of objects that are edited for each operator, in all rounds of the first suite together; 0 for
   * none.
   */
  readonly edits: number;
  /** Number of other objects while a user's edits are measured; 0 for none. */
  readonly busy: number;
  /** Concurrency of our operator and of the bare requests. */
  readonly concurrency: number;
  readonly synth: boolean;
  readonly out: string;
  /** File with results of an earlier run to report instead of measuring; '' to measure. */
  readonly from: string;
  /** Write the results into docs/. */
  readonly publish: boolean;
  /** A bundle of the operator to measure instead of the one that is built; '' for that one. */
  readonly bundle: string;
}

/** What `--help` prints. */
export const usage = `npm run bench -- [options]

  --full             5,000 objects too, 20,000 for our operator alone, four rounds (an hour)
  --objects=N,M      objects of each suite (default: 1000)
  --scale=N          our operator and the bare requests alone with N objects, two rounds at most (default: none)
  --rounds=N         default: 2
  --edits=N          objects edited in the first suite, 0 for none (default: 100)
  --busy=N           objects brought about while edits are measured, 0 for none (default: 1000)
  --concurrency=N    objects at once, for our operator and for the bare requests (default: 32)
  --no-synth         leave npm run synth and kustomize build out
  --bundle=FILE      measure this bundle of the operator instead of building one
  --out=FILE         default: dist/bench.json; written anew whenever more is known
  --from=FILE        measure nothing: tell, and publish, what an earlier run wrote to FILE
  --publish          write the results into docs/benchmarks.md, and charts into docs/benchmarks/
`;

/** Options that have no influence on the figures. */
const UNREPORTED: ReadonlySet<string> = new Set(['out', 'from', 'publish']);

const SYNTAX = {
  tokens: true,
  options: {
    full: { type: 'boolean', default: false },
    objects: { type: 'string' },
    scale: { type: 'string' },
    rounds: { type: 'string' },
    edits: { type: 'string', default: '100' },
    busy: { type: 'string' },
    concurrency: { type: 'string', default: '32' },
    'no-synth': { type: 'boolean', default: false },
    bundle: { type: 'string', default: '' },
    out: { type: 'string', default: 'dist/bench.json' },
    from: { type: 'string', default: '' },
    publish: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
} as const;

/**
 * Parses the command line.
 *
 * @returns `help` when `--help` was given
 * @throws RangeError for an invalid number
 */
export function readOptions(argv: readonly string[]): Options | 'help' {
  const { values } = parseArgs({ ...SYNTAX, args: [...argv] });
  if (values.help) return 'help';
  const { full } = values;
  const options = {
    objects: (values.objects ?? (full ? '1000,5000' : '1000'))
      .split(',')
      .map((text) => parseInteger('objects', text, 1)),
    scale: parseInteger('scale', values.scale ?? (full ? '20000' : '0'), 0),
    rounds: parseInteger('rounds', values.rounds ?? (full ? '4' : '2'), 1),
    edits: parseInteger('edits', values.edits, 0),
    busy: parseInteger('busy', values.busy ?? (full ? '5000' : '1000'), 0),
    concurrency: parseInteger('concurrency', values.concurrency, 1),
    synth: !values['no-synth'],
    ...{ bundle: values.bundle, out: values.out, from: values.from, publish: values.publish },
  };
  if (options.edits > (options.objects[0] ?? 0) * options.rounds) {
    throw new RangeError(`--edits=${values.edits}: at most one for each of the objects of every round`);
  }
  return options;
}

function parseInteger(name: string, text: string, least: number): number {
  const number = Number(text);
  if (text !== '' && Number.isInteger(number) && number >= least) return number;
  throw new RangeError(`--${name}=${text}: it must be a whole number, ${String(least)} or more`);
}

/**
 * The arguments that influence the figures, in one spelling. Paths are left out: they would only reveal the
 * machine.
 */
export function reportedArguments(argv: readonly string[]): readonly string[] {
  return parseArgs({ ...SYNTAX, args: [...argv] }).tokens.flatMap((token) => {
    if (token.kind !== 'option' || UNREPORTED.has(token.name)) return [];
    return token.value === undefined || token.name === 'bundle' ? `--${token.name}` : `--${token.name}=${token.value}`;
  });
}
