import { errorMessage } from '../../constructs/kube/errors';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { StartupError } from './lifecycle';
import type { Logger } from './logger';

/** Options of `startHealthServer`. */
export interface HealthServerOptions {
  /** 0 takes any free port; see `HealthServer.port`. */
  readonly port: number;
  /** The address to listen on. @default every address of the machine */
  readonly host?: string;
  /** Liveness: what only a restart can fix. @default none: alive while it answers */
  readonly healthz?: HealthChecks;
  /** Readiness: caches synced, watches alive. @default none */
  readonly readyz?: HealthChecks;
  /** What `/readyz?verbose` says besides, and what never fails it. @default nothing */
  readonly readyzNotes?: HealthChecks;
  /** @default `/metrics` is not served */
  readonly metrics?: MetricsSource;
  readonly logger: Logger;
}

/** The checks of one endpoint, by name (a path segment: letters, digits, `-`). */
type HealthChecks = Readonly<Record<string, HealthCheck>>;

/**
 * Returns undefined when all is well, else the reason why not, in one line. Must be fast: it runs at every
 * probe.
 */
type HealthCheck = () => string | undefined;

/** Where `/metrics` comes from; a prom-client `Registry` is one. */
interface MetricsSource {
  readonly contentType: string;
  metrics(): Promise<string>;
}

/** A listening server. */
export interface HealthServer {
  /** The port it really listens on. */
  readonly port: number;
  /** Stops listening, lets open requests end for up to a second, then cuts them. May be called twice. */
  close(): Promise<void>;
}

/** No probe or scrape comes near these limits; they keep a stray client from using up memory or sockets. */
const limits = {
  maxHeaderSize: 8 * 1024,
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 2_000,
};
const maxConnections = 128;
const closeGraceMs = 1_000;

/**
 * Serves `/healthz`, `/readyz` and `/metrics` over plain HTTP, GET and HEAD only.
 *
 * A health endpoint answers 200 `ok`, or 503 with one line a check and the reasons; `?verbose` lists the
 * checks in any case, and `/readyz/<name>` runs a single one, both as the API server's own endpoints do.
 *
 * @throws StartupError when the port is not available (in use, not permitted, no such address), with what to
 * do about it.
 */
export async function startHealthServer(options: HealthServerOptions): Promise<HealthServer> {
  const server = createServer(limits, (request, response) => {
    respond(options, request, response).catch((error: unknown) => {
      options.logger.error({ err: error, path: request.url }, 'health server: answering a request failed');
      if (!response.headersSent) send(response, 500, 'internal error; see the log of this process\n');
      else response.destroy();
    });
  });
  server.maxConnections = maxConnections;
  await listen(server, options);
  server.on('error', (error) => options.logger.error({ err: error }, 'health server: the listening socket failed'));
  const { port } = server.address() as AddressInfo;
  let closing: Promise<void> | undefined;
  return { port, close: () => (closing ??= closeServer(server, closeGraceMs)) };
}

function listen(server: Server, options: HealthServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const where = `${options.host ?? '*'}:${options.port}`;
      const message = `cannot serve health and metrics on ${where}: ${hintOf(error)}`;
      reject(new StartupError(message, { cause: error }));
    });
    server.listen({ port: options.port, ...(options.host === undefined ? {} : { host: options.host }) }, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
}

/** The text by which an error message shows that another process listens on the port. */
export const PORT_IN_USE = 'the port is in use by another process';

function hintOf(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `${PORT_IN_USE}; stop that one or configure another port (0 takes any free one)`;
    case 'EACCES':
      return 'this user may not listen there; configure a port above 1023';
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return 'this machine has no such address; configure another host, or none to listen on every address';
    default:
      return error.message;
  }
}

async function respond(
  options: HealthServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  request.resume();
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD');
    send(response, 405, 'only GET and HEAD are served here\n');
    return;
  }
  const [path = '/', query = ''] = (request.url ?? '/').split('?', 2);
  const [endpoint, check] = path.replace(/\/+$/, '').slice(1).split('/', 2);
  if (endpoint === 'metrics' && check === undefined && options.metrics !== undefined) {
    send(response, 200, await options.metrics.metrics(), options.metrics.contentType);
  } else if (endpoint === 'healthz' || endpoint === 'readyz') {
    const notes = endpoint === 'readyz' ? (options.readyzNotes ?? {}) : {};
    const how = { only: check, verbose: new URLSearchParams(query).has('verbose') };
    sendHealth(response, endpoint, { checks: options[endpoint] ?? {}, notes }, how);
  } else {
    send(response, 404, 'not found; this server has /healthz, /readyz and /metrics\n');
  }
}

function sendHealth(
  response: ServerResponse,
  endpoint: string,
  { checks: all, notes }: { readonly checks: HealthChecks; readonly notes: HealthChecks },
  { only, verbose }: { readonly only: string | undefined; readonly verbose: boolean },
): void {
  const chosen = only === undefined ? all : Object.fromEntries(Object.entries(all).filter(([name]) => name === only));
  if (only !== undefined && Object.keys(chosen).length === 0) {
    send(response, 404, `${endpoint} has no such check; it has: ${Object.keys(all).join(', ')}\n`);
    return;
  }
  const report = runChecks(chosen);
  const end = `${endpoint} check ${report.ok ? 'passed' : 'failed'}`;
  if (report.ok && !verbose) send(response, 200, 'ok');
  else send(response, report.ok ? 200 : 503, `${[...report.lines, ...noteLines(notes), end].join('\n')}\n`);
}

/** The results of the checks. */
interface HealthReport {
  readonly ok: boolean;
  /** One line a check, as the API server's own `/readyz?verbose` prints them: `[+]name ok`, `[-]name failed: reason`. */
  readonly lines: readonly string[];
}

/** Runs every check. One that throws has failed, with the error's message as its reason. */
function runChecks(checks: HealthChecks): HealthReport {
  const reasons = Object.entries(checks).map(([name, check]) => [name, reasonOf(check)] as const);
  return {
    ok: reasons.every(([, reason]) => reason === undefined),
    lines: reasons.map(([name, reason]) => (reason === undefined ? `[+]${name} ok` : `[-]${name} failed: ${reason}`)),
  };
}

/** What is wrong and does not count, one line each. */
function noteLines(notes: HealthChecks): readonly string[] {
  return Object.entries(notes).flatMap(([name, check]) => {
    const reason = reasonOf(check);
    return reason === undefined ? [] : [`[!]${name} failed, which does not count: ${reason}`];
  });
}

function reasonOf(check: HealthCheck): string | undefined {
  try {
    return check();
  } catch (error) {
    return `the check itself failed: ${errorMessage(error)}`;
  }
}

function send(response: ServerResponse, status: number, body: string, type = 'text/plain; charset=utf-8'): void {
  const headers = {
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  };
  response.writeHead(status, headers);
  // For HEAD, Node itself leaves the body out.
  response.end(body);
}

/**
 * Closes a server: idle connections at once, the others when their request ends or after `graceMs`
 * milliseconds.
 *
 * @param sockets - its connections, those too whose TLS handshake has not ended, of which the server does not know
 */
export function closeServer(server: Server, graceMs: number, sockets: ReadonlySet<Socket> = new Set()): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => {
      server.closeAllConnections();
      for (const socket of sockets) socket.destroy();
    }, graceMs);
    // The callback's error says only that the server was not listening: then it is closed already.
    server.close(() => {
      clearTimeout(cut);
      resolve();
    });
    server.closeIdleConnections();
  });
}
