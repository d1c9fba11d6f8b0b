import { PartialError } from './recorder';
import { changedKeys, equal, applyIgnoreChanges, mirrorSecrets, toSecret, type Values } from './values';
import type { Diff, Provider } from './provider';
import { parseReference, type Registration } from './registration';
import type { DeleteExecutor } from './removal';
import { type Run, perform, requestFor } from './run';
import type { ResourceState } from './state';

/** A resource that is to become what a program asked for. */
export interface Target {
  readonly urn: string;
  readonly registration: Registration;
  /** The reference of its provider. */
  readonly provider: string;
  /** What there is, and the URN it was found under. */
  readonly old?: { readonly state: ResourceState; readonly urn: string };
  readonly protect: boolean;
  readonly retainOnDelete: boolean;
}

/** Brings one resource about: check, compare, and the one operation that follows. */
export class StepExecutor {
  constructor(
    private readonly run: Run,
    private readonly removal: DeleteExecutor,
  ) {}

  async execute(target: Target): Promise<ResourceState> {
    const { registration, old } = target;
    const provider = await this.run.providers.get(target.provider);
    const goal =
      old === undefined
        ? registration.inputs
        : applyIgnoreChanges(registration.inputs, old.state.inputs, registration.ignoreChanges);
    const inputs = await this.checked(target, provider, goal, old?.state.inputs);
    if (registration.importId !== '' && registration.importId !== old?.state.id) {
      return this.import(target, provider, inputs);
    }
    if (old === undefined) return this.create(target, provider, inputs, 'create', undefined);
    const diff = await this.diff(target, provider, inputs, old.state);
    if (diff.replace.length > 0) return this.replace(target, provider, goal, old, diff);
    if (diff.changed.length > 0 || old.state.initErrors.length > 0) {
      return this.update(target, provider, inputs, old, diff.changed);
    }
    const same = this.entry(target, inputs, old.state.outputs, old.state.id!);
    return this.saveState(
      await perform(
        this.run,
        { op: 'same', urn: target.urn },
        () => Promise.resolve(same),
        () => Promise.resolve(same),
      ),
      old.urn,
    );
  }

  private async checked(
    target: Target,
    provider: Provider | undefined,
    inputs: Values,
    oldInputs: Values | undefined,
  ): Promise<Values> {
    const request = { ...requestFor(this.run, target.urn), inputs, ...(oldInputs === undefined ? {} : { oldInputs }) };
    const checked = await provider?.check?.(request);
    if (checked?.failures !== undefined && checked.failures.length > 0) {
      throw new Error(`the inputs are refused:\n  ${checked.failures.join('\n  ')}`);
    }
    return checked?.inputs ?? inputs;
  }

  private async diff(
    target: Target,
    provider: Provider | undefined,
    inputs: Values,
    old: ResourceState,
  ): Promise<Diff> {
    const moved = this.providerChanged(target, old);
    if (moved) return { changed: ['provider'], replace: ['provider'] };
    const { replaceWith } = target.registration;
    const isReplaced = this.run.recorder.operations.some(
      ({ op, urn }) => op === 'replace' && replaceWith.includes(urn),
    );
    if (isReplaced) return { changed: ['replaceWith'], replace: ['replaceWith'] };
    const byValue = (): Diff => ({ changed: changedKeys(old.inputs, inputs), replace: [] });
    const { ignoreChanges, replaceOnChanges } = target.registration;
    const told =
      (await provider?.diff?.({
        ...requestFor(this.run, target.urn),
        id: old.id!,
        inputs,
        oldInputs: old.inputs,
        oldOutputs: old.outputs,
        ignoreChanges,
      })) ?? byValue();
    const asked = replaceOnChanges.filter((path) => !equal(applyIgnoreChanges(inputs, old.inputs, [path]), inputs));
    return { ...told, replace: [...told.replace, ...(told.changed.length > 0 ? asked : [])] };
  }

  /** Another provider is another place, unless both are defaults, or the provider only got another URN. */
  private providerChanged(target: Target, old: ResourceState): boolean {
    if (old.provider === undefined || old.provider === target.provider) return false;
    const [before, now] = [parseReference(old.provider), parseReference(target.provider)];
    return !(before.urn.includes('::default_') && now.urn.includes('::default_'));
  }

