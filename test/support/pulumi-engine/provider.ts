import type { Severity, SpawnedProcess } from './recorder';
import type { Values } from './values';

/** What every request to a provider carries. */
export interface ProviderRequest {
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  /** Aborts when the run is interrupted. The provider then leaves things as they are, and rejects. */
  readonly signal: AbortSignal;
  /** What the real provider would print. */
  readonly log: (severity: Severity, message: string) => void;
  /** A process that was started, or asked for on another machine. */
  readonly spawned: (process: SpawnedProcess) => void;
}

/** Check inputs, before anything is compared. */
export interface CheckRequest extends ProviderRequest {
  readonly inputs: Values;
  /** Absent when there is no such resource yet. */
  readonly oldInputs?: Values;
}

/** Compare with what there is. */
export interface DiffRequest extends ProviderRequest {
  readonly id: string;
  readonly inputs: Values;
  readonly oldInputs: Values;
  readonly oldOutputs: Values;
  readonly ignoreChanges: readonly string[];
}

/** Make one. */
export interface CreateRequest extends ProviderRequest {
  readonly inputs: Values;
  /** From `customTimeouts`, in milliseconds. */
  readonly timeoutMs?: number;
}

/** Change one. */
export interface UpdateRequest extends DiffRequest {
  readonly timeoutMs?: number;
}

/** Delete one. Inputs and outputs are those of the state. */
export interface DeleteRequest extends ProviderRequest {
  readonly id: string;
  readonly inputs: Values;
  readonly outputs: Values;
  readonly timeoutMs?: number;
}

/** Look at one that is there already. */
export interface ReadRequest extends ProviderRequest {
  readonly id: string;
  readonly inputs: Values;
}

/** What would come out. */
export interface PreviewRequest extends ProviderRequest {
  readonly inputs: Values;
  /** Absent for a create. */
  readonly old?: { readonly inputs: Values; readonly outputs: Values };
}

/** What differs. */
export interface Diff {
  /** Properties, or paths to them. None: nothing is to be done. */
  readonly changed: readonly string[];
  /** Those that force a replacement. */
  readonly replace: readonly string[];
  /** The old one must go before the new one comes. @default false */
  readonly deleteBeforeReplace?: boolean;
}

/** A configured provider. A method that throws fails the operation. */
export interface Provider {
  /** Completes the inputs. @default they are as they are */
  check?(request: CheckRequest): Promise<{ readonly inputs: Values; readonly failures?: readonly string[] }>;
  /** @default every property that differs is an update */
  diff?(request: DiffRequest): Promise<Diff>;
  /** @throws PartialError when it is made, but not what it should be */
  create(request: CreateRequest): Promise<{ readonly id: string; readonly outputs: Values }>;
  /** @throws PartialError when it is changed, but not what it should be */
  update?(request: UpdateRequest): Promise<{ readonly outputs: Values }>;
  /** One that is gone already is no error. */
  delete(request: DeleteRequest): Promise<void>;
  /** Undefined when there is none. @default cannot be read */
  read?(request: ReadRequest): Promise<{ readonly inputs: Values; readonly outputs: Values } | undefined>;
  /** Outputs to show in a preview; what is missing is unknown. @default the inputs */
  preview?(request: PreviewRequest): Promise<Values>;
  invoke?(token: string, inputs: Values): Promise<Values>;
  close?(): Promise<void>;
}

/** A package of providers: what `pulumi:providers:<name>` makes. */
export interface ProviderPackage {
  readonly name: string;
  /** @default properties that differ are an update */
  diffConfig?(before: Values, after: Values): Diff;
  /** Makes a provider of its configuration. In a preview, never called with unknowns. */
  configure(config: Values): Provider | Promise<Provider>;
}
