import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { AnyKind } from '../../constructs/kind/kind';
import type { OperatorMetrics } from '../metrics/operator-metrics';
import { StartupError } from '../process/lifecycle';
import type { Logger } from '../process/logger';
import { CertificateWatcher, type CertificateWatcherOptions, type ServingCertificate } from './certificate-watcher';
import { ConversionMetrics, handleConversion, type ConversionHandlerOptions } from './conversion-handler';

/** Where conversions are served, and with which certificate. */
export interface WebhookOptions {
  /** 0 takes a free one. */
  readonly port: number;
  /** @default every address */
  readonly host?: string;
  /** The directory of `tls.crt` and `tls.key`; they are read again when they change. */
  readonly certDir: string;
  /** Told when the server listens. */
  readonly onListening?: (port: number) => void;
}

/** What an operator serves conversions with. */
interface ServeConversionOptions {
  readonly kinds: readonly AnyKind[];
  readonly webhook?: WebhookOptions;
  readonly logger: Logger;
  readonly metrics: OperatorMetrics;
}

/**
 * Serves the conversions of an operator's kinds, if any has several versions.
 *
 * It must stand before the caches are filled, and in every replica: what is stored in an old version is converted on its way to the
 * operator itself.
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
  /** Where `tls.crt` and `tls.key` are. */
  readonly certDir: string;
  /** How the certificate is followed. @default every 10 s */
  readonly watch?: Pick<CertificateWatcherOptions, 'everyMs' | 'clock'>;
}

/** A listening server. */
export interface ConversionServer {
  /** The port it really listens on. */
  readonly port: number;
  /** Why it cannot be relied upon, or undefined when it can; for readiness. */
  problem(): string | undefined;
  /** Stops listening, lets open requests end for up to two seconds, then cuts them. May be called twice. */
  close(): Promise<void>;
}

const limits = {
  minVersion: 'TLSv1.2',
  maxHeaderSize: 16 * 1024,
  headersTimeout: 10_000,
  // The API server itself waits no longer than this for an answer.
  requestTimeout: 30_000,
  // Longer than the 90 s for which Go's clients keep idle connections: the client closes first, and no request meets a closed one.
  keepAliveTimeout: 120_000,
  handshakeTimeout: 10_000,
} as const;
const maxConnections = 256;
const closeGraceMs = 2_000;

/**
 * Serves conversions to the API server over HTTPS. Clients are not asked for a certificate: the API server has none unless its
 * administrator says so, and what is converted comes with the request and goes back with the answer.
 *
 * Guarantees: a certificate that is replaced in its directory is served from then on, to new connections.
 *
 * @throws CertificateError when there is no usable certificate
 * @throws StartupError when the port cannot be had
 */
export async function startConversionServer(options: ConversionServerOptions): Promise<ConversionServer> {
  const { certDir: directory, logger } = options;
  const watch = await CertificateWatcher.open({ ...options.watch, directory, logger });
  const server = createServer({ ...limits, ...context(watch.current) }, (request, response) => {
    handleConversion(options, request, response).catch((error: unknown) => {
      if (request.errored !== null) logger.debug({ err: error }, 'conversion server: the client went away');
      else logger.error({ err: error }, 'conversion server: answering a request failed');
      response.destroy();
    });
  });
  server.maxConnections = maxConnections;
  await listen(server, options);
  // A client that does not trust the certificate ends the handshake: look at the caBundle of the CRD.
  server.on('tlsClientError', (error) => logger.debug({ err: error }, 'conversion server: a TLS handshake failed'));
  server.on('error', (error) => logger.error({ err: error }, 'conversion server: the listening socket failed'));
  watch.follow((certificate) => server.setSecureContext({ minVersion: limits.minVersion, ...context(certificate) }));
  const { port } = server.address() as AddressInfo;
  let closing: Promise<void> | undefined;
  return {
    port,
    problem: () => (server.listening ? watch.problem() : 'the conversion server does not listen'),
    close: () => {
      watch.stop();
      return (closing ??= close(server));
    },
  };
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

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), closeGraceMs);
    // The callback's error says only that the server was not listening; then it is closed, which is what was asked.
    server.close(() => {
      clearTimeout(cut);
      resolve();
    });
    server.closeIdleConnections();
  });
}