  private async create(
    target: Target,
    provider: Provider | undefined,
    inputs: Values,
    op: 'create' | 'replace',
    changed: readonly string[] | undefined,
  ): Promise<ResourceState> {
    const timeoutMs = target.registration.timeouts.create;
    const request = { ...requestFor(this.run, target.urn), inputs };
    const operation = { op, urn: target.urn, ...(changed === undefined ? {} : { changed }) };
    const made = await perform(
      this.run,
      operation,
      async () => {
        await this.beforeCreate(target, inputs);
        return this.requireProvider(provider).create({ ...request, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
      },
      async () => {
        await this.beforeCreate(target, inputs);
        return { id: '', outputs: (await provider?.preview?.(request)) ?? inputs };
      },
    ).catch((error: unknown) => {
      if (error instanceof PartialError) {
        this.saveState(
          this.entry(target, inputs, this.marked(target, error.outputs, inputs), error.id, [error.message]),
        );
      }
      throw error;
    });
    return this.saveState(this.entry(target, inputs, this.marked(target, made.outputs, inputs), made.id));
  }

  private async beforeCreate({ urn, registration }: Target, inputs: Values): Promise<void> {
    const { hooks, preview } = this.run;
    const { name, type, beforeCreate } = registration;
    await hooks.beforeCreate(beforeCreate, { urn, name, type, inputs }, preview);
  }

  private async update(
    target: Target,
    provider: Provider | undefined,
    inputs: Values,
    old: NonNullable<Target['old']>,
    changed: readonly string[],
  ): Promise<ResourceState> {
    const { ignoreChanges, timeouts } = target.registration;
    const base = requestFor(this.run, target.urn);
    const request = {
      ...base,
      id: old.state.id!,
      inputs,
      oldInputs: old.state.inputs,
      oldOutputs: old.state.outputs,
      ignoreChanges,
      ...(timeouts.update === undefined ? {} : { timeoutMs: timeouts.update }),
    };
    const made = await perform(
      this.run,
      { op: 'update', urn: target.urn, changed },
      async () => {
        const able = this.requireProvider(provider);
        if (able.update === undefined) throw new Error(`a ${target.registration.type} cannot be updated`);
        return able.update(request);
      },
      async () => ({ outputs: (await provider?.preview?.({ ...base, inputs, old: old.state })) ?? inputs }),
    ).catch((error: unknown) => {
      if (error instanceof PartialError) {
        const outputs = this.marked(target, error.outputs, inputs);
        this.saveState(this.entry(target, inputs, outputs, error.id, [error.message]), old.urn);
      }
      throw error;
    });
    return this.saveState(
      this.entry(target, inputs, this.marked(target, made.outputs, inputs), old.state.id!),
      old.urn,
    );
  }

  private async replace(
    target: Target,
    provider: Provider | undefined,
    goal: Values,
    old: NonNullable<Target['old']>,
    diff: Diff,
  ): Promise<ResourceState> {
    // Taking the protection away and replacing go together in one run (pkg/resource/deploy/step_generator.go).
    if (old.state.protect && target.protect) {
      throw new Error(
        `it is protected and cannot be replaced, which a change of ${diff.replace.join(', ')} asks for. Set protect: false`,
      );
    }
    // A new thing: nothing of the old one, such as a generated name, is taken over.
    const inputs = await this.checked(target, provider, goal, undefined);
    const first = target.registration.deleteBeforeReplace ?? diff.deleteBeforeReplace ?? false;
    if (first) await this.removal.beforeReplacement({ ...old.state, urn: old.urn });
    const made = await this.create(target, provider, inputs, 'replace', diff.changed);
    if (!first) this.run.ledger.markForDeletion(old.state, old.urn);
    return made;
  }

  private async import(target: Target, provider: Provider | undefined, inputs: Values): Promise<ResourceState> {
    const id = target.registration.importId;
    const request = { ...requestFor(this.run, target.urn), id, inputs };
    const found = await perform(
      this.run,
      { op: 'import', urn: target.urn },
      async () => this.readForImport(target, provider, request, inputs),
      async () => this.readForImport(target, provider, request, inputs),
    );
    return this.saveState(this.entry(target, inputs, this.marked(target, found, inputs), id), target.old?.urn);
  }

  private async readForImport(
    target: Target,
    provider: Provider | undefined,
    request: Parameters<NonNullable<Provider['read']>>[0],
    inputs: Values,
  ): Promise<Values> {
    const found = await this.requireProvider(provider).read?.(request);
    if (found === undefined) throw new Error(`there is nothing with the ID ${request.id} to import`);
    const diff = await this.diff({ ...target, old: undefined }, provider, inputs, {
      ...this.entry(target, found.inputs, found.outputs, request.id),
    });
    if (diff.changed.length > 0) {
      throw new Error(`the inputs do not match what is to be imported: ${diff.changed.join(', ')}`);
    }
    return found.outputs;
  }

  private requireProvider(provider: Provider | undefined): Provider {
    if (provider === undefined) throw new Error('its provider was configured with a value that is not known');
    return provider;
  }

  private saveState(state: ResourceState, oldUrn?: string): ResourceState {
    this.run.ledger.put(state, oldUrn);
    return state;
  }

  /** What was secret on its way in is on its way out, and so is what the program says. */
  private marked(target: Target, outputs: Values, inputs: Values): Values {
    const marked = mirrorSecrets(outputs, inputs) as Values;
    for (const key of target.registration.additionalSecretOutputs) {
      if (marked[key] !== undefined) marked[key] = toSecret(marked[key]);
    }
    return marked;
  }

  private entry(
    target: Target,
    inputs: Values,
    outputs: Values,
    id: string,
    initErrors: readonly string[] = [],
  ): ResourceState {
    const { registration } = target;
    return {
      urn: target.urn,
      type: registration.type,
      name: registration.name,
      custom: true,
      id,
      ...(registration.parent === '' ? {} : { parent: registration.parent }),
      provider: target.provider,
      inputs,
      outputs,
      dependencies: registration.dependencies,
      propertyDependencies: registration.propertyDependencies,
      protect: target.protect,
      retainOnDelete: target.retainOnDelete,
      ...(registration.deletedWith === '' ? {} : { deletedWith: registration.deletedWith }),
      external: false,
      delete: false,
      initErrors,
    };
  }
}
