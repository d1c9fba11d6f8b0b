import type { Transport, TransportRequest, TransportResult } from './transport';

/** One transport for scripts that name a machine, another for those that do not. */
export class MachineTransport implements Transport {
  constructor(
    private readonly remote: Transport,
    private readonly local: Transport,
  ) {}

  async run(request: TransportRequest): Promise<TransportResult> {
    return (request.machine === undefined ? this.local : this.remote).run(request);
  }
}
