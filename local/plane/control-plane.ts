import type { ObtainOptions } from '../assets/obtain';
import type { Components } from '../assets/prepare';
import type { AuditEvent } from './audit';
import type { PartExit } from './guarded-process';
import type { ServiceAccountRef } from './service-account';

/** How to start a control plane. */
export interface ControlPlaneOptions extends ObtainOptions {
  /**
   * `api`: etcd and the API server, without ServiceAccount admission; nothing reacts to what is created (namespaces
   * stay `Terminating`, owned objects stay).
   * `full`: also the controllers, the scheduler and one fake node on which every pod becomes Ready.
   * @default 'full'
   */
  readonly components?: Components;
  /** Where the run keeps everything; must be empty or new, is removed by stop(). @default a new temporary folder */
  readonly dataDir?: string;
  /** The API server's port on 127.0.0.1. @default a free one */
  readonly port?: number;
  /** More flags for kube-apiserver; they come last and win. */
  readonly extraApiServerArgs?: readonly string[];
  /** How long each part may take to get ready, in milliseconds. @default 120_000 */
  readonly startTimeoutMs?: number;
  /** Ends a start that is under way; no effect after that. */
  readonly signal?: AbortSignal;
}

/** A running control plane. */
export interface ControlPlane {
  /** `https://127.0.0.1:<port>`. */
  readonly url: string;
  /** What the API server says it is: `v1.36.3`. */
  readonly version: string;
  /** Holds data, certificates, kubeconfigs and logs (`<part>.log`). */
  readonly dataDir: string;
  /** The path of a kubeconfig with a client certificate in `system:masters`, which no RBAC rule limits. */
  readonly adminKubeconfig: string;

  /**
   * The path of a kubeconfig with a token of a ServiceAccount. Grants nothing and creates no object.
   *
   * @param options.expirationSeconds - at least 600. @default 3600
   * @throws LocalControlPlaneError when there is no such ServiceAccount
   */
  kubeconfigFor(account: ServiceAccountRef, options?: { readonly expirationSeconds?: number }): Promise<string>;

  /** Every request that was answered before this call, oldest first, from all API server processes of this run. */
  auditLog(): Promise<AuditEvent[]>;

  /**
   * Calls back when a part ends that nobody ended.
   *
   * @returns a function that takes the listener back
   */
  onPartExit(listener: (exit: PartExit) => void): () => void;

  /** Ends every part and removes the data folder. A second call waits for the first. */
  stop(): Promise<void>;

  readonly faults: Faults;
}

/** Ways to hurt the control plane, for tests. */
export interface Faults {
  /** Ends the API server as a crash does: connections are cut, nothing answers its port. */
  killApiServer(): Promise<void>;
  /** Starts it again, on the same port and data, and waits until it is ready. Does nothing when it runs. */
  startApiServer(): Promise<void>;
  /** Kill, then start. */
  restartApiServer(): Promise<void>;
  /** Freezes it: connections stay open and silent. */
  pauseApiServer(): void;
  /** Lets it go on. */
  resumeApiServer(): void;
  /**
   * Starts the controller manager anew, for tests that create kinds: its garbage collector looks for new kinds every
   * 30 seconds only, and until it knows a kind it does not collect what objects of that kind own. A new one starts
   * with all kinds there are.
   *
   * @throws LocalControlPlaneError with components `api`, where there is none
   */
  restartControllerManager(): Promise<void>;
  /**
   * Makes the control plane forget the past: a watch, or a list's continuation, from a resourceVersion of before the
   * call is answered with 410 from now on.
   *
   * The API server answers watches from its own memory of recent events, whatever etcd has forgotten; so it is
   * restarted after the compaction, which cuts the watches that run.
   *
   * @param options.keepApiServer - compact etcd only; old watches may then still be answered. @default false
   */
  compactEtcd(options?: { readonly keepApiServer?: boolean }): Promise<void>;
}
