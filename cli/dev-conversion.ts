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

/** Result of {@link DevConversion.serve}. */
export interface ServedConversion {
  /** The platform's objects, whose CRDs lead to where conversions are served. */
  readonly objects: readonly KubeObject[];
  /** To be called when the CRDs are applied: the former definitions of these kinds are forgotten. */
  readonly accept: () => void;
  /** To be called when they are not, or not all: the former definitions convert again what they can. */
  readonly reject: () => void;
}

/** Where nothing is converted in this process. */
export function noConversion({ objects }: Pick<LocalPlatform, 'objects'>): ServedConversion {
  return { objects, accept: () => undefined, reject: () => undefined };
}

/**
 * Converts objects for a control plane on this machine, in this process: it has loaded the kinds, and is there while one operator process
 * takes the place of another.
 */
export class DevConversion {
  private webhook: Promise<LoopbackConversion> | undefined;
  /** The kinds whose CRDs were applied last. */
  private accepted: readonly AnyKind[] = [];
  /** Those whose CRDs may have been applied, or not, the last ones first. */
  private rejected: readonly AnyKind[] = [];
  private readonly printed = new Set<string>();

  constructor(private readonly options: DevConversionOptions) {}

  /**
   * Serves the conversions of these kinds from now on, if any has several versions. A version that only the accepted definition of a kind
   * has is converted by that until `accept`. A kind that is gone is served on, since its CRD stays.
   */
  async serve({ kinds, objects }: Pick<LocalPlatform, 'kinds' | 'objects'>): Promise<ServedConversion> {
    const webhook = this.webhook !== undefined || kinds.some(hasMultipleVersions) ? await this.started() : undefined;
    const use = (...definitions: readonly (readonly AnyKind[])[]): void => {
      if (webhook !== undefined) webhook.kinds = definitions.flat();
    };
    use(kinds, this.accepted, this.rejected);
    this.printed.clear();
    return {
      objects: webhook === undefined ? objects : objects.map((object) => webhook.redirect(object)),
      accept: () => {
        const names = new Set(kinds.map(({ crdName }) => crdName));
        const isGone = ({ crdName }: AnyKind): boolean => !names.has(crdName);
        this.accepted = [...kinds, ...this.accepted.filter(isGone)];
        this.rejected = this.rejected.filter(isGone);
        use(this.accepted, this.rejected);
      },
      reject: () => {
        this.rejected = [...kinds, ...this.rejected];
        use(this.accepted, this.rejected);
      },
    };
  }

  async stop(): Promise<void> {
    await (await this.webhook)?.stop();
  }

  private started(): Promise<LoopbackConversion> {
    const webhook = (this.webhook ??= this.start());
    webhook.catch(() => {
      // The next save tries again.
      if (this.webhook === webhook) this.webhook = undefined;
    });
    return webhook;
  }

  private async start(): Promise<LoopbackConversion> {
    const { authority, folder, print } = this.options;
    const write = (line: string): void => {
      const text = problemIn(line);
      // Each informer lists again and again, and would have the same failure printed each time.
      // V8 does not always name the same column of a statement.
      const withoutPlace = text.replaceAll(/:\d+:\d+\)/g, ')');
      if (!this.printed.has(withoutPlace)) print(`Conversion webhook: ${text}`);
      this.printed.add(withoutPlace);
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
