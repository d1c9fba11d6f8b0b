import type { AnyKind } from '../../../constructs/kind/kind';
import type { Logger } from '../runtime/logger';
import type { OperatorMetrics } from '../runtime/metrics';
import { ConversionMetrics } from './conversion-metrics';
import { startConversionServer, type ConversionServer } from './conversion-server';

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
export interface ServeConversionOptions {
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
