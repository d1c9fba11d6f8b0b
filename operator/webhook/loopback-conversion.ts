import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { AnyKind } from '../../constructs/kind/kind';
import type { KubeObject } from '../../constructs/kube/kube-object';
import { OperatorMetrics } from '../metrics/operator-metrics';
import type { Logger } from '../process/logger';
import { ConversionMetrics } from './conversion-handler';
import { startConversionServer, type ConversionServer } from './conversion-server';

/** Options of {@link LoopbackConversion.start}. */
interface LoopbackConversionOptions {
  readonly kinds: readonly AnyKind[];
  /** A certificate for 127.0.0.1 and its key, PEM. */
  readonly certificate: { readonly certificate: string; readonly key: string };
  /** Where both are written, for their owner alone. It is made. */
  readonly folder: string;
  readonly logger: Logger;
}

/**
 * Converts the objects of kinds that have several versions, for an API server on this machine: it reaches a port here, but no Service. For
 * development and tests.
 */
export class LoopbackConversion {
  private server!: ConversionServer;

  private constructor(
    /** The kinds whose objects are converted; of two definitions of one, the first that has both versions converts. Others take their place at once. */
    public kinds: readonly AnyKind[],
  ) {}

  /** Serves at a free port of 127.0.0.1. @throws StartupError when it cannot listen */
  static async start({ kinds, certificate, folder, logger }: LoopbackConversionOptions): Promise<LoopbackConversion> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(path.join(folder, 'tls.crt'), certificate.certificate, { mode: 0o600 });
    await writeFile(path.join(folder, 'tls.key'), certificate.key, { mode: 0o600 });
    const conversion = new LoopbackConversion(kinds);
    conversion.server = await startConversionServer({
      get kinds() {
        return conversion.kinds;
      },
      ...{ port: 0, host: '127.0.0.1', certDir: folder, logger },
      metrics: new ConversionMetrics(new OperatorMetrics({ defaults: false }).registry),
    });
    return conversion;
  }

  /** The same CRD, but with the address of this server instead of that of a Service; any other object as it is. */
  redirect(object: KubeObject): KubeObject {
    if (!isConverted(object)) return object;
    const { spec } = object;
    const { caBundle } = spec.conversion.webhook.clientConfig;
    const clientConfig = { caBundle, url: `https://127.0.0.1:${this.server.port}/convert` };
    const conversion = { ...spec.conversion, webhook: { ...spec.conversion.webhook, clientConfig } };
    return { ...object, spec: { ...spec, conversion } };
  }

  async stop(): Promise<void> {
    await this.server.close();
  }
}

interface ConvertedCrd extends KubeObject {
  readonly spec: {
    readonly conversion: { readonly webhook: { readonly clientConfig: { readonly caBundle?: string } } };
  };
}

function isConverted(object: KubeObject): object is ConvertedCrd {
  if (object.kind !== 'CustomResourceDefinition') return false;
  const { conversion } = object.spec as { readonly conversion?: { readonly strategy?: string } };
  return conversion?.strategy === 'Webhook';
}
