import path from 'node:path';
import type { AnyKind } from '../constructs/kind/kind';
import type { KubeObject } from '../constructs/kube/kube-object';
import { hasMultipleVersions } from '../constructs/operator';
import type { CertificateAuthority } from '../local/certificates';
import { loopback } from '../local/ports';
import { createLogger } from '../operator/process/logger';
import { LoopbackConversion } from '../operator/webhook/loopback-conversion';
import type { LocalPlatform } from './local-platform';

/** Options of {@link DevConversion}. */
interface DevConversionOptions {
  /** Signs the certificate. */
  readonly authority: CertificateAuthority;
  /** Folder of the certificate. */
  readonly folder: string;
  readonly print: (line: string) => void;
}

/** Result of {@link DevConversion.convert}. */
export interface Converted {
  /** The platform's objects, whose CRDs lead to where conversions are served. */
  readonly objects: readonly KubeObject[];
  /** Forgets the former definitions of these kinds, once their CRDs are there. */
  readonly accept: () => void;
}

/**
 * Converts objects for a control plane on this machine, in this process: it has loaded the kinds, and is there while one operator process
 * takes the place of another.
 */
export class DevConversion {
  private webhook: Promise<LoopbackConversion> | undefined;
  /** Those whose CRDs are there. */
  private accepted: readonly AnyKind[] = [];
  private readonly printed = new Set<string>();

  constructor(private readonly options: DevConversionOptions) {}

  /**
   * Converts objects of these kinds, from now on, if any has several versions. What only the accepted definition of a kind converts is
   * converted by that until `accept`: the API server may refuse the new CRD. So is a kind that is gone, since its CRD is not.
   */
  async convert({ kinds, objects }: Pick<LocalPlatform, 'kinds' | 'objects'>): Promise<Converted> {
    const accept = (): void => {
      const names = new Set(kinds.map(({ crdName }) => crdName));
      this.accepted = [...kinds, ...this.accepted.filter(({ crdName }) => !names.has(crdName))];
    };
    if (this.webhook === undefined && !kinds.some(hasMultipleVersions)) return { objects, accept };
    const webhook = await (this.webhook ??= this.start());
    webhook.kinds = [...kinds, ...this.accepted];
    this.printed.clear();
    return {
      objects: objects.map((object) => webhook.redirect(object)),
      accept: () => {
        accept();
        webhook.kinds = this.accepted;
      },
    };
  }

  async stop(): Promise<void> {
    await (await this.webhook)?.stop();
  }

  private start(): Promise<LoopbackConversion> {
    const { authority, folder, print } = this.options;
    const write = (line: string): void => {
      const text = problemIn(line);
      // Everyone who watches tries again and again.
      if (!this.printed.has(text)) print(`Conversion webhook: ${text}`);
      this.printed.add(text);
    };
    return LoopbackConversion.start({
      kinds: [],
      certificate: authority.server('kindred-webhook', [loopback]),
      folder: path.join(folder, 'conversion'),
      logger: createLogger({ level: 'warn', destination: { write } }),
    });
  }
}

/** What a line of the webhook's log says. */
function problemIn(line: string): string {
  const { msg, reason, err } = JSON.parse(line) as {
    readonly msg: string;
    readonly reason?: string;
    readonly err?: { readonly stack?: string };
  };
  return [reason === undefined ? msg : `${msg}: ${reason}`, ...(err?.stack === undefined ? [] : [err.stack])].join(
    '\n',
  );
}
