import { isError, messageOf } from '../../../../local/assets/errors';
import { StoppedError } from './recorder';
import type { Provider } from './provider';
import { type Run, perform, providerOfState, requestFor } from './run';
import { type ResourceState, needs } from './state';
import { parseReference, providedPackage } from './registration';
import { type Values, unknown } from './values';

/** Takes resources away: dependents first. */
export class DeleteExecutor {
  constructor(private readonly run: Run) {}

  /** What the program no longer has, and what was replaced. */
  async leftovers(): Promise<void> {
    const { ledger } = this.run;
    await this.all([...ledger.leftovers, ...ledger.toDelete]);
  }

  /** The resource, and first what must be replaced with it, so that a new one can take its place. */
  async beforeReplacement(old: ResourceState): Promise<void> {
    await this.all([...(await this.dependentReplacements(old)), old], 'delete-replaced');
  }

  private async all(condemned: readonly ResourceState[], op?: 'delete-replaced'): Promise<void> {
    this.refuseProtected(condemned);
    const gone = new Map<ResourceState, Promise<void>>();
    const urns = new Set(condemned.map((resource) => resource.urn));
    const remove = (resource: ResourceState): Promise<void> => {
      const known = gone.get(resource);
      if (known !== undefined) return known;
      const dependents = condemned.filter((other) => other !== resource && needs(other).has(resource.urn));
      const removal = Promise.all(dependents.map(remove)).then(() =>
        this.one(resource, op ?? (resource.delete ? 'delete-replaced' : 'delete'), urns),
      );
      gone.set(resource, removal);
      return removal;
    };
    const results = await Promise.allSettled(condemned.map(remove));
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    const cause = failures.find((failure) => !(failure instanceof StoppedError)) ?? failures[0];
    if (cause !== undefined) throw isError(cause) ? cause : new Error(messageOf(cause), { cause });
  }

  private refuseProtected(condemned: readonly ResourceState[]): void {
    const guarded = condemned.filter((resource) => resource.protect && !resource.delete);
    if (guarded.length === 0) return;
    const names = guarded.map((resource) => resource.urn).join('\n  ');
    throw new Error(
      `protected resources cannot be deleted; nothing was deleted. Set protect: false and run up first:\n  ${names}`,
    );
  }

  private async one(
    resource: ResourceState,
    op: 'delete' | 'delete-replaced',
    with_: ReadonlySet<string>,
  ): Promise<void> {
    const { ledger } = this.run;
    const forgotten = !resource.custom || resource.external || providedPackage(resource.type) !== undefined;
    const retained = resource.retainOnDelete || (resource.deletedWith !== undefined && with_.has(resource.deletedWith));
    if (!forgotten) {
      await perform(
        this.run,
        { op, urn: resource.urn, ...(retained ? { retained } : {}) },
        () => (retained ? Promise.resolve() : this.delete(resource)),
        () => Promise.resolve(),
      ).catch((error: unknown) => this.failed(resource, error));
    }
    ledger.remove(resource);
  }

  private failed(resource: ResourceState, error: unknown): never {
    const { recorder, gate } = this.run;
    if (!(error instanceof StoppedError) && !gate.killed) {
      recorder.addLog('error', messageOf(error), resource.urn);
      gate.stop();
      throw new StoppedError(`${resource.urn} was not deleted`);
    }
    throw error;
  }

  private async delete(resource: ResourceState): Promise<void> {
    const provider = await providerOfState(this.run, resource);
    await provider?.delete({
      ...requestFor(this.run, resource.urn),
      id: resource.id ?? '',
      inputs: resource.inputs,
      outputs: resource.outputs,
    });
  }

  /**
   * Resources of the past that cannot outlive this one: those of a provider that goes, and those for which an unknown where they use it
   * means replacement (as calculateDependentReplacements of pkg/resource/deploy does).
   */
  private async dependentReplacements(root: ResourceState): Promise<ResourceState[]> {
    const going = new Set([root.urn]);
    const found: ResourceState[] = [];
    for (let grew = true; grew;) {
      grew = false;
      for (const candidate of this.run.ledger.leftovers) {
        if (going.has(candidate.urn) || !candidate.custom || !(await this.goesWith(candidate, going))) continue;
        going.add(candidate.urn);
        found.push(candidate);
        grew = true;
      }
    }
    return found;
  }

  private async goesWith(candidate: ResourceState, going: ReadonlySet<string>): Promise<boolean> {
    if (candidate.provider !== undefined && going.has(parseReference(candidate.provider).urn)) return true;
    const used = Object.entries(candidate.propertyDependencies).filter(([, urns]) =>
      urns.some((urn) => going.has(urn)),
    );
    if (used.length === 0 || candidate.external) return false;
    const provider: Provider | undefined = await providerOfState(this.run, candidate);
    const inputs: Values = { ...candidate.inputs, ...Object.fromEntries(used.map(([key]) => [key, unknown])) };
    const diff = await provider?.diff?.({
      ...requestFor(this.run, candidate.urn),
      id: candidate.id ?? '',
      inputs,
      oldInputs: candidate.inputs,
      oldOutputs: candidate.outputs,
      ignoreChanges: [],
    });
    return (diff?.replace.length ?? 0) > 0;
  }
}
