import { Counter, type Registry } from 'prom-client';

/** What became of a request: `failure` when an object was refused, `invalid` when it was no review at all. */
export type ConversionResult = 'success' | 'failure' | 'invalid';

/** What `/metrics` says of conversions. */
export class ConversionMetrics {
  private readonly requests: Counter<'kind' | 'result'>;

  /** @param registry one that has these metrics not yet */
  constructor(registry: Registry) {
    this.requests = new Counter({
      name: 'kindred_conversion_requests_total',
      help: 'Requests to convert objects between versions, by kind (the name of its CRD) and result: success, failure, invalid.',
      labelNames: ['kind', 'result'],
      registers: [registry],
    });
  }

  /** @param kind the name of a CRD, or empty when the request named no kind that is known: callers must not choose labels */
  request(kind: string, result: ConversionResult): void {
    this.requests.inc({ kind, result });
  }
}
