import {
  aliasUrns,
  childUrn,
  packageOf,
  providedPackage,
  stackType,
  type RegisterResult,
  type Registration,
} from './registration';
import type { HookRegistry } from './hooks';
import { InterruptedError, StoppedError } from './recorder';
import { DeleteExecutor } from './removal';
import { messageOf } from '../../../../local/assets/errors';
import { type Run, perform, requestFor } from './run';
import type { ResourceState } from './state';
import { StepExecutor } from './steps';
import { Secret, changedKeys, unknownOnWire, type Values } from './values';

/** A registration that asks for nothing in particular. */
const nothing: Registration = {
  type: '',
  name: '',
  parent: '',
  custom: true,
  inputs: {},
  provider: '',
  version: '',
  dependencies: [],
  propertyDependencies: {},
  protect: undefined,
  retainOnDelete: undefined,
  deleteBeforeReplace: undefined,
  ignoreChanges: [],
  replaceOnChanges: [],
  additionalSecretOutputs: [],
  aliases: [],
  importId: '',
  deletedWith: '',
  replaceWith: [],
  beforeCreate: [],
  timeouts: {},
};

/** What a program asks to read. */
export interface ResourceRead {
  readonly type: string;
  readonly name: string;
  readonly parent: string;
  readonly id: string;
  readonly inputs: Values;
  readonly provider: string;
  readonly version: string;
  readonly dependencies: readonly string[];
}

/** One run of a program against a state: takes registrations, and in the end takes away what is left. */
export class Deployment {
  private readonly seen = new Set<string>();
  private readonly removal: DeleteExecutor;
  private readonly steps: StepExecutor;
  private readonly defaults = new Map<string, Promise<string>>();
  private tellFailure: () => void = () => undefined;
  /** Resolves at the first failure. */
  readonly failure = new Promise<void>((resolve) => (this.tellFailure = resolve));
  outputs: Values = {};

  constructor(private readonly run: Run) {
    this.removal = new DeleteExecutor(run);
    this.steps = new StepExecutor(run, this.removal);
    run.gate.signal.addEventListener('abort', () => this.tellFailure(), { once: true });
    if (run.gate.killed) this.tellFailure();
  }

  get failed(): boolean {
    return this.run.recorder.errors.length > 0 || this.run.gate.killed;
  }

  /** @throws StoppedError or InterruptedError: the failure itself is in the log */
  async register(registration: Registration): Promise<RegisterResult> {
    const urn = this.urn(registration);
    return this.guarded(urn, async () => {
      this.claim(urn);
      const old = this.past(urn, registration);
      const state = registration.custom
        ? await this.custom(urn, registration, old)
        : this.component(urn, registration, old);
      return { urn, id: state.id ?? '', outputs: state.outputs };
    });
  }

  /** Outputs of a component. Those of the stack are what a run gives. */
  registerOutputs(urn: string, outputs: Values): void {
    const state = this.run.ledger.newState(urn);
    if (state === undefined) throw new Error(`outputs of ${urn}, which is not registered`);
    this.run.ledger.put({ ...state, outputs });
    if (state.type === stackType) this.outputs = outputs;
  }

  registerHook(...hook: Parameters<HookRegistry['add']>): void {
    this.run.hooks.add(...hook);
  }

  /** What someone else owns. */
  async read(reading: ResourceRead): Promise<RegisterResult> {
    const urn = this.urn(reading);
    return this.guarded(urn, async () => {
      this.claim(urn);
      const reference = await this.reference(reading.type, reading.provider, reading.version);
      const provider = await this.run.providers.get(reference);
      const request = { ...requestFor(this.run, urn), id: reading.id, inputs: reading.inputs };
      // A preview does not ask a provider whose configuration is not known yet.
      const look = async (): Promise<Values | undefined> =>
        provider === undefined ? {} : (await provider.read?.(request))?.outputs;
      const outputs = await perform(this.run, { op: 'read', urn }, look, look);
      if (outputs === undefined) throw new Error(`there is no ${reading.type} with the ID ${reading.id}`);
      const state = { ...this.bare(urn, reading), custom: true, external: true, id: reading.id, provider: reference };
      this.run.ledger.put({ ...state, inputs: reading.inputs, outputs, dependencies: reading.dependencies }, urn);
      return { urn, id: reading.id, outputs };
    });
  }

  async invoke(token: string, inputs: Values, provider: string, version: string): Promise<Values> {
    return this.guarded('', async () => {
      const opened = await this.run.providers.get(await this.reference(token, provider, version));
      if (opened?.invoke === undefined) throw new Error(`the function ${token} is not supported by the test engine`);
      return opened.invoke(token, inputs);
    });
  }

  /** Deletes what the program no longer has. */
  async finish(): Promise<void> {
    await this.guarded('', () => this.removal.leftovers());
  }

  /** Notes a failure. Nothing more begins; what is under way may end. */
  fail(error: unknown, urn = ''): void {
    const { recorder, gate } = this.run;
    if (!(error instanceof StoppedError || error instanceof InterruptedError) && !gate.killed) {
      recorder.addLog('error', messageOf(error), urn);
    }
    gate.stop();
    this.tellFailure();
  }

