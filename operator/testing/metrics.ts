/** One sample of a metric. */
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What an operator's `/metrics` said at one moment. */
export class Metrics {
  private constructor(private readonly samples: readonly Sample[]) {}

  /** Reads Prometheus' text format. */
  static parse(text: string): Metrics {
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return new Metrics(lines.map(sampleOf));
  }

  /** The sum of a metric over all series that bear these labels; 0 when there is none. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    return this.samples
      .filter((sample) => sample.name === name)
      .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
      .reduce((total, { value }) => total + value, 0);
  }

  /** Whether there is a series of this name. */
  has(name: string): boolean {
    return this.samples.some((sample) => sample.name === name);
  }
}

function sampleOf(line: string): Sample {
  const [, name = line, labels = '', value = 'NaN'] = /^([^{\s]+)(?:\{(.*)\})?\s+(\S+)/.exec(line) ?? [];
  const pairs = [...labels.matchAll(/([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g)];
  const byName = pairs.map(([, key = '', text = '']): [string, string] => [key, text]);
  return { name, labels: Object.fromEntries(byName), value: Number(value) };
}
