import { randomUUID } from 'node:crypto';
import type { Provider, ProviderPackage } from './provider';
import { builtin } from './providers/builtin';
import { unknownOnWire } from './wire';
import { type Values, hasUnknown } from './values';

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
