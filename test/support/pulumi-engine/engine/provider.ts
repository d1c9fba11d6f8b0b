import { randomUUID } from 'node:crypto';
import type { Severity, SpawnedProcess } from './recorder';
import { hasUnknown, unknownOnWire, type Values } from './values';

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

/** The providers of a run, by their references. */
export class ProviderRegistry {
  private readonly opened = new Map<string, Promise<Provider> | undefined>();

  constructor(private readonly packages: readonly ProviderPackage[]) {}

  /** @throws Error when the engine was given no such package */
  package(name: string): ProviderPackage {
    const found = [builtin, ...this.packages].find((candidate) => candidate.name === name);
    if (found !== undefined) return found;
    const known = this.packages.map((candidate) => candidate.name).join(', ');
    throw new Error(`no provider for package "${name}": the engine was given ${known === '' ? 'none' : known}`);
  }

  /** A provider is configured. With unknowns in its configuration it stays shut, and its resources are planned without it. */
  add(urn: string, id: string, packageName: string, config: Values): void {
    const described = this.package(packageName);
    const opened = hasUnknown(config) ? undefined : Promise.resolve(described.configure(config));
    // Whoever asks for it gets the error; nobody may.
    opened?.catch(() => undefined);
    this.opened.set(`${urn}::${id === '' ? unknownOnWire : id}`, opened);
  }

  has(reference: string): boolean {
    return this.opened.has(reference);
  }

  /** Undefined when its configuration is not known yet. */
  async get(reference: string): Promise<Provider | undefined> {
    if (!this.opened.has(reference)) throw new Error(`there is no provider ${reference} in this run`);
    return this.opened.get(reference);
  }

  /** A new ID, as the real engine gives them. */
  newId(): string {
    return randomUUID();
  }

  async close(): Promise<void> {
    const opened = await Promise.allSettled([...this.opened.values()]);
    for (const one of opened) if (one.status === 'fulfilled') await one.value?.close?.();
  }
}

/**
 * What the real engine provides itself: `Stash`, which keeps the first value that it was given as `output` until it is replaced, and shows
 * the latest one as `input` (pkg/resource/deploy/builtins.go).
 */
const builtin: ProviderPackage = {
  name: 'pulumi',
  configure: () => ({
    check: ({ type, inputs }) => Promise.resolve({ inputs, failures: problems(type, inputs) }),
    create: ({ inputs }) => Promise.resolve({ id: randomUUID(), outputs: stashed(inputs, inputs) }),
    update: ({ inputs, oldOutputs }) => Promise.resolve({ outputs: stashed(inputs, oldOutputs, 'output') }),
    delete: () => Promise.resolve(),
    preview: ({ inputs, old }) =>
      Promise.resolve(old === undefined ? stashed(inputs, inputs) : stashed(inputs, old.outputs, 'output')),
  }),
};

function stashed(inputs: Values, from: Values, key: 'input' | 'output' = 'input'): Values {
  return { input: inputs.input!, output: from[key]! };
}

function problems(type: string, inputs: Values): string[] {
  if (type !== 'pulumi:index:Stash') return [`unrecognized resource type '${type}'`];
  if (inputs.input === undefined) return ['missing required property "input"'];
  return Object.keys(inputs).flatMap((key) => (key === 'input' ? [] : [`unknown property "${key}"`]));
}
