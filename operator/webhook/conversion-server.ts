import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { AnyKind } from '../../constructs/kind/kind';
import type { OperatorMetrics } from '../metrics/operator-metrics';
import { systemClock, type Clock } from '../process/clock';
import { closeServer } from '../process/health-server';
import { StartupError } from '../process/lifecycle';
import type { Logger } from '../process/logger';
import { CertificateWatcher, type CertificateWatcherOptions, type ServingCertificate } from './certificate-watcher';
import { ConversionMetrics, handleConversion, type ConversionHandlerOptions } from './conversion-handler';

/** The address and the certificate of the conversion server. */
export interface WebhookOptions {
  /** 0 takes any free port. */
  readonly port: number;
  /** @default every address */
  readonly host?: string;
  /** The directory of `tls.crt` and `tls.key`; they are read again when they change. */
  readonly certDir: string;
  /**
   * How long to go on converting after a stop has begun, in milliseconds: until every node has heard that the pod is taken out of the
   * Service, the API server is still led to it. @default 5000
   */
  readonly drainMs?: number;
  /** Called when the server listens. */
  readonly onListening?: (port: number) => void;
}

/** Options of `serveConversion`. */
interface ServeConversionOptions {
  readonly kinds: readonly AnyKind[];
  readonly webhook?: WebhookOptions;
  /** Aborting it starts the orderly stop. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly metrics: OperatorMetrics;
}

/**
 * Serves the conversions of an operator's kinds, if any has several versions.
 *
 * It must listen before the caches are filled, and in every replica: objects that are stored in an old
 * version are converted on their way to the operator itself.
 */
export async function serveConversion(options: ServeConversionOptions): Promise<ConversionServer | undefined> {
  const { webhook, logger, metrics } = options;
  const kinds = options.kinds.filter(({ versions }) => versions.length > 0);
  if (kinds.length === 0) return undefined;
  const names = kinds.map(({ crdName }) => crdName);
  if (webhook === undefined) {
    logger.warn(
      { kinds: names },
      'these kinds have several versions, which another process must convert; to do it here, set --webhook-cert-dir',
    );
    return undefined;
  }
  const { onListening, ...where } = webhook;
  const server = await startConversionServer({
    ...where,
    kinds,
    signal: options.signal,
    logger,
    metrics: new ConversionMetrics(metrics.registry),
  });
  onListening?.(server.port);
  return server;
}

/** Options of `startConversionServer`. */
export interface ConversionServerOptions extends ConversionHandlerOptions {
  /** 0 takes any free port; see `ConversionServer.port`. */
  readonly port: number;
  /** The address to listen on. @default every address of the machine */
  readonly host?: string;
  /** The directory of `tls.crt` and `tls.key`. */
  readonly certDir: string;
  /** See `WebhookOptions.drainMs`. */
  readonly drainMs?: number;
  /** Aborting it starts the orderly stop. @default none: `close` does */
  readonly signal?: AbortSignal;
  /** How the certificate is watched. @default every 10 s */
  readonly watch?: Pick<CertificateWatcherOptions, 'everyMs'>;
  /** @default systemClock */
  readonly clock?: Clock;
}

/** A running conversion server. */
export interface ConversionServer {
  /** The port that it listens on. */
  readonly port: number;
  /** Why it cannot serve, or undefined when it can; for readiness. */
  problem(): string | undefined;
  /**
   * Goes on until `drainMs` after the stop began, then stops listening, lets open requests finish for up to two seconds, and cuts them.
   * May be called twice.
   */
  close(): Promise<void>;
}

/**
 * Serves conversions to the API server over HTTPS. Clients are not asked for a certificate: the API server
 * has none unless its administrator configures one, and the server returns only what the request contains.
 *
 * Guarantees: when the certificate in the directory is replaced, new connections use the new one. Once the stop has begun, each
 * connection ends with its next response, so that the API server finds another replica for the next request.
 *
 * @throws CertificateError when there is no usable certificate
 * @throws StartupError when it cannot listen on the port
 */
export async function startConversionServer(options: ConversionServerOptions): Promise<ConversionServer> {
  const { certDir: directory, logger, signal, drainMs = 5_000, clock = systemClock } = options;
  const watch = await CertificateWatcher.open({ ...options.watch, directory, logger, clock });
  const server = createServer({ ...limits, ...context(watch.current) }, (request, response) => {
    if (signal?.aborted === true) response.shouldKeepAlive = false;
    handleConversion(options, request, response).catch((error: unknown) => {
      if (request.errored !== null) logger.debug({ err: error }, 'conversion server: the client went away');
      else logger.error({ err: error }, 'conversion server: answering a request failed');
      response.destroy();
    });
  });
  server.maxConnections = maxConnections;
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await listen(server, options);
  // A client that does not trust the certificate ends the handshake: check the caBundle of the CRD.
  server.on('tlsClientError', (error) => logger.debug({ err: error }, 'conversion server: a TLS handshake failed'));
  server.on('error', (error) => logger.error({ err: error }, 'conversion server: the listening socket failed'));
  watch.follow((certificate) => server.setSecureContext({ minVersion: limits.minVersion, ...context(certificate) }));
  const { port } = server.address() as AddressInfo;
  // The time counts from the beginning of the stop, while the running reconciles end.
  const drained = signal === undefined ? undefined : whenDrained(signal, drainMs, clock);
  const close = async (): Promise<void> => {
    watch.stop();
    if (signal?.aborted === true) await drained;
    await closeServer(server, closeGraceMs, sockets);
  };
  let closing: Promise<void> | undefined;
  return {
    port,
    problem: () => (server.listening ? watch.problem() : 'the conversion server does not listen'),
    close: () => (closing ??= close()),
  };
}

const limits = {
  minVersion: 'TLSv1.2',
  maxHeaderSize: 16 * 1024,
  headersTimeout: 10_000,
  // The API server itself waits no longer than this for a response.
  requestTimeout: 30_000,
  // Longer than the 90 s for which Go's clients keep idle connections: the client closes first, and no
  // request meets a closed connection.
  keepAliveTimeout: 120_000,
  handshakeTimeout: 10_000,
} as const;
const maxConnections = 256;
const closeGraceMs = 2_000;

/** Resolves so many milliseconds after the signal has aborted. */
function whenDrained(signal: AbortSignal, drainMs: number, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const wait = (): void => void clock.setTimer(resolve, drainMs);
    if (signal.aborted) wait();
    else signal.addEventListener('abort', wait, { once: true });
  });
}

function context({ certificate, key }: ServingCertificate): { readonly cert: string; readonly key: string } {
  return { cert: certificate, key };
}

function listen(server: Server, { host, port }: ConversionServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      const where = `${host ?? '*'}:${port}`;
      const message = `cannot serve conversions on ${where}: ${error.message}; set another port (--webhook-port)`;
      reject(new StartupError(message, { cause: error }));
    });
    server.listen({ port, ...(host === undefined ? {} : { host }) }, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
}
