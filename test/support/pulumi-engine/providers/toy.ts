import * as pulumi from '@pulumi/pulumi';
import { PartialError } from '../engine/recorder';
import type {
  CreateRequest,
  DeleteRequest,
  Diff,
  DiffRequest,
  Provider,
  ProviderPackage,
  UpdateRequest,
} from '../engine/provider';
import { type Plain, type Values, Secret, changedKeys, hasUnknown, plainValues } from '../engine/values';

/** What there is of one thing. */
export interface ToyThing {
  readonly name: string;
  readonly properties: Readonly<Record<string, Plain>>;
}

/**
 * A cloud of things in memory, for tests of the engine itself. A change of `key` replaces a thing, one of `place` after deleting the old;
 * `partial: true` makes a thing that is not what it should be.
 */
export class ToyCloud {
  /** By ID. */
  readonly things = new Map<string, ToyThing>();
  /** `create a`, `delete a`, in the order the cloud was asked. */
  readonly calls: string[] = [];
  /** Throws for the calls it is not content with. */
  refuse: (call: string) => void = () => undefined;
  /** Called within each call: to wait, or to look. */
  during: (call: string, signal: AbortSignal) => Promise<void> = () => Promise.resolve();
  private next = 1;

  get names(): string[] {
    return [...this.things.values()].map((thing) => thing.name).sort();
  }

  /** The package to give to an engine: `toy`. */
  package(): ProviderPackage {
    return {
      name: 'toy',
      diffConfig: (before, after) => {
        const changed = changedKeys(before, after);
        return { changed, replace: changed.filter((key) => key === 'region') };
      },
      configure: () => this.provider(),
    };
  }

  private provider(): Provider {
    return {
      check: (request) =>
        Promise.resolve({
          inputs: request.inputs,
          failures: request.inputs.bad === undefined ? [] : ['bad is not good'],
        }),
      diff: (request) => Promise.resolve(this.diff(request)),
      create: (request) => this.create(request),
      update: (request) => this.update(request),
      delete: (request) => this.delete(request),
      read: ({ id }) => {
        const thing = this.things.get(id);
        if (thing === undefined) return Promise.resolve(undefined);
        return Promise.resolve({ inputs: { ...thing.properties }, outputs: outputs({ ...thing.properties }) });
      },
      preview: ({ inputs }) => Promise.resolve(inputs),
    };
  }

  private diff({ inputs, oldInputs }: DiffRequest): Diff {
    const changed = changedKeys(oldInputs, inputs);
    const replace = changed.filter((key) => key === 'key' || key === 'place');
    return { changed, replace, deleteBeforeReplace: changed.includes('place') };
  }

  private async create({ name, inputs, signal }: CreateRequest): Promise<{ id: string; outputs: Values }> {
    if (hasUnknown(inputs)) throw new Error('unknown inputs in a real run');
    await this.called(`create ${name}`, signal);
    const id = `id-${this.next++}`;
    this.things.set(id, { name, properties: plainValues(inputs) });
    if (inputs.partial === true) throw new PartialError('it is only half there', id, outputs(inputs));
    return { id, outputs: outputs(inputs) };
  }

  private async update({ name, id, inputs, signal }: UpdateRequest): Promise<{ outputs: Values }> {
    await this.called(`update ${name}`, signal);
    this.things.set(id, { name, properties: plainValues(inputs) });
    return { outputs: outputs(inputs) };
  }

  private async delete({ name, id, signal }: DeleteRequest): Promise<void> {
    await this.called(`delete ${name}`, signal);
    this.things.delete(id);
  }

  private async called(call: string, signal: AbortSignal): Promise<void> {
    this.calls.push(call);
    await this.during(call, signal);
    this.refuse(call);
  }
}

function outputs(inputs: Values): Values {
  const value = inputs.value === undefined ? '' : plainValues({ value: inputs.value }).value;
  // What is within a structure may be secret.
  const shown = typeof value === 'object' ? 'a structure' : String(value);
  return { ...inputs, computed: `computed of ${shown}`, token: new Secret('toy-token') };
}

/** What a {@link Thing} can be given. */
export interface ThingArgs {
  readonly value?: pulumi.Input<unknown>;
  readonly key?: pulumi.Input<string>;
  readonly place?: pulumi.Input<string>;
  readonly partial?: boolean;
  readonly bad?: boolean;
}

/** A thing of the {@link ToyCloud}. */
export class Thing extends pulumi.CustomResource {
  declare readonly value: pulumi.Output<unknown>;
  declare readonly computed: pulumi.Output<string>;
  declare readonly token: pulumi.Output<string>;

  constructor(name: string, args: ThingArgs, options?: pulumi.CustomResourceOptions) {
    super('toy:index:Thing', name, { ...args, computed: undefined, token: undefined }, options);
  }
}

/** Its provider. */
export class ToyProvider extends pulumi.ProviderResource {
  constructor(name: string, args: { readonly region?: pulumi.Input<string> }, options?: pulumi.ResourceOptions) {
    super('toy', name, args, options);
  }
}

/** A component that only groups. */
export class Group extends pulumi.ComponentResource {
  constructor(name: string, options?: pulumi.ComponentResourceOptions, type = 'toy:index:Group') {
    super(type, name, {}, options);
    this.registerOutputs({});
  }
}
