import type { Home } from './aliases';
import type { Gate } from './gate';
import type { Ledger } from './ledger';
import type { Provider, ProviderRequest } from './provider';
import type { ProviderRegistry } from './provider-registry';
import type { Operation, Recorder } from './recorder';
import type { ResourceState } from './state';
import { nameOf, parseReference, providedPackage, typeOf } from './urn';

/** What the parts of one run share. */
export interface Run {
  readonly home: Home;
  /** Configuration by `namespace:key`. */
  readonly config: ReadonlyMap<string, { readonly value: string; readonly secret: boolean }>;
  readonly preview: boolean;
  readonly ledger: Ledger;
  readonly recorder: Recorder;
  readonly gate: Gate;
  readonly providers: ProviderRegistry;
}

/** The part of a request that is the same for all. */
export function requestFor(run: Run, urn: string): ProviderRequest {
  return {
    urn,
    type: typeOf(urn),
    name: nameOf(urn),
    signal: run.gate.signal,
    log: (severity, message) => run.recorder.say(severity, message, urn),
    spawned: (process) => void run.recorder.processes.push(process),
  };
}

/** Does an operation, or in a preview only writes it down. `plan` says what it would give. */
export async function perform<T>(
  run: Run,
  operation: Omit<Operation, 'type' | 'name'>,
  work: () => Promise<T>,
  plan: () => Promise<T>,
): Promise<T> {
  const named = { type: typeOf(operation.urn), name: nameOf(operation.urn), ...operation };
  const result = run.preview ? await plan() : await run.gate.run(named, work);
  run.recorder.operations.push(named);
  return result;
}

/**
 * The provider of a resource of the state, opened from what the state knows of it where this run did not register it.
 *
 * @throws Error when the state has no such provider
 */
export async function providerOfState(run: Run, resource: ResourceState): Promise<Provider | undefined> {
  const reference = resource.provider ?? '';
  if (!run.providers.has(reference)) {
    const { urn, id } = parseReference(reference);
    const all = [...run.ledger.leftovers, ...run.ledger.toDelete];
    const state = all.find((candidate) => candidate.urn === urn && candidate.id === id) ?? run.ledger.current(urn);
    if (state === undefined) throw new Error(`the state has no provider ${reference}`);
    run.providers.add(urn, id, providedPackage(state.type)!, state.inputs);
  }
  return run.providers.get(reference);
}