  private async guarded<T>(urn: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.fail(error, urn);
      throw error instanceof InterruptedError ? error : new StoppedError('the run goes no further', { cause: error });
    }
  }

  private urn(resource: Pick<Registration, 'parent' | 'type' | 'name'>): string {
    return childUrn(this.run.home, resource.parent, resource.type, resource.name);
  }

  private claim(urn: string): void {
    if (this.seen.has(urn)) throw new Error(`Duplicate resource URN '${urn}'; try giving it a unique name`);
    if (this.run.ledger.wasMoved(urn)) throw new Error(`${urn} was already taken over through an alias`);
    this.seen.add(urn);
  }

  /** What there is of a resource, under its own URN or an alias. */
  private past(urn: string, registration: Registration): { state: ResourceState; urn: string } | undefined {
    const { ledger, home } = this.run;
    const aliases = aliasUrns(home, registration, ledger.movedFrom(registration.parent));
    for (const candidate of [urn, ...aliases]) {
      const state = ledger.oldState(candidate);
      if (state === undefined) continue;
      if (candidate !== urn) ledger.move(candidate, urn);
      return { state, urn: candidate };
    }
    return undefined;
  }

  private component(urn: string, registration: Registration, old: { urn: string } | undefined): ResourceState {
    const state: ResourceState = {
      ...this.bare(urn, registration),
      inputs: registration.inputs,
      dependencies: registration.dependencies,
      propertyDependencies: registration.propertyDependencies,
      ...this.inherited(registration),
    };
    this.run.ledger.put(state, old?.urn);
    return state;
  }

  private async custom(
    urn: string,
    registration: Registration,
    old: { state: ResourceState; urn: string } | undefined,
  ): Promise<ResourceState> {
    const packageName = providedPackage(registration.type);
    if (packageName !== undefined) return this.provider(urn, packageName, registration, old);
    const provider = await this.reference(registration.type, registration.provider, registration.version);
    const usable = old !== undefined && old.state.custom && !old.state.external ? { old } : {};
    if (old !== undefined && usable.old === undefined) this.run.ledger.remove({ ...old.state, urn: old.urn });
    return this.steps.execute({ urn, registration, provider, ...usable, ...this.inherited(registration) });
  }

  /** A provider is made by the engine itself. Where its configuration means another place, it is a new one. */
  private async provider(
    urn: string,
    packageName: string,
    registration: Registration,
    old: { state: ResourceState; urn: string } | undefined,
  ): Promise<ResourceState> {
    const { providers, ledger, preview } = this.run;
    const described = providers.package(packageName);
    const { inputs } = registration;
    const changed = old === undefined ? [] : changedKeys(old.state.inputs, inputs);
    const diff =
      old === undefined ? undefined : (described.diffConfig?.(old.state.inputs, inputs) ?? { changed, replace: [] });
    const replaced = (diff?.replace.length ?? 0) > 0;
    const same = old !== undefined && !replaced;
    const op = old === undefined ? 'create' : replaced ? 'replace' : changed.length > 0 ? 'update' : 'same';
    const id = await perform(
      this.run,
      { op, urn, ...(changed.length > 0 ? { changed } : {}) },
      () => Promise.resolve(same ? old.state.id! : providers.newId()),
      () => Promise.resolve(same ? old.state.id! : ''),
    );
    const state: ResourceState = {
      ...this.bare(urn, registration),
      ...this.inherited(registration),
      custom: true,
      id,
      inputs,
      outputs: inputs,
      dependencies: registration.dependencies,
      propertyDependencies: registration.propertyDependencies,
    };
    providers.add(urn, id, packageName, inputs);
    if (old !== undefined && replaced && !preview) ledger.markForDeletion(old.state, old.urn);
    ledger.put(state, old?.urn);
    return state;
  }

  /** The provider that is to be used: the one named, or the default one of the package, made from the stack's configuration. */
  private async reference(type: string, named: string, version: string): Promise<string> {
    if (named !== '') return named;
    const packageName = packageOf(type);
    const name = version === '' ? 'default' : `default_${version.replaceAll('.', '_')}`;
    const key = `${packageName}/${name}`;
    const known = this.defaults.get(key);
    if (known !== undefined) return known;
    const made = this.register({
      ...nothing,
      type: `pulumi:providers:${packageName}`,
      name: version === '' ? 'default_' : name,
      inputs: this.configOf(packageName),
      version,
    }).then((registered) => `${registered.urn}::${registered.id === '' ? unknownOnWire : registered.id}`);
    this.defaults.set(key, made);
    return made;
  }

  private configOf(packageName: string): Values {
    const prefix = `${packageName}:`;
    const entries = [...this.run.config].filter(([key]) => key.startsWith(prefix));
    return Object.fromEntries(
      entries.map(([key, { value, secret }]) => [key.slice(prefix.length), secret ? new Secret(value) : value]),
    );
  }

  private inherited(registration: Registration): { protect: boolean; retainOnDelete: boolean } {
    const parent = this.run.ledger.newState(registration.parent);
    return {
      protect: registration.protect ?? parent?.protect ?? false,
      retainOnDelete: registration.retainOnDelete ?? parent?.retainOnDelete ?? false,
    };
  }

  private bare(urn: string, of: Pick<Registration, 'type' | 'name' | 'parent'>): ResourceState {
    return {
      urn,
      type: of.type,
      name: of.name,
      custom: false,
      ...(of.parent === '' ? {} : { parent: of.parent }),
      inputs: {},
      outputs: {},
      dependencies: [],
      propertyDependencies: {},
      protect: false,
      retainOnDelete: false,
      external: false,
      delete: false,
      initErrors: [],
    };
  }
}
