/** One scrape of an operator's `/metrics`. */
export class Metrics {
  private constructor(
    private readonly samples: readonly Sample[],
    /** The names of metrics and of their series, including those without series yet. */
    private readonly names: ReadonlySet<string>,
  ) {}

  /** Parses Prometheus' text format. */
  static parse(text: string): Metrics {
    const lines = text.split('\n').filter((line) => line !== '');
    const samples = lines.filter((line) => !line.startsWith('#')).map(sampleOf);
    return new Metrics(samples, new Set([...samples.map(({ name }) => name), ...lines.flatMap(declaredBy)]));
  }

  /**
   * The sum of a metric over all series that have these labels; 0 when there is none.
   *
   * @throws Error when the metric does not exist: a renamed metric must not count as 0
   */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    if (!this.names.has(name)) throw new Error(`/metrics knows no ${name}`);
    return this.samples
      .filter((sample) => sample.name === name)
      .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
      .reduce((total, { value }) => total + value, 0);
  }

  /** Number of objects that wait in a work queue or are being reconciled. */
  openWork(): number {
    return this.sum('workqueue_depth') + this.sum('controller_runtime_active_workers');
  }

  /** The distinct values of a label in the series of a metric. */
  labelValues(name: string, label: string): readonly string[] {
    const values = this.samples.filter((sample) => sample.name === name).map(({ labels }) => labels[label]);
    return [...new Set(values.filter((value) => value !== undefined))];
  }

  /** Whether there is a series of this name. */
  has(name: string): boolean {
    return this.samples.some((sample) => sample.name === name);
  }
}

/** The names of the series that a metric has, or will have, from its `# TYPE` comment. */
function declaredBy(line: string): readonly string[] {
  const [, name, type = ''] = /^# TYPE (\S+) (\S+)/.exec(line) ?? [];
  if (name === undefined) return [];
  return ['histogram', 'summary'].includes(type) ? ['', '_bucket', '_sum', '_count'].map((end) => name + end) : [name];
}

function sampleOf(line: string): Sample {
  const [, name = line, labels = '', value = 'NaN'] = /^([^{\s]+)(?:\{(.*)\})?\s+(\S+)/.exec(line) ?? [];
  const pairs = [...labels.matchAll(/([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g)];
  const byName = pairs.map(([, key = '', text = '']): [string, string] => [key, text]);
  return { name, labels: Object.fromEntries(byName), value: Number(value) };
}

/** One sample of a metric. */
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}
