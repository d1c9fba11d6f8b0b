import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request as the fake server saw it. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** Answers one request. */
export type Answer = (request: SeenRequest, response: ServerResponse) => void | Promise<void>;

/** An HTTP server in this process whose answers a test scripts. */
export class FakeApiServer {
  readonly requests: SeenRequest[] = [];
  private readonly server = createServer((request, response) => {
    this.handle(request, response).catch((error: unknown) => {
      this.failures.push(error);
      response.destroy();
    });
  });
  private readonly script: Answer[] = [];
  private readonly answering = new Set<ServerResponse>();
  /** What the answers threw; a test that cares asserts that it is empty. */
  readonly failures: unknown[] = [];

  /** @param fallback answers what the script does not */
  constructor(private readonly fallback: Answer = (_request, response) => status(response, 500, 'unscripted')) {}

  /** The next request that no earlier entry answers is answered like this. */
  next(...answers: Answer[]): this {
    this.script.push(...answers);
    return this;
  }

  /** Drops what is left of the script. */
  forget(): void {
    this.script.length = 0;
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return this.url;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** How many answers are under way. */
  get open(): number {
    return this.answering.size;
  }

  /** Cuts every answer that is under way. */
  cut(): void {
    for (const response of this.answering) response.socket?.resetAndDestroy();
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = new URL(request.url ?? '/', 'http://fake');
    const seen: SeenRequest = {
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body: Buffer.concat(chunks).toString('utf8'),
    };
    this.requests.push(seen);
    this.answering.add(response);
    response.on('close', () => this.answering.delete(response));
    await (this.script.shift() ?? this.fallback)(seen, response);
  }
}

/** Answers with JSON. */
export function json(response: ServerResponse, body: unknown, code = 200, headers: Record<string, string> = {}): void {
  response.writeHead(code, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

/** Answers with a `metav1.Status`. */
export function status(
  response: ServerResponse,
  code: number,
  reason: string,
  options: { readonly message?: string; readonly headers?: Record<string, string>; readonly details?: unknown } = {},
): void {
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code,
    reason,
    message: options.message ?? `${reason}, said the server`,
    details: options.details,
  };
  json(response, body, code, options.headers);
}
